// The page in a real browser with a real daemon, from the outside.

import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { after, test } from 'node:test'
import type { Page } from 'playwright-core'
import { Project, type Sight, closeBrowser, open, root, until } from './world'

const TEAM = join(root, 'e2e/team')
const RELAY = join(root, 'e2e/relay')
const axe = createRequire(import.meta.url).resolve('axe-core/axe.min.js')

after(closeBrowser)

/** A project with its daemon for the length of a story. */
async function story(from: string | ((folder: string) => void), tell: (project: Project) => Promise<void>): Promise<void> {
  const project = new Project(from)
  try {
    await project.up()
    await tell(project)
  } finally {
    await project.down()
  }
}

const sees = (page: Page, words: string): Promise<void> => page.getByText(words).first().waitFor()

function quiet(sight: Sight): void {
  assert.deepEqual(sight.complaints, [], 'the browser has nothing to complain about')
}

/** What the terminal shows, as text. */
async function screen(page: Page): Promise<string> {
  await page.getByRole('button', { name: 'Copy', exact: true }).click()
  return page.evaluate(() => navigator.clipboard.readText())
}

const shows = (page: Page, words: string): Promise<boolean> => until(`the terminal shows ${words}`, async () => (await screen(page)).includes(words))

async function hasTerminals(project: Project): Promise<boolean> {
  return Array.isArray(await project.get('/v1/terminals'))
}

test('s5_11 a run is watched from start to finish', () =>
  story(TEAM, async (project) => {
    const sight = await open(project)
    const { page } = sight
    await sees(page, 'No run yet')
    const run = await project.start('Add login with refresh tokens')
    await sees(page, 'planner has the baton')
    await sees(page, 'Waits for your answer')
    await page.keyboard.press('i')
    await sees(page, 'Sessions in the database, or signed tokens?')
    await page.keyboard.press('1')
    await sees(page, 'Nothing needs you')
    await page.goto(`${sight.url}/runs/${run.slice(-8)}`)
    await until('the run succeeds on the page', () => page.getByText('Succeeded: nothing is left to do').isVisible())
    assert.equal(await page.locator('.stroke.is-handoff').count(), 8, 'every handoff crosses the track')
    assert.equal(await page.locator('.tick.is-refused').count(), 1, 'the refusal is a red tick')
    assert.ok((await page.locator('.leg.is-failed').count()) >= 1, 'the failed try has its notch')
    quiet(sight)
    await sight.close()
  }))

test('b_12 dragging the track shows a moment, and letting go is live again', () =>
  story(TEAM, async (project) => {
    const run = await project.start('Add login with refresh tokens')
    await until('the question', async () => (await project.status(run)).waiting_on === 'human')
    const sight = await open(project, { path: `/runs/${run.slice(-8)}` })
    const { page } = sight
    await sees(page, 'Waits for your answer')
    const box = (await page.locator('.track-lanes').boundingBox())!
    const y = box.y + box.height - 6
    await page.mouse.move(box.x + box.width * 0.8, y)
    await page.mouse.down()
    await page.mouse.move(box.x + box.width * 0.5, y, { steps: 4 })
    await page.mouse.move(box.x + 150, y, { steps: 4 })
    await sees(page, 'let go to be live again')
    await sees(page, 'planner has the baton')
    await page.mouse.up()
    await sees(page, 'Waits for your answer')
    await page.keyboard.press('[')
    await page.waitForURL(/at=\d+/)
    await sees(page, 'as it was')
    await page.reload()
    await sees(page, 'as it was')
    await page.keyboard.press('l')
    await sees(page, 'Waits for your answer')
    quiet(sight)
    await sight.close()
  }))

test('b_13 an escalation is answered on a phone of 360 pixels', () =>
  story(TEAM, async (project) => {
    const run = await project.start('Add login with refresh tokens')
    await until('the question', async () => (await project.status(run)).waiting_on === 'human')
    const sight = await open(project, { width: 360, height: 740 })
    const { page } = sight
    await sees(page, 'Sessions in the database, or signed tokens?')
    const wide = await page.evaluate(() => document.documentElement.scrollWidth)
    assert.ok(wide <= 360, `nothing sticks out: ${wide}`)
    const option = page.getByRole('button', { name: 'Both behind one interface' })
    const box = (await option.boundingBox())!
    assert.ok(box.height >= 44, 'a thumb hits it')
    await option.tap()
    await sees(page, 'Nothing needs you')
    const events = JSON.stringify(await project.get(`/v1/runs/${run}/events`))
    assert.match(events, /Both behind one interface/)
    quiet(sight)
    await sight.close()
  }))

