// What is known and planned, in a real browser; the calendar is on a real CalDAV server when one is named.

import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { Page } from 'playwright-core'
import { type Block, answer, asks, blocks, elsewhere, learned, planned, stages } from './planned'
import { checked, quiet, sees, story } from './story'
import { type Project, closeBrowser, open, until } from './world'

after(closeBrowser)

const REQUEST = 'Get paid sooner'

/** A Sunday, late: the whole of the working week is still to come. On another day the blocks would lie elsewhere. */
const SUNDAY = '2026-11-15T22:00:00Z'

/** A story that begins then. */
const then = (from: (folder: string) => void, tell: (project: Project) => Promise<void>): Promise<void> => story(from, tell, SUNDAY)
const CALDAV = process.env['STAFETTE_TEST_CALDAV']

/** What a calendar program would find on the server: the text of every entry. */
async function entries(): Promise<string[]> {
  assert.ok(CALDAV, 'STAFETTE_TEST_CALDAV names the calendar')
  const word = Buffer.from(`${process.env['CAL_USER']}:${process.env['CAL_PASSWORD']}`).toString('base64')
  const authorization = `Basic ${word}`
  const wanted = '<c:calendar-query xmlns:d="DAV:" xmlns:c="urn:ietf:params:xml:ns:caldav"><d:prop><c:calendar-data/></d:prop><c:filter><c:comp-filter name="VCALENDAR"/></c:filter></c:calendar-query>'
  const found = await fetch(CALDAV, { method: 'REPORT', headers: { authorization, depth: '1', 'content-type': 'application/xml' }, body: wanted })
  assert.equal(found.status, 207, 'the server answers')
  return [...(await found.text()).matchAll(/BEGIN:VCALENDAR[\s\S]*?END:VCALENDAR/g)].map(([text]) => text)
}

/** A moment as iCalendar writes it. */
const stamp = (at: number): string => new Date(at).toISOString().replace(/[-:]|\.\d+/g, '')

const block = async (project: Project, title: string): Promise<Block> => (await blocks(project)).find((one) => one.title === title)!
const button = (page: Page, title: string) => page.getByRole('button', { name: new RegExp(`^${title} \\d`) })

