// A council, its generations and phases in a real browser, with scripted voices.

import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { checked, quiet, sees, story } from './story'
import { COUNCIL, PHASES, TOPIC, begin, hold, release, task } from './voices'
import { closeBrowser, open, root, until } from './world'

const TEAM = join(root, 'e2e/team')

after(closeBrowser)

const short = (run: string): string => run.slice(-8)

test('s4_03 a council comes to its decision before your eyes, with one dissent, and the page leads to the next generation', () =>
  story(COUNCIL, async (project) => {
    hold(project, 'Alex.1', 'Pierre.1', 'Alex.2', 'Jordan.2', 'Pierre.2', 'Alex.3')
    const run = await begin(project)
    const sight = await open(project, { path: `/runs/${short(run)}/council` })
    const { page } = sight
    const quorum = page.getByRole('meter', { name: /^Quorum/ })
    const agreed = (part: string): Promise<void> => quorum.and(page.getByRole('meter', { name: part })).waitFor()
    const member = (name: string): Promise<string> => page.locator('.member', { hasText: name }).innerText()
    const is = (name: string, words: RegExp): Promise<boolean> => until(`${name} ${words}`, async () => words.test(await member(name)))
    const speech = (name: string) => page.locator('.speech', { hasText: name })

    // The first vote is blind: that somebody has voted is seen, and nothing else.
    await page.getByRole('heading', { name: TOPIC, level: 2 }).waitFor()
    await speech('Alex').getByText('has the word').waitFor()
    await agreed('0 of 5 have voted')
    release(project, 'Alex.1')
    await agreed('4 of 5 have voted')
    await speech('Pierre').getByText('has the word').waitFor()
    await is('Morgan', /has voted/)
    assert.doesNotMatch(await page.locator('.council').innerText(), /leading zero|CSV first|disagrees|agrees/, 'no vote is known before its time')
    release(project, 'Pierre.1')

    // All votes are opened at once.
    await agreed('1 of 6 agree, 5 are needed')
    await sees(page, 'A leading zero of a customer number is gone')
    await is('Morgan', /disagrees[\s\S]*CSV loses types/)
    await is('Jordan', /abstains/)
    await is('Alex', /×2[\s\S]*has the word/)
    await sees(page, 'The export streams: no file is held in memory')

    // The quorum fills, and the voice of Alex counts twice.
    release(project, 'Alex.2')
    await agreed('3 of 6 agree')
    await speech('Jordan').getByText('has the word').waitFor()
    release(project, 'Jordan.2')
    await agreed('4 of 6 agree')
    release(project, 'Pierre.2')
    await agreed('Consensus: 5 of 6 agree, 5 were needed')
    const side = page.getByRole('complementary', { name: 'Where the council stands' })
    await side.getByText('Morgan disagrees').waitFor()
    await side.getByText('the schema file does not reach those who lose data').first().waitFor()
    await side.getByText('Leading zeros are a chapter of the manual').waitFor()

    // What was said is in a handoff of its own.
    await page.locator('.speech', { hasText: 'Morgan’s point stands' }).getByRole('button', { name: /^h\d+$/ }).click()
    await page.waitForURL(/handoff=h\d+/)
    await page.keyboard.press('Escape')

    // A moment of the past is shown as it was, the closed votes closed.
    const heard = (await project.events(run)).find((one) => one.event === 'council_heard' && one['member'] === 'Morgan')!
    await page.goto(`${sight.url}/runs/${short(run)}/council?at=${heard.seq}`)
    await agreed('3 of 5 have voted')
    assert.doesNotMatch(await page.locator('.council').innerText(), /leading zero/)
    await page.keyboard.press('l')
    await agreed('Consensus: 5 of 6 agree')

    // The second generation follows, and the page leads from one to the other.
    await side.getByRole('button', { name: 'Generation 2 goes on' }).click()
    await page.waitForURL((url) => url.pathname.endsWith('/council') && !url.pathname.includes(short(run)))
    await page.getByRole('heading', { name: 'How is the schema file named, and how does it grow?', level: 2 }).waitFor()
    await speech('Alex').getByText('has the word').waitFor()
    await page.keyboard.press('r')
    await page.getByRole('heading', { name: /^Generation 2/ }).waitFor()
    await sees(page, 'of at most 3')
    await page.keyboard.press('<')
    await page.waitForURL((url) => url.pathname === `/runs/${short(run)}/relay`)
    await page.getByRole('heading', { name: /^Generation 1/ }).waitFor()
    await sees(page, 'the next topic is: How is the schema file named')
    await sees(page, 'continue discussion')
    await page.locator('.generations').getByRole('button', { name: 'How is the schema file named' }).waitFor()
    await page.getByRole('meter', { name: 'Money: $0.23 of $1.00' }).waitFor()
    await page.getByRole('meter', { name: 'Money of Morgan: $0.04 of $0.10' }).waitFor()
    await page.getByRole('meter', { name: 'Handoffs of Morgan: 2 of 6' }).waitFor()
    await page.getByRole('meter', { name: 'Tokens of Alex: 6.7k of 20.0k' }).waitFor()

    // A note goes to the last generation there is, and from there to the next.
    await page.keyboard.press('m')
    await page.keyboard.type('Mind those who lose their zeros')
    await page.keyboard.press('Control+Enter')
    await sees(page, 'It is left with generation 2')
    await page.getByRole('button', { name: 'Generation 2 →' }).click()
    await page.getByRole('heading', { name: /^Generation 2/ }).waitFor()
    await page.locator('.notes').getByText('Mind those who lose their zeros').waitFor()
    release(project, 'Alex.3')
    await sees(page, 'nothing is left to do until a person names the next topic')
    await sees(page, 'None follows')
    assert.equal(((await project.get('/v1/runs')) as unknown[]).length, 2)
    quiet(sight)
    await sight.close()
  }))