test('b_01 the daemon is killed and started again, and the page catches up', () =>
  story(TEAM, async (project) => {
    const run = await project.start('Add login with refresh tokens')
    await until('the question', async () => (await project.status(run)).waiting_on === 'human')
    const sight = await open(project, { path: `/runs/${run.slice(-8)}/events`, door: 'front' })
    const { page } = sight
    await sees(page, 'Waits for your answer')
    await project.kill()
    await sees(page, 'No daemon since')
    await project.up()
    project.stafette('answer', '3', 'Signed tokens (JWT)')
    await until('the run ends', async () => (await project.status(run)).status === 'succeeded')
    await sees(page, 'Succeeded: nothing is left to do')
    await until('no complaint is left', async () => !(await page.getByText('No daemon since').isVisible()))
    const lines = String(await project.get(`/v1/runs/${run}/events`)).trim().split('\n').length
    await sees(page, `${lines} events`)
    quiet(sight)
    await sight.close()
  }))

test('everything by keyboard: palette, keys, agents, follow', () =>
  story(TEAM, async (project) => {
    const run = await project.start('Add login with refresh tokens')
    await until('the question', async () => (await project.status(run)).waiting_on === 'human')
    const sight = await open(project, { path: `/runs/${run.slice(-8)}` })
    const { page } = sight
    await sees(page, 'Waits for your answer')
    await page.keyboard.press('j')
    await page.waitForURL(/agents\//)
    assert.equal(await page.getByRole('switch', { name: 'Follow' }).getAttribute('aria-checked'), 'false')
    await page.keyboard.press('f')
    await until('following again', async () => (await page.getByRole('switch', { name: 'Follow' }).getAttribute('aria-checked')) === 'true')
    await page.keyboard.press('Control+k')
    await page.keyboard.type('graph')
    await page.keyboard.press('Enter')
    await page.waitForURL(/graph$/)
    await page.keyboard.press('?')
    await sees(page, 'the next that needs you')
    await page.keyboard.press('Escape')
    await page.keyboard.press('n')
    await page.waitForURL(/inbox/)
    quiet(sight)
    await sight.close()
  }))

for (const theme of ['light', 'dark'] as const) {
  test(`axe finds no serious violation in the ${theme} theme`, () =>
    story(TEAM, async (project) => {
      const run = await project.start('Add login with refresh tokens')
      await until('the question', async () => (await project.status(run)).waiting_on === 'human')
      const short = run.slice(-8)
      for (const width of [1440, 360]) {
        for (const path of ['/inbox', `/runs/${short}`, `/runs/${short}/graph`, `/runs/${short}/numbers`, `/runs/${short}/events`, `/runs/${short}/track`, `/runs/${short}?handoff=h2`, `/runs/${short}?at=9`, '/runs/00000000']) {
          const sight = await open(project, { width, theme, path })
          await sight.page.waitForFunction(() => !document.querySelector('.waiting'))
          await sight.page.evaluate(() => new Promise((next) => requestAnimationFrame(() => requestAnimationFrame(next))))
          // The page's own policy forbids injected scripts, so that the checker comes by the debugger.
          const { readFileSync } = await import('node:fs')
          await sight.page.evaluate(readFileSync(axe, 'utf8'))
          const found = await sight.page.evaluate(async () => {
            const result = await (window as unknown as { axe: { run(): Promise<{ violations: { id: string; impact: string; nodes: { html: string }[] }[] }> } }).axe.run()
            return result.violations.filter((one) => one.impact === 'serious' || one.impact === 'critical').map((one) => `${one.id}: ${one.nodes.slice(0, 3).map((node) => node.html.slice(0, 160)).join(' | ')}`)
          })
          assert.deepEqual(found, [], `${path} at ${width}`)
          await sight.close()
        }
      }
    }))
}

test('s1_04 a handoff switches the tab, and the toggle stops it', (context) =>
  story(RELAY, async (project) => {
    if (!(await hasTerminals(project))) return context.skip('this daemon has no terminals yet')
    const run = await project.start('Run')
    const sight = await open(project, { path: `/runs/${run.slice(-8)}` })
    const { page } = sight
    const chosen = (): Promise<string> => page.locator('[role=tab][aria-selected=true]').innerText()
    await until('the runner is shown', async () => (await chosen()).includes('runner'))
    await shows(page, 'runner is ready')
    await shows(page, 'must not be done twice')
    await project.post(`/v1/runs/${run}/terminals/runner/send`, { text: 'pass', submit: true })
    await until('the anchor is shown', async () => (await chosen()).includes('anchor'))
    await shows(page, 'anchor is ready')
    quiet(sight)
    await sight.close()
    const again = await project.start('Run again')
    const still = await open(project, { path: `/runs/${again.slice(-8)}/agents/runner` })
    assert.equal(await still.page.getByRole('switch', { name: 'Follow' }).getAttribute('aria-checked'), 'false')
    await shows(still.page, 'must not be done twice')
    await project.post(`/v1/runs/${again}/terminals/runner/send`, { text: 'pass', submit: true })
    await sees(still.page, 'anchor has the baton')
    assert.match(await still.page.locator('[role=tab][aria-selected=true]').innerText(), /runner/)
    await still.close()
  }))

test('s1_16 control is taken and given back; before that no key arrives', (context) =>
  story(RELAY, async (project) => {
    if (!(await hasTerminals(project))) return context.skip('this daemon has no terminals yet')
    const run = await project.start('Run')
    const sight = await open(project, { path: `/runs/${run.slice(-8)}/agents/runner` })
    const { page } = sight
    await shows(page, 'must not be done twice')
    await page.locator('.terminal-box').click()
    await page.keyboard.type('never heard\n')
    await page.getByRole('switch', { name: 'Take control' }).click()
    await sees(page, 'Your keys reach runner')
    await page.locator('.xterm-helper-textarea').focus()
    await page.keyboard.type('from the page\n')
    await shows(page, '> from the page')
    assert.doesNotMatch(await screen(page), /never heard/)
    await page.locator('.xterm-helper-textarea').focus()
    await page.keyboard.press('Control+Escape')
    await until('control is given back', async () => !(await page.getByText('Your keys reach runner').isVisible()))
    quiet(sight)
    await sight.close()
  }))

test('s1_15 a crash shows, and restart works', (context) =>
  story(RELAY, async (project) => {
    if (!(await hasTerminals(project))) return context.skip('this daemon has no terminals yet')
    const run = await project.start('Run')
    const sight = await open(project, { path: `/runs/${run.slice(-8)}/agents/runner` })
    const { page } = sight
    await shows(page, 'must not be done twice')
    const before = /process (\d+)/.exec(await screen(page))?.[1]
    await page.getByRole('button', { name: 'Restart' }).click()
    await until('another process is there', async () => {
      const now = /process (\d+)/g
      const all = [...(await screen(page)).matchAll(now)].map((match) => match[1])
      return all.length > 0 && all.at(-1) !== before
    })
    await project.post(`/v1/runs/${run}/terminals/runner/send`, { text: 'die', submit: true })
    await sees(page, 'died (killed by signal 9)')
    quiet(sight)
    await sight.close()
  }))

test('a hostile terminal stream does nothing', (context) =>
  story(RELAY, async (project) => {
    if (!(await hasTerminals(project))) return context.skip('this daemon has no terminals yet')
    const run = await project.start('Run')
    const sight = await open(project, { path: `/runs/${run.slice(-8)}/agents/runner` })
    const { page } = sight
    const dialogs: string[] = []
    page.on('dialog', (dialog) => {
      dialogs.push(dialog.message())
      void dialog.dismiss()
    })
    await shows(page, 'must not be done twice')
    await page.evaluate(() => navigator.clipboard.writeText('mine'))
    await project.post(`/v1/runs/${run}/terminals/runner/send`, { text: 'hostile', submit: true })
    await until('all of it was printed', async () => JSON.stringify(await project.get(`/v1/runs/${run}/terminals/runner`)).includes('runner'))
    await shows(page, 'hostile is over')
    await page.evaluate(() => navigator.clipboard.writeText('mine'))
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), 'mine', 'the clipboard is the user’s')
    assert.equal(await page.title(), 'Stafette', 'the title is ours')
    assert.equal(await page.evaluate(() => (window as unknown as { hurt?: number }).hurt), undefined)
    assert.deepEqual(dialogs, [])
    assert.equal(await page.locator('img, iframe, object, embed').count(), 0)
    // Nothing that the terminal was asked came back as keys.
    assert.doesNotMatch(await screen(page), /> .*(\?1;2c|rgb:|\d+R)/)
    quiet(sight)
    await sight.close()
  }))

