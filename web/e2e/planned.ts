// A project of the four stages, and how far it can be brought without a browser.

import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Project, root, until } from './world'

/** Lays the project out; with an address its calendar is on that server. */
export function stages(caldav?: string): (folder: string) => void {
  return (folder) => {
    cpSync(join(root, 'e2e/stages'), folder, { recursive: true })
    if (!caldav) return
    const file = join(folder, 'stafette.toml')
    const text = readFileSync(file, 'utf8')
    const lines = `url = "${caldav}"\nuser_env = "CAL_USER"\npassword_env = "CAL_PASSWORD"\nlook = "1s"\n`
    writeFileSync(file, text.replace('folder = "calendar"\n', lines))
  }
}

/** The same in another time zone, with these events in its calendar. */
export function elsewhere(zone: string, events: readonly { title: string; start: string; end: string }[]): (folder: string) => void {
  return (folder) => {
    stages()(folder)
    const file = join(folder, 'stafette.toml')
    writeFileSync(file, readFileSync(file, 'utf8').replace('timezone = "UTC"', `timezone = "${zone}"`))
    mkdirSync(join(folder, 'calendar'), { recursive: true })
    for (const { title, start, end } of events) {
      const lines = ['BEGIN:VCALENDAR', 'VERSION:2.0', 'PRODID:-//test//EN', 'BEGIN:VEVENT', `UID:${title}`, 'DTSTAMP:20260101T000000Z', `DTSTART:${start}`, `DTEND:${end}`, `SUMMARY:${title}`, 'END:VEVENT', 'END:VCALENDAR', '']
      writeFileSync(join(folder, 'calendar', `${title}.ics`), lines.join('\r\n'))
    }
  }
}

export interface Asked {
  id: string
  run: string
  handoff: { offer: { question: { reason: string } } }
}

/** A run up to the question with this reason. */
export async function asks(project: Project, run: string, reason: string): Promise<Asked> {
  return until(reason, async () => ((await project.get('/v1/inbox')) as Asked[]).find((one) => one.run === run && one.handoff.offer.question.reason === reason))
}

export async function answer(project: Project, question: Asked, text: string): Promise<void> {
  await project.post(`/v1/inbox/${question.run}:${question.id}`, { text, by: 'test' })
}

export interface Block {
  id: string
  run: string
  title: string
  state: string
  start: number
  end: number
}

/** What was proposed, from the project's now for three weeks. */
export async function blocks(project: Project): Promise<Block[]> {
  const to = new Date(project.now() + 21 * 86_400_000).toISOString()
  return ((await project.get(`/v1/calendar?to=${to}`)) as { proposals: Block[] }).proposals
}

/** A run that was decided and planned, up to the question about its time. */
export async function planned(project: Project, request: string): Promise<string> {
  const run = await project.start(request)
  await answer(project, await asks(project, run, 'decision_approval'), 'build')
  await asks(project, run, 'plan_approval')
  await until('the blocks', async () => (await blocks(project)).filter((one) => one.run === run).length === 6)
  return run
}

/** A run that is over, whose work took half as long again as was thought. */
export async function learned(project: Project, request: string): Promise<string> {
  const run = await planned(project, request)
  await answer(project, await asks(project, run, 'plan_approval'), 'approve')
  await until('the end', async () => (await project.status(run)).status === 'succeeded')
  const tasks = await until('the tasks', async () => {
    const { nodes } = (await project.get('/v1/graph/nodes?label=Task&limit=100')) as { nodes: { id: string }[] }
    return nodes.filter((node) => node.id.startsWith(run)).length >= 6 && nodes.filter((node) => node.id.startsWith(run))
  })
  for (const [index, task] of tasks.entries()) {
    const done = new Date(project.now() + index * 2 * 86_400_000).toISOString()
    await project.post(`/v1/tasks/${encodeURIComponent(task.id)}`, { status: 'done', actual_hours: 2.9 + 0.04 * index, done_at: done })
  }
  await project.post('/v1/insights/reflect')
  return run
}