test('s1_14 a decision is approved from its table; a block is moved by keys, another dragged, and both are in the calendar', () =>
  then(stages(CALDAV ? new URL('/', CALDAV).href : undefined), async (project) => {
    const run = await project.start(REQUEST)
    await asks(project, run, 'decision_approval')
    const sight = await open(project, { path: '/inbox' })
    const { page } = sight

    // From the question to its table: the breakdown, and what other weights would do.
    await page.getByRole('button', { name: 'Look at the table' }).click()
    const rows = page.locator('.returns tbody tr')
    await until('three options', async () => (await rows.count()) === 3)
    assert.match(await rows.first().innerText(), /Build it ourselves.*best/s)
    await page.getByRole('slider', { name: 'hours' }).fill('3')
    await sees(page, 'With these weights')
    await until('another one is best', async () => /Buy a service.*best/s.test(await rows.first().innerText()))
    await page.getByRole('button', { name: 'As it was' }).click()
    await until('it is as it was', async () => /Build it ourselves.*best/s.test(await rows.first().innerText()))
    await page.getByRole('button', { name: /^Approve .*Build it ourselves/ }).click()
    const question = await asks(project, run, 'plan_approval')
    const told = (await project.events(run)).find((one) => one.event === 'question_answered')
    assert.deepEqual([told?.['text'], String(told?.['by'])], ['build', 'page'], 'the person chose on the page')
    await until('it is decided', async () => (await page.locator('.side-line').first().innerText()).includes('planned') || (await page.locator('.side-line').first().innerText()).includes('pending'))

    // To the week that it asks for.
    await page.keyboard.press('i')
    await page.getByRole('button', { name: 'Look at the week' }).click()
    await until('six blocks wait', async () => (await page.locator('.stand.is-proposed').count()) > 3)
    if (CALDAV) assert.deepEqual(await entries(), [], 'nothing is in the calendar before a yes')

    // One by the keys: an hour later, and yes.
    const before = await block(project, 'Read the old invoices')
    await button(page, before.title).focus()
    for (let step = 0; step < 4; step += 1) await page.keyboard.press('ArrowDown')
    await sees(page, 'not moved yet')
    assert.equal((await block(project, before.title)).start, before.start, 'nothing is moved before it is said')
    await page.keyboard.press('Enter')
    await until('it is in the calendar', async () => (await block(project, before.title)).state === 'written')
    const moved = await block(project, before.title)
    assert.deepEqual([moved.start, moved.end], [before.start + 3_600_000, before.end + 3_600_000])
    await button(page, before.title).and(page.locator('.is-written')).waitFor()

    // Another by hand: to the next day, two hours later.
    const other = await block(project, 'Write the template')
    const later = other.start + 26 * 3_600_000
    const box = (await button(page, other.title).boundingBox())!
    const day = (await page.locator('.grid-stands').boundingBox())!.width / 7
    await page.mouse.move(box.x + box.width / 2, box.y + 10)
    await page.mouse.down()
    await page.mouse.move(box.x + box.width / 2, box.y + 60, { steps: 4 })
    await page.mouse.move(box.x + box.width / 2 + day, box.y + 10 + 2 * 44, { steps: 4 })
    await page.mouse.up()
    await until('it is moved', async () => (await block(project, other.title)).start === later)
    assert.equal((await block(project, other.title)).state, 'proposed', 'moving is no yes')
    await page.getByRole('button', { name: /^Accept( Enter)?$/ }).click()
    await until('it is in the calendar', async () => (await block(project, other.title)).state === 'written')

    // What stands in the way is said, and nothing happens.
    const third = await block(project, 'Number them')
    await button(page, third.title).focus()
    await page.keyboard.press('ArrowLeft')
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('Enter')
    await sees(page, 'is there from')
    assert.equal((await block(project, third.title)).state, 'proposed')
    await page.keyboard.press('x')
    await until('it is dropped', async () => (await block(project, third.title)).state === 'dropped')

    // Seven days on is another week; the page turns with the block.
    const far = await block(project, 'Send by mail')
    await button(page, far.title).focus()
    for (let day = 0; day < 7; day += 1) {
      await page.keyboard.press('ArrowRight')
      await page.locator('.stand.is-moving:focus').waitFor()
    }
    await page.keyboard.press('Enter')
    await until('it is in the calendar', async () => (await block(project, far.title)).state === 'written')
    assert.equal((await block(project, far.title)).start, far.start + 7 * 86_400_000)

    if (CALDAV) {
      const kept = await entries()
      assert.equal(kept.length, 3)
      const of = (title: string): string => kept.find((text) => text.includes(`SUMMARY:${title}`)) ?? ''
      assert.match(of(before.title), new RegExp(`DTSTART[^\\n]*${stamp(moved.start)}`))
      assert.match(of(other.title), new RegExp(`DTSTART[^\\n]*${stamp(later)}`))
    }
    await page.getByRole('button', { name: 'Accept all that is left' }).click()
    await until('the run goes on to its end', async () => (await project.status(run)).status === 'succeeded')
    assert.equal((await block(project, third.title)).state, 'dropped', 'what was dropped stays so')
    if (CALDAV) await until('all of it is in the calendar', async () => (await entries()).length === 5)
    assert.ok(question)
    quiet(sight)
    await sight.close()
  }))