test('fifty terminals that write at once leave the page responsive', (context) =>
  story(fifty, async (project) => {
    if (!(await hasTerminals(project))) return context.skip('this daemon has no terminals yet')
    const run = await project.start('Write')
    const sight = await open(project, { path: `/runs/${run.slice(-8)}` })
    const { page } = sight
    await until('many terminals are there', async () => ((await project.get(`/v1/terminals?run=${run}`)) as unknown[]).length >= 50, 120_000)
    await page.evaluate(() => {
      const seen: number[] = []
      ;(window as unknown as { tasks: number[] }).tasks = seen
      new PerformanceObserver((list) => seen.push(...list.getEntries().map((entry) => entry.duration))).observe({ entryTypes: ['longtask'] })
    })
    const waits: number[] = []
    for (let step = 0; step < 12; step += 1) {
      const began = Date.now()
      await page.keyboard.press('j')
      await page.evaluate(() => new Promise((next) => requestAnimationFrame(() => requestAnimationFrame(next))))
      waits.push(Date.now() - began)
    }
    const tasks = await page.evaluate(() => (window as unknown as { tasks: number[] }).tasks)
    waits.sort((a, b) => a - b)
    console.log(`50 terminals: ${tasks.length} long tasks, the longest ${Math.round(Math.max(0, ...tasks))} ms; a key to the next terminal takes ${waits[6]} ms at the median, ${waits[11]} ms at most`)
    assert.ok(waits[6]! < 1000, 'the page answers')
    quiet(sight)
    await sight.close()
  }))

