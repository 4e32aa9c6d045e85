// Generations: which one a run is, what those before have left, and what follows.

import type { Lineage } from '../api/team'
import type { RunState } from './run'

export interface Generation {
  number: number
  run: string | null
  phase: string
  /** What it did, or what it is about. */
  about: string
  /** What it cost, as far as that is known. */
  cost: number | null
  place: 'before' | 'here' | 'after'
}

/** As far as a line of generations is followed. */
const FURTHEST = 100

/** All generations that are known from this one, the oldest first. */
export function generations(run: RunState, others: ReadonlyMap<string, RunState>): Generation[] {
  const { lineage } = run
  if (!lineage) return []
  const before = (lineage.past ?? []).map(({ number, run, phase, summary, cost }): Generation => ({ number, run: run ?? null, phase, about: summary, cost, place: 'before' }))
  const line = [...before, self(run, lineage, 'here')]
  for (let one = after(run, others); one && line.length < FURTHEST; one = after(one, others)) {
    if (one.lineage) line.push(self(one, one.lineage, 'after'))
  }
  const last = line.at(-1)
  const over = (others.get(last?.run ?? '') ?? run).lineage?.handed_over
  // The one that follows may not have been read, or not have begun.
  if (last && over?.next) line.push({ number: last.number + 1, run: over.next.run, phase: over.phase, about: over.topic ?? '', cost: null, place: 'after' })
  return line
}

function self(run: RunState, lineage: Lineage, place: Generation['place']): Generation {
  return { number: lineage.number, run: run.id, phase: lineage.phase, about: lineage.handed_over?.summary || run.request, cost: run.purse.spent.money, place }
}

/** The generation that followed a run, by itself or begun by a person. */
function after(run: RunState, others: ReadonlyMap<string, RunState>): RunState | null {
  const named = others.get(run.lineage?.handed_over?.next?.run ?? '')
  return named ?? [...others.values()].find((one) => one.lineage?.previous === run.id) ?? null
}

/** The runs right before and after, to go to. */
export function neighbours(run: RunState, others: ReadonlyMap<string, RunState>): { before: string | null; after: string | null } {
  return { before: run.lineage?.previous ?? null, after: after(run, others)?.id ?? run.lineage?.handed_over?.next?.run ?? null }
}

/** How many of a series there are with this one, and how many there may be. */
export function count(lineage: Lineage): { now: number; most: number } | null {
  const { plan } = lineage
  return plan ? { now: lineage.number - plan.first + 1, most: plan.max_runs } : null
}