test('s1_14 the week goes by the clock of the project, wherever the browser is, and nine is nine when clocks are set', () => {
  const events = [
    { title: 'Saturday', start: '20260328T080000Z', end: '20260328T093000Z' },
    { title: 'Sunday', start: '20260329T070000Z', end: '20260329T083000Z' },
    { title: 'Autumn', start: '20261025T080000Z', end: '20261025T093000Z' },
  ]
  return then(elsewhere('Europe/Berlin', events), async (project) => {
    const sight = await open(project, { path: '/knowledge/calendar/2026-03-25', zone: 'America/Los_Angeles' })
    const { page } = sight
    const stand = (title: string) => page.locator('.stand', { hasText: title })
    const place = async (title: string): Promise<[string, string]> => {
      await stand(title).waitFor()
      const { top, left } = await stand(title).evaluate((one) => (one as HTMLElement).style)
      assert.match(await stand(title).innerText(), /09:00–10:30/)
      return [top, left]
    }
    const [[saturday, sixth], [sunday, seventh]] = [await place('Saturday'), await place('Sunday')]
    assert.equal(saturday, sunday, 'both are beside nine')
    assert.notEqual(sixth, seventh, 'on days of their own')
    await sees(page, 'the clock of Europe/Berlin')
    assert.match(await page.locator('.part-head h1').innerText(), /Mon, Mar 23 – Sun, Mar 29/)
    await page.goto(`${sight.url}/knowledge/calendar/2026-10-25`)
    assert.equal((await place('Autumn'))[0], saturday)

    // A block that was planned for nine is there at nine, and a day later still.
    await planned(project, REQUEST)
    const [first] = await blocks(project)
    assert.ok(first)
    const hour = (at: number): string => new Intl.DateTimeFormat('en', { timeZone: 'Europe/Berlin', hour: '2-digit', minute: '2-digit', hourCycle: 'h23' }).format(at)
    const day = new Intl.DateTimeFormat('en-CA', { timeZone: 'Europe/Berlin', dateStyle: 'short' }).format(first.start)
    await page.goto(`${sight.url}/knowledge/calendar/${day}`)
    assert.match(await button(page, first.title).innerText(), new RegExp(`${hour(first.start)}–${hour(first.end)}`))
    await button(page, first.title).focus()
    for (let step = 0; step < 7; step += 1) {
      await page.keyboard.press('ArrowRight')
      await page.locator('.stand.is-moving:focus').waitFor()
    }
    await page.keyboard.press('Enter')
    await until('it is in the calendar', async () => (await block(project, first.title)).state === 'written')
    const later = (await block(project, first.title)).start
    assert.deepEqual([hour(later), Math.round((later - first.start) / 86_400_000)], [hour(first.start), 7])
    quiet(sight)
    await sight.close()
  })
})

test('s1_11 s1_12 talk is searched, the graph is walked by keys, principles have their answers', () =>
  then(stages(), async (project) => {
    const run = await learned(project, REQUEST)
    const sight = await open(project, { path: '/knowledge/threads' })
    const { page } = sight
    await page.locator('.side-line').first().waitFor()
    await page.keyboard.press('/')
    await page.keyboard.type('way back')
    await page.locator('.side-words mark').first().waitFor()
    await page.waitForURL(/q=way\+back/)
    await page.locator('.side-line').first().click()
    await page.locator('.message.is-here').waitFor()
    assert.match(await page.locator('.message.is-here').innerText(), /there is a way back/)
    // The address leads to the same message.
    await page.reload()
    await page.locator('.message.is-here').waitFor()

    await page.goto(`${sight.url}/knowledge/graph/goal%3Acraft`)
    const here = page.locator('.walk-node.is-here')
    await here.waitFor()
    await here.focus()
    await page.keyboard.press('ArrowRight')
    await page.keyboard.press('Enter')
    await page.waitForURL(/knowledge\/graph\/(decision|discussion)/)
    await page.goto(`${sight.url}/knowledge/graph`)
    await page.getByRole('button', { name: /Export for the tax office/ }).click()
    await page.getByRole('heading', { name: 'is part of' }).waitFor()
    await page.locator('.walk-side .walk-step').filter({ hasText: 'Decision' }).first().click()
    await page.getByRole('button', { name: 'what the options return' }).click()
    await page.locator('.returns').waitFor()
    await sees(page, 'took 2.9 h')

    await page.goto(`${sight.url}/knowledge/constitution?run=${run.slice(-8)}`)
    await sees(page, 'The old invoices are kept as PDF.')
    await page.getByRole('button', { name: /refused/ }).click()
    await sees(page, 'The old invoices could not be read any more.')
    await page.locator('.principle.is-violated').waitFor()
    quiet(sight)
    await sight.close()
  }))

