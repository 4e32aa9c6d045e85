// All that the page knows: the runs it has read, the rows of the others, and how far it has heard.

import type { Recorded, RunView } from '../api/types'
import { type RunState, extend } from './run'

export interface World {
  rows: RunView[]
  runs: Map<string, RunState>
  /** The position of the last event that was heard. */
  cursor: number
  /** Runs with a hole in what was heard: they are read again from where they stand. */
  gaps: Set<string>
}

export type Action =
  | { type: 'rows'; rows: RunView[]; cursor: number }
  | { type: 'read'; run: string; events: Recorded[] }
  | { type: 'heard'; events: Recorded[] }

export const NOWHERE: World = { rows: [], runs: new Map(), cursor: 0, gaps: new Set() }

export function reduceWorld(world: World, action: Action): World {
  switch (action.type) {
    case 'rows':
      return { ...world, rows: action.rows, cursor: Math.max(world.cursor, action.cursor) }
    case 'read':
      return merge(world, new Map([[action.run, action.events]]), true)
    case 'heard': {
      const by = new Map<string, Recorded[]>()
      for (const event of action.events) {
        const list = by.get(event.run)
        if (list) list.push(event)
        else by.set(event.run, [event])
      }
      const cursor = action.events.reduce((most, event) => Math.max(most, event.position), world.cursor)
      return { ...merge(world, by, false), cursor }
    }
  }
}

function merge(world: World, news: Map<string, Recorded[]>, whole: boolean): World {
  const runs = new Map(world.runs)
  const gaps = new Set(world.gaps)
  for (const [run, events] of news) {
    const known = runs.get(run)
    const seq = known?.seq ?? 0
    const fresh = events.filter((event) => event.seq > seq)
    if (whole) gaps.delete(run)
    const opened = known ? open(known, events) : null
    if (opened) runs.set(run, opened)
    if (fresh.length === 0) continue
    if (fresh[0]!.seq !== seq + 1) {
      // Either we missed something, or it is a run that nobody has looked at yet.
      gaps.add(run)
      continue
    }
    const state = extend(opened ?? known ?? null, fresh)
    if (state) runs.set(run, state)
  }
  return { ...world, runs, gaps }
}

/** The run with what was told without its contents before, now that everybody may know them. */
function open(known: RunState, events: Recorded[]): RunState | null {
  const again = new Map<number, Recorded>()
  for (const { again: _, ...event } of events) if (event.seq <= known.seq && !event.sealed) again.set(event.seq, event)
  if (again.size === 0 || !known.events.some((event) => event.sealed && again.has(event.seq))) return null
  // What it changed is what it was at that moment, which nobody could know more of.
  return { ...known, events: known.events.map((event): Recorded => (event.sealed && again.has(event.seq) ? { ...again.get(event.seq)!, changed: event.changed ?? {} } : event)) }
}