function fifty(folder: string): void {
  const names = Array.from({ length: 50 }, (_, index) => `w${String(index + 1).padStart(2, '0')}`)
  const agents = names.map((name) => `[agents.${name}]\nrunner = "pty"\ncommand = ["sh", "write.sh"]\n`).join('\n')
  // One turn may hand on 32 times at most: two share the work.
  const halves: [string, string[]][] = [
    ['start', ['more', ...names.slice(0, 25)]],
    ['more', names.slice(25)],
  ]
  const routes = halves.flatMap(([from, to]) => to.map((name) => `[[routes]]\nfrom = "${from}"\nto = "${name}"\n`)).join('\n')
  mkdirSync(join(folder, 'agents'), { recursive: true })
  for (const [from, to] of halves) {
    const offers = to.map((name) => `  { emit = "HANDOFF", payload = { to = "${name}", summary = "write" } },`).join('\n')
    writeFileSync(join(folder, `agents/${from}.toml`), `[[turn]]\nsteps = [\n${offers}\n]\n`)
  }
  writeFileSync(join(folder, 'write.sh'), 'stty -echo\nwhile :; do printf "%s \\033[3%dmline of a busy agent\\033[0m %s\\n" "$(date +%N)" $((RANDOM % 8)) "................................"; sleep 0.05; done\n')
  writeFileSync(
    join(folder, 'stafette.toml'),
    `[workflow]\nname = "fifty"\nentry = "start"\ntrust_bare_frames = true\n\n[agents.start]\nrunner = "scripted"\nscript = "agents/start.toml"\n\n[agents.more]\nrunner = "scripted"\nscript = "agents/more.toml"\n\n${agents}\n${routes}\n[limits]\nhandoffs_per_item = 100\nhandoffs_per_run = 100\ncooldown = "0s"\n\n[budget]\nmoney = "100usd"\ntokens = 100000000\n`,
  )
}
