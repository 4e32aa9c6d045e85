import { readFileSync } from 'node:fs'
import type { Changed, Recorded, RunView } from '../src/api/types'
import { type RunState, extend } from '../src/state/run'

/** The runs that are recorded from their beginning to their end. */
export const NAMES = ['demo', 'feature', 'crash', 'circular', 'limit', 'unknown', 'generation1', 'generation2', 'phases']

const folder = new URL('./logs/', import.meta.url)

function lines<T>(file: string): T[] {
  const text = readFileSync(new URL(file, folder), 'utf8')
  return text
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as T)
}

/** The events of a run that a real daemon recorded, with what it would send that each of them changed. */
export function log(name: string): Recorded[] {
  const changed = lines<Changed>(`${name}.changed.jsonl`)
  return lines<Recorded>(`${name}.jsonl`).map((event, index) => ({ ...event, changed: changed[index]! }))
}

/** The state after all of `events`, up to and with number `until`. */
export const replay = (events: readonly Recorded[], until = Infinity): RunState | null => extend(null, events.filter((event) => event.seq <= until))

/** The state after one more event. */
export const reduce = (state: RunState | null, event: Recorded): RunState | null => extend(state, [event])

/** The same run in the daemon's own words. */
export function view(name: string): RunView & { tally: Record<string, number> } {
  return JSON.parse(readFileSync(new URL(`${name}.view.json`, folder), 'utf8'))
}

/** A run with `agents` agents and about `events` events. */
export function crowd(agents: number, events: number): Recorded[] {
  const run = '01a1df4c-0000-7000-8000-00000000c0de'
  const start = Date.parse('2026-01-01T09:00:00Z')
  const names = Array.from({ length: agents }, (_, index) => `agent-${String(index + 1).padStart(2, '0')}`)
  const list: Recorded[] = []
  const push = (event: object): void => {
    const seq = list.length + 1
    list.push({ position: seq, run, seq, at: new Date(start + seq * 900).toISOString(), ...event } as Recorded)
  }
  const offer = (from: string, to: string): object => ({
    from,
    to,
    kind: 'transfer',
    reason: 'task_handoff',
    detail: '',
    priority: 'medium',
    summary: `Part of the work for ${to}`,
    outputs: {},
    missing: [],
  })
  push({
    event: 'run_created',
    workflow: {
      workflow: { name: 'crowd', entry: names[0] },
      agents: Object.fromEntries(names.map((name) => [name, { role: 'One of many.', runner: 'pty' }])),
      routes: names.map((name, index) => ({ from: name, to: names[(index + 1) % agents], reason: '', requires: [] })),
      loops: [],
    },
    request: 'Move the whole code base to the new edition, one crate an agent',
    inputs: {},
    budget: { money: 50, tokens: 20_000_000, time: 86_400_000 },
    by: 'test',
  })
  const changed = (id: string, fields: object): object => ({ changed: { handoffs: { [id]: fields } } })
  names.forEach((name, index) => {
    const id = `h${index + 1}`
    const made = { id, offer: offer('human', name), trail: { held_by: [] }, state: { pending: { not_before: 0 } }, admitted_at: start }
    push({ event: 'handoff_admitted', ...made, ...changed(id, { ...made, attempt: 1, turn: 0, usage: { tokens: 0, money: 0 } }) })
    const turn = { ordered_at: start, finish_by: start + 9e7, receipt: 'queued' }
    push({ event: 'turn_ordered', turn: `${run}/${id}/1.1`, accept_by: 0, finish_by: start + 9e7, reserved: { tokens: 10_000, money: 0.1 }, ...changed(id, { state: { ordered: turn }, turn: 1 }) })
  })
  for (let index = 0; list.length < events; index += 1) {
    const id = `h${(index % agents) + 1}`
    const note = `Step ${Math.floor(index / agents) + 1}: reading module ${index}`
    const turn = { ordered_at: start, finish_by: start + 9e7, receipt: 'acknowledged', note }
    push({ event: 'lease_renewed', turn: `${run}/${id}/1.1`, due: 0, note, ...changed(id, { state: { running: turn } }) })
  }
  return list
}