test('s3_05 phases are watched: tokens against typical, findings, summaries, and what was saved', () =>
  story(PHASES, async (project) => {
    hold(project, 'research.1', 'write.2')
    const run = await task(project)
    const sight = await open(project, { path: `/runs/${short(run)}` })
    const { page } = sight
    await sees(page, 'research has the baton')
    await page.keyboard.press('h')
    await page.waitForURL(/\/phases$/)
    const phase = (name: string) => page.getByRole('region', { name: `Phase ${name}` })
    await phase('research').getByText('is at it').waitFor()
    await phase('write').getByText('It begins with the summary of the phase before').waitFor()
    release(project, 'research.1')
    await phase('research').getByRole('meter', { name: '1.4k tokens, typically 1.5k' }).waitFor()
    await phase('research').getByText(/Handed on: \d+ of 500 tokens/).waitFor()
    await phase('research').getByText('src/legacy/dump.ts').waitFor()
    await phase('validate').getByText('formulas in fields are run by spreadsheets').first().waitFor()
    await phase('validate').getByText('sent back').waitFor()
    await sees(page, 'Saved so far')
    release(project, 'write.2')
    await sees(page, 'instead of 6.0k')
    await phase('validate').getByText('round 2 of 3').waitFor()
    await phase('validate').getByText('Round 1:').click()
    await phase('validate').getByText('formulas in fields are run by spreadsheets').first().waitFor()
    await page.goto(`${sight.url}/runs/${short(run)}/phases/validate`)
    await phase('validate').getByText('Everything holds').waitFor()
    quiet(sight)
    await sight.close()
  }))

test('s4_10 the council is followed and a note is left on a phone of 360 pixels', () =>
  story(COUNCIL, async (project) => {
    hold(project, 'Jordan.2')
    const run = await begin(project)
    const sight = await open(project, { width: 360, height: 740, path: `/runs/${short(run)}/track` })
    const { page } = sight
    const fits = async (): Promise<void> => {
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)
      assert.ok(wide <= 0, `${wide} pixels stick out`)
    }
    await page.getByRole('navigation', { name: 'The relay' }).getByRole('button', { name: 'Council' }).tap()
    await sees(page, '3 of 6 agree, 5 are needed')
    await fits()
    await page.getByRole('navigation', { name: 'The relay' }).getByRole('button', { name: 'Relay' }).tap()
    await page.getByRole('heading', { name: /^Generation 1/ }).waitFor()
    await fits()
    await page.getByRole('textbox', { name: 'A note for the next generation' }).fill('Ask the mobile team')
    await page.getByRole('button', { name: 'Leave note' }).tap()
    await page.locator('.notes').getByText('Ask the mobile team').waitFor()
    await until('it is recorded', async () => JSON.stringify(await project.events(run)).includes('Ask the mobile team'))
    release(project, 'Jordan.2')
    await until('both generations are over', async () => ((await project.get('/v1/runs')) as { status: string }[]).filter((one) => one.status === 'succeeded').length === 2)
    quiet(sight)
    await sight.close()
  }))

test('axe finds no serious violation in councils, generations and phases', async () => {
  await story(COUNCIL, async (project) => {
    hold(project, 'Jordan.2')
    const run = await begin(project)
    const over = `/runs/${short(run)}`
    const heard = async (): Promise<number | undefined> => (await project.events(run)).filter((one) => one.event === 'council_heard').at(2)?.seq
    const seq = await until('three have voted', heard)
    await checked(project, [`${over}/council`, `${over}/council?at=${seq}`, `${over}/relay`, `${over}/phases`])
    release(project, 'Jordan.2')
    await until('it is over', async () => (await project.status(run)).status === 'succeeded')
    await checked(project, [`${over}/council`, `${over}/relay`])
  })
  await story(PHASES, async (project) => {
    const run = await task(project)
    await until('it is over', async () => (await project.status(run)).status === 'succeeded')
    await checked(project, [`/runs/${short(run)}/phases`, `/runs/${short(run)}/council`, `/runs/${short(run)}/relay`])
  })
})

test('a run without council, phases or generations says how to get them', () =>
  story(TEAM, async (project) => {
    hold(project, 'planner')
    const run = await project.start('Add login with refresh tokens')
    const sight = await open(project, { path: `/runs/${short(run)}` })
    const { page } = sight
    await sees(page, 'has the baton')
    release(project, 'planner')
    for (const [key, command] of [
      ['v', 'stafette init --template council'],
      ['h', 'stafette init --template phases'],
      ['r', 'stafette run "…" --continuous'],
    ] as const) {
      await page.keyboard.press(key)
      await sees(page, command)
    }
    await page.keyboard.press('Control+k')
    await page.keyboard.type('council')
    await page.keyboard.press('Enter')
    await page.waitForURL(/\/council$/)
    quiet(sight)
    await sight.close()
  }))
