// Pictures of every view in both themes at three widths: `npm run shots`, then look into web/shots.
// `npm run shots -- inbox` makes those whose names have the word in them.

import { join } from 'node:path'
import { login } from './login'
import { asks, blocks, learned, planned, stages } from './planned'
import { COUNCIL, PHASES, begin, hold, task } from './voices'
import { Project, type Sight, closeBrowser, folder, open, root, until } from './world'

const WIDTHS = [1440, 1024, 360] as const
const THEMES = ['light', 'dark'] as const

const only = process.argv[2] ?? ''
const into = folder(join(root, 'shots'))
const short = (run: string): string => run.slice(-8)

const team = new Project(join(root, 'e2e/team'))
const relay = new Project(join(root, 'e2e/relay'))
const empty = new Project(join(root, 'e2e/team'))
const review = new Project(join(root, 'e2e/review'))
const known = new Project(stages())
const blank = new Project(stages())
const council = new Project(COUNCIL)
const talking = new Project(COUNCIL)
const phases = new Project(PHASES)
const midway = new Project(PHASES)

/** Two runs in terminals: one at work, one whose program died. */
async function prepareRelay(): Promise<[string, string]> {
  // The recording holds back the last words for a while: the events tell who has read its task.
  const shows = async (run: string, agent: string): Promise<boolean> => {
    const handoff = agent === 'runner' ? 'h1' : 'h2'
    return (await relay.events(run)).some((one) => one.event === 'receipt_given' && one['receipt'] === 'ingested' && String(one['turn']).includes(`/${handoff}/`))
  }
  const works = await relay.start('Pass the baton')
  await until('the runner', () => shows(works, 'runner'))
  await relay.type(works, 'runner', 'pass')
  await until('the anchor', () => shows(works, 'anchor'))
  const died = await relay.start('Stumble')
  await until('the runner', () => shows(died, 'runner'))
  await relay.type(died, 'runner', 'die')
  await until('it died', async () => JSON.stringify(await relay.get(`/v1/runs/${died}/terminals/runner`)).includes('died'))
  return [short(works), short(died)]
}

/** Sets of edits: one that is talked about, and one of each other kind. */
async function prepareReview(): Promise<string> {
  const run = await review.start('Greet people in their own language')
  await until('the question', async () => (await review.status(run)).waiting_on === 'human')
  await review.post('/v1/changes/c1/comment', { text: 'Keep the old greeting for one release, please: the mobile team still calls it.', file: 'src/greet.ts', line: 4, by: 'mia' })
  const set = async (reason: string, file: string, content: string): Promise<string> =>
    ((await review.post('/v1/changes', { reason, changes: [{ file, action: 'create', content }], author: { person: 'mia' } })) as { id: string }).id
  await review.post(`/v1/changes/${await set('A page about greetings for the manual', 'docs/greetings.md', '# Greetings\n\nHello, and the rest.\n')}/apply`)
  await review.post(`/v1/changes/${await set('Say goodbye as well', 'src/bye.py', 'def bye(name: str) -> str:\n    return f"Bye, {name}"  # short\n')}/refuse`)
  await set('Count how often people are greeted, and warn when somebody is greeted more than three times in one day', 'src/count.rs', '//! Counts.\npub fn count(name: &str) -> usize {\n    name.len() * 2\n}\n')
  await until('the revision', async () => JSON.stringify(await review.get('/v1/changes/c1')).includes('"revision":2'))
  await review.post('/v1/changes/c1/comment', { text: 'Much better. Why seven languages and not eight?', file: 'src/greet.ts', line: 6, by: 'mia' })
  await until('the answer', async () => (await review.status(run)).waiting_on === 'human')
  return short(run)
}

/** The four stages: one run that was learned from, one that asks for time, one for a choice. */
async function prepareKnown(): Promise<{ decided: string; open: string; thread: string; block: string }> {
  const first = await learned(known, 'Get paid sooner')
  await known.post('/v1/insights/estimate-code/accept')
  await planned(known, 'Invoice abroad')
  const third = await known.start('Should we buy or build the invoicing for our customers in Switzerland, Norway and Iceland?')
  const question = await asks(known, third, 'decision_approval')
  const { nodes } = (await known.get('/v1/graph/nodes?label=Decision')) as { nodes: { id: string }[] }
  const { threads } = (await known.get('/v1/threads')) as { threads: { id: string; module: string }[] }
  const block = (await blocks(known)).find((one) => one.state === 'proposed')!.id
  return { block, decided: nodes.find((node) => node.id.startsWith(first))!.id, open: `${third}.${question.id}`, thread: threads.find((one) => one.id.startsWith(first) && one.module === 'discuss')?.id ?? threads[0]!.id }
}

/** A council that has decided, one that talks, a task in phases that is done, and one on its way. */
async function prepareCouncil(): Promise<{ decided: string; blind: number; talks: string; passed: string; writes: string }> {
  hold(talking, 'Jordan.2')
  hold(midway, 'write.2')
  const [decided, talks, passed, writes] = await Promise.all([begin(council), begin(talking), task(phases), task(midway)])
  await until('the decision', async () => ((await council.get('/v1/runs')) as { status: string }[]).filter((one) => one.status === 'succeeded').length === 2)
  await until('the phases', async () => (await phases.status(passed)).status === 'succeeded')
  await until('the word', async () => (await talking.events(talks)).filter((one) => one.event === 'council_heard').length === 8)
  await until('the repair', async () => (await midway.events(writes)).filter((one) => one.event === 'phase_begun').length === 4)
  await council.post(`/v1/runs/${decided}/notes`, { text: 'Mind those who lose their zeros: the manual is read by few.', by: 'mia' })
  const blind = (await council.events(decided)).filter((one) => one.event === 'council_heard')[2]!.seq
  return { decided: short(decided), blind, talks: short(talks), passed: short(passed), writes: short(writes) }
}