test('s1_10 an insight is accepted and rolled back, and the next table says so', () =>
  then(stages(), async (project) => {
    await learned(project, REQUEST)
    const sight = await open(project, { path: '/knowledge/insights' })
    const { page } = sight
    const insight = page.locator('.insight').filter({ hasText: 'work of the kind code takes' })
    await insight.getByRole('button', { name: 'Accept' }).click()
    await sees(page, 'Version 2 counts from now on')
    await insight.getByText('Since version').waitFor()
    const next = await project.start('Invoice abroad')
    const question = await asks(project, next, 'decision_approval')
    await page.goto(`${sight.url}/knowledge/decisions/${next}.${question.id}`)
    await sees(page, 'work of the kind `code` takes 1.50 times what is estimated')
    await sees(page, 'hours × 1.50')
    await page.keyboard.press('1')
    await asks(project, next, 'plan_approval')
    await page.goto(`${sight.url}/knowledge/insights/estimate-code`)
    await insight.getByRole('button', { name: 'Roll back' }).waitFor()
    await page.keyboard.press('u')
    await sees(page, 'Version 1 counts again, as version 3')
    await insight.getByRole('button', { name: 'Accept' }).waitFor()
    await page.getByRole('button', { name: 'Take up again: version 2' }).click()
    await sees(page, 'Version 2 counts again, as version 4')
    quiet(sight)
    await sight.close()
  }))

test('s1_14 a block is moved and accepted with a thumb, on a phone of 360 pixels', () =>
  then(stages(), async (project) => {
    await planned(project, REQUEST)
    const sight = await open(project, { width: 360, height: 740, path: '/knowledge/calendar' })
    const { page } = sight
    await page.getByRole('button', { name: /Read the old invoices/ }).tap()
    const before = await block(project, 'Read the old invoices')
    await page.getByRole('button', { name: '15 min later' }).tap()
    await page.getByRole('button', { name: /Move and accept/ }).tap()
    await until('it is in the calendar', async () => (await block(project, before.title)).state === 'written')
    assert.equal((await block(project, before.title)).start, before.start + 15 * 60_000)
    for (const part of ['calendar', 'decisions', 'threads', 'graph', 'constitution', 'insights']) {
      await page.goto(`${sight.url}/knowledge/${part}`)
      await page.locator('.knowledge-nav').waitFor()
      await page.waitForFunction(() => !document.querySelector('.waiting'))
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)
      assert.ok(wide <= 0, `${part}: ${wide} pixels stick out`)
    }
    quiet(sight)
    await sight.close()
  }))

test('axe finds no serious violation in what is known', () =>
  then(stages(), async (project) => {
    const run = await learned(project, REQUEST)
    const again = await planned(project, 'Invoice abroad')
    const third = await project.start('Invoice by post')
    const question = await asks(project, third, 'decision_approval')
    const { nodes } = (await project.get('/v1/graph/nodes?label=Decision')) as { nodes: { id: string }[] }
    const decided = nodes.find((node) => node.id.startsWith(run))!.id
    const [waiting] = (await blocks(project)).filter((one) => one.state === 'proposed')
    const day = new Date(waiting!.start).toISOString().slice(0, 10)
    await checked(project, [
      '/knowledge/threads',
      '/knowledge/threads?q=invoices',
      '/knowledge/graph',
      `/knowledge/graph/${encodeURIComponent(`decision:${decided}`)}`,
      '/knowledge/graph/task%3Anone',
      `/knowledge/calendar/${day}?spot=${encodeURIComponent(waiting!.id)}`,
      `/knowledge/decisions/${third}.${question.id}`,
      `/knowledge/decisions/${decided}`,
      `/knowledge/constitution?run=${again.slice(-8)}`,
      '/knowledge/insights/estimate-code',
      '/inbox',
    ])
    await answer(project, question, 'none')
  }))

test('axe finds no serious violation where nothing is known yet, and each part says how to begin', () =>
  then(stages(), async (project) => {
    const sight = await open(project)
    for (const [part, words] of [
      ['decisions', 'Nothing was decided yet'],
      ['calendar', 'Nothing takes place in this week'],
      ['threads', 'Nothing was said yet'],
      ['graph', 'Stay well'],
      ['constitution', 'No run has answered it yet'],
      ['insights', 'Nothing was learned yet'],
    ] as const) {
      await sight.page.goto(`${sight.url}/knowledge/${part}`)
      await sees(sight.page, words)
    }
    await sight.close()
    await checked(project, ['/knowledge/decisions', '/knowledge/calendar', '/knowledge/threads', '/knowledge/insights'])
  }))
