// Questions to the daemon. What goes wrong is a problem that says what to do.

import { credentials } from './session'
import type { Change, FileDiff, Problem, Recorded, Report, RunView, TerminalView } from './types'

export class Trouble extends Error {
  readonly problem: Problem
  constructor(problem: Problem) {
    super(problem.title)
    this.problem = problem
  }
}

/** A question that takes longer than this will not be answered. */
const PATIENCE = 20_000

async function ask(path: string, init: Omit<RequestInit, 'headers'> & { headers?: Record<string, string> } = {}): Promise<Response> {
  let answer: Response
  try {
    answer = await fetch(path, {
      signal: AbortSignal.timeout(PATIENCE),
      credentials: 'omit',
      ...init,
      headers: { ...credentials(), ...init.headers },
    })
  } catch (cause) {
    const detail = 'The page of the next one is opened with `stafette open`.'
    throw new Trouble({ code: 'unreachable', title: 'The daemon does not answer', status: 0, detail: cause instanceof Error ? detail : '' })
  }
  if (answer.ok) return answer
  let problem: Problem = { code: 'odd_answer', title: `The daemon answered with ${answer.status}`, status: answer.status }
  try {
    problem = { ...problem, ...((await answer.json()) as Partial<Problem>) }
  } catch {
    // Not a problem document: the status has to do.
  }
  throw new Trouble(problem)
}

export async function get<T>(path: string): Promise<T> {
  return (await ask(path)).json() as Promise<T>
}

export async function post<T>(path: string, body: object = {}, patience = PATIENCE): Promise<T> {
  const answer = await ask(path, {
    method: 'POST',
    signal: AbortSignal.timeout(patience),
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  return answer.json() as Promise<T>
}

/** The events of a run after number `after`, with what each of them changed. */
export async function eventsOf(run: string, after = 0): Promise<Recorded[]> {
  const text = await (await ask(`/v1/runs/${encodeURIComponent(run)}/events?after=${after}&state=true`)).text()
  return lines(text)
}

export function lines(text: string): Recorded[] {
  return text
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Recorded)
}

export const runs = (limit = 100): Promise<RunView[]> => get(`/v1/runs?limit=${limit}`)

/** How far the events go now. */
export async function head(): Promise<number> {
  return (await get<{ position: number }>('/v1/agents?finished=0')).position
}

export const terminals = (run: string): Promise<TerminalView[]> => get(`/v1/terminals?run=${encodeURIComponent(run)}`)

const terminal = (run: string, agent: string): string => `/v1/runs/${encodeURIComponent(run)}/terminals/${encodeURIComponent(agent)}`

export const restart = (run: string, agent: string): Promise<unknown> => post(`${terminal(run, agent)}/restart`)
export const interrupt = (run: string, agent: string): Promise<unknown> => post(`${terminal(run, agent)}/interrupt`)

/** A screen as it was, to be drawn. */
export interface Moment {
  cols: number
  rows: number
  data: string
  text: string[]
}

/** A screen as it was at a time. */
export const screenAt = (run: string, agent: string, time: number): Promise<Moment> =>
  get(`${terminal(run, agent)}/recording?at=${Math.round(time)}`)

export function liveAddress(run: string, agent: string, write: boolean): string {
  const base = location.origin.replace(/^http/, 'ws')
  return `${base}${terminal(run, agent)}/live?write=${write}`
}

export const answer = (question: string, text: string, values: Record<string, unknown> = {}): Promise<unknown> =>
  post(`/v1/inbox/${encodeURIComponent(question)}`, { text, values, by: 'page' })

export const steer = (run: string, what: 'pause' | 'unpause' | 'cancel', why = ''): Promise<unknown> =>
  post(`/v1/runs/${encodeURIComponent(run)}/${what}`, { by: 'page', why })

export const raise = (run: string, money: number): Promise<unknown> =>
  post(`/v1/runs/${encodeURIComponent(run)}/budget`, { money, tokens: 0 })

/** A word for the next generation; it stays with the last one there is. */
export const note = (run: string, text: string): Promise<{ run: string }> =>
  post(`/v1/runs/${encodeURIComponent(run)}/notes`, { text, by: 'page' })

/** A run that goes its own way from event `seq` of another one. */
export const fork = (run: string, seq: number): Promise<{ run: string }> =>
  post(`/v1/runs/${encodeURIComponent(run)}/fork`, { seq, by: 'page' })

/** What this daemon can be asked, by its own description; an older one has none. */
export async function paths(): Promise<Set<string>> {
  try {
    const described = await get<{ paths?: Record<string, unknown> }>('/openapi.json')
    return new Set(Object.keys(described.paths ?? {}))
  } catch {
    return new Set()
  }
}

export const start = (request: string): Promise<{ run: string }> => post('/v1/runs', { request, by: 'page' })

export const changes = async (): Promise<Change[]> => (await get<{ changes: Change[] }>('/v1/changes')).changes

const change = (id: string): string => `/v1/changes/${encodeURIComponent(id)}`

export const changeOf = (id: string): Promise<{ change: Change; diff: FileDiff[] }> => get(change(id))
export const approve = (id: string): Promise<Change> => post(`${change(id)}/approve`, { by: 'page' })
export const refuse = (id: string): Promise<Change> => post(`${change(id)}/refuse`, { by: 'page' })

/** The project's own command is asked, which may take as long as its tests do. */
const VALIDATION = 20 * 60_000

export const apply = (id: string): Promise<Report> => post(`${change(id)}/apply`, { by: 'page' }, VALIDATION)
export const undo = (id: string, withLater = false): Promise<Report> => post(`${change(id)}/undo`, { by: 'page', with_later: withLater }, VALIDATION)

export const remark = (id: string, text: string, file: string | null, line: number | null): Promise<Change> =>
  post(`${change(id)}/comment`, { by: 'page', text, file, line })