try {
  for (const project of [team, relay, empty, review, known, blank, council, talking, phases, midway]) await project.up()
  const [done, asks] = await login(team)
  const [works, died] = await prepareRelay()
  const reviewed = await prepareReview()
  const { decided, open: table, thread, block } = await prepareKnown()
  const { decided: agreed, blind, talks, passed, writes } = await prepareCouncil()
  const node = (key: string): string => `/knowledge/graph/${encodeURIComponent(key)}`
  const views: [string, Project, string][] = [
    ['empty', empty, '/'],
    ['inbox', team, '/inbox'],
    ['asked', team, `/runs/${asks}`],
    ['done', team, `/runs/${done}`],
    ['agent', team, `/runs/${done}/agents/builder`],
    ['graph', team, `/runs/${done}/graph`],
    ['numbers', team, `/runs/${done}/numbers`],
    ['events', team, `/runs/${done}/events`],
    ['legs', team, `/runs/${done}/track`],
    ['handoff', team, `/runs/${done}?handoff=h8`],
    ['refused', team, `/runs/${done}?handoff=h5`],
    ['past', team, `/runs/${done}?at=45`],
    ['lost', team, '/runs/00000000'],
    ['palette', team, `/runs/${done}#palette`],
    ['keys', team, `/runs/${done}#keys`],
    ['nochanges', empty, '/changes'],
    ['changes', review, '/changes'],
    ['change', review, '/changes/c1'],
    ['split', review, '/changes/c1?diff=split'],
    ['proposed', review, `/runs/${reviewed}?handoff=h3`],
    ['askschange', review, '/inbox'],
    ['know-none', empty, '/knowledge'],
    ['know-nothreads', blank, '/knowledge/threads'],
    ['know-nodecision', blank, '/knowledge/decisions'],
    ['know-noinsight', blank, '/knowledge/insights'],
    ['know-threads', known, '/knowledge/threads'],
    ['know-thread', known, `/knowledge/threads/${encodeURIComponent(thread)}`],
    ['know-search', known, '/knowledge/threads?q=invoices'],
    ['know-start', known, '/knowledge/graph'],
    ['know-graph', known, node(`decision:${decided}`)],
    ['know-goal', known, node('goal:craft')],
    ['know-week', known, '/knowledge/calendar'],
    ['know-block', known, `/knowledge/calendar?spot=${encodeURIComponent(block)}`],
    ['know-table', known, `/knowledge/decisions/${table}`],
    ['know-decided', known, `/knowledge/decisions/${decided}`],
    ['know-principles', known, '/knowledge/constitution'],
    ['know-insights', known, '/knowledge/insights/estimate-code'],
    ['nocouncil', team, `/runs/${done}/council`],
    ['nophases', team, `/runs/${done}/phases`],
    ['norelay', team, `/runs/${done}/relay`],
    ['council', council, `/runs/${agreed}/council`],
    ['blind', council, `/runs/${agreed}/council?at=${blind}`],
    ['talking', talking, `/runs/${talks}/council`],
    ['relay', council, `/runs/${agreed}/relay`],
    ['generation', talking, `/runs/${talks}/relay`],
    ['phases', phases, `/runs/${passed}/phases`],
    ['midway', midway, `/runs/${writes}/phases`],
    ['terminal', relay, `/runs/${works}`],
    ['died', relay, `/runs/${died}/agents/runner`],
  ]
  for (const theme of THEMES) {
    for (const width of WIDTHS) {
      const wanted = views.filter(([name]) => `${name}-${width}-${theme}`.includes(only))
      const sights = new Map<Project, Sight>()
      for (const [name, of, path] of wanted) {
        const file = `${name}-${width}-${theme}`
        const [address, over] = path.split('#')
        const sight = sights.get(of) ?? (await open(of, { width, height: width === 360 ? 740 : width === 1024 ? 768 : 900, theme }))
        sights.set(of, sight)
        const { page } = sight
        await page.goto(sight.url + address!)
        await page.waitForFunction(() => !document.querySelector('.waiting'))
        if (of === relay) await page.locator('.xterm-screen').waitFor()
        await page.waitForLoadState('networkidle', { timeout: 800 }).catch(() => undefined)
        if (over === 'palette') await page.keyboard.press('Control+k')
        if (over === 'keys') await page.keyboard.press('?')
        await page.evaluate(() => new Promise((next) => requestAnimationFrame(() => requestAnimationFrame(next))))
        await page.screenshot({ path: join(into, `${file}.png`) })
        for (const complaint of sight.complaints.splice(0)) console.error(`${file}: ${complaint}`)
      }
      for (const sight of sights.values()) await sight.close()
    }
  }
  console.log(`Pictures are in ${into}`)
} finally {
  for (const project of [team, relay, empty, review, known, blank, council, talking, phases, midway]) await project.down()
  await closeBrowser()
}
