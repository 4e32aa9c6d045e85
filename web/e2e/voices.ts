// Teams whose members say what they are told to say, when they are let.

import { cpSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Project, root } from './world'

/** A team that is laid out with what plays its members. */
const played = (name: string) => (folder: string): void => {
  cpSync(join(root, 'e2e', name), folder, { recursive: true })
  cpSync(join(root, 'e2e/play.sh'), join(folder, 'play.sh'))
}

export const COUNCIL = played('council')
export const PHASES = played('phases')
export const TOPIC = 'Which format do exports have?'

/** Keeps a voice back, the nth time that it is called. */
export function hold(project: Project, ...voices: string[]): void {
  mkdirSync(join(project.folder, 'hold'), { recursive: true })
  for (const voice of voices) writeFileSync(join(project.folder, 'hold', voice), '')
}

export const release = (project: Project, voice: string): void => rmSync(join(project.folder, 'hold', voice))

/** Begins generations that follow each other. */
export async function begin(project: Project): Promise<string> {
  const { run } = (await project.post('/v1/runs', { request: TOPIC, by: 'test', continuous: { max_runs: 3, pause: 0 } })) as { run: string }
  return run
}

/** Begins a task in phases. */
export async function task(project: Project): Promise<string> {
  const { run } = (await project.post('/v1/runs', { request: 'Let people export reports as CSV', by: 'test', inputs: { task_id: 'export-001', feature: 'export' } })) as { run: string }
  return run
}
