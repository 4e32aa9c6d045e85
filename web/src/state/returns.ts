// What options return: the tables that wait for a person, and the same reckoned with other weights.

import type { Ranked, Scored, Term } from '../api/knowledge'
import type { Item } from './inbox'
import type { RunState } from './run'

export const TERMS: readonly Term[] = ['benefit', 'goals', 'cost', 'hours', 'risk']

export type Weighing = Record<Term, number>

/** A table that somebody has to choose from. */
export interface Choice {
  /** The name of the decision that the answer becomes. */
  id: string
  item: Item
  ranked: Ranked
}

/** A plan whose blocks of time somebody has to allow. */
export interface Plan {
  item: Item
  /** When its blocks begin, the first one first. */
  starts: number[]
}

const output = (runs: ReadonlyMap<string, RunState>, item: Item, key: string): unknown => runs.get(item.run)?.legs.get(item.handoff)?.offer.outputs[key]

/** The tables among all that is asked. */
export function choices(runs: ReadonlyMap<string, RunState>, items: Item[]): Choice[] {
  return items.flatMap((item) => {
    const ranked = output(runs, item, 'ranking') as Ranked | undefined
    return ranked && Array.isArray(ranked.ranked) ? [{ id: `${item.run}.${item.handoff}`, item, ranked }] : []
  })
}

/** The plans among all that is asked. */
export function plans(runs: ReadonlyMap<string, RunState>, items: Item[]): Plan[] {
  return items.flatMap((item) => {
    const plan = output(runs, item, 'plan') as { blocks?: { start: string }[] } | undefined
    const starts = (plan?.blocks ?? []).map((block) => Date.parse(block.start)).sort((a, b) => a - b)
    return item.question.reason === 'plan_approval' && plan ? [{ item, starts }] : []
  })
}

/** The weights that a table was reckoned with. */
export function weighing(ranked: Ranked): Weighing {
  const { benefit, goals, cost, hours, risk } = ranked.weights
  return { benefit, goals, cost, hours, risk }
}

/** The share of the larger total below which two are the same, as the daemon has it. */
const SAME = 1e-9

/** The options by their return with these weights, the best first; those that are tied share a place. */
export function reckon(list: readonly Scored[], weights: Weighing): Scored[] {
  const scored = list.map((one) => {
    const parts = one.parts.map((part) => ({ ...part, weight: weights[part.term], value: part.amount * weights[part.term] }))
    return { ...one, parts, total: parts.reduce((sum, part) => sum + part.value, 0) }
  })
  scored.sort((a, b) => b.total - a.total || (a.id < b.id ? -1 : 1))
  const same = (a: number, b: number): boolean => Math.abs(a - b) <= SAME * Math.max(Math.abs(a), Math.abs(b))
  let rank = 0
  return scored.map((one, index) => {
    const before = scored[index - 1]
    const after = scored[index + 1]
    const tiedBefore = before !== undefined && same(before.total, one.total)
    if (!tiedBefore) rank = index + 1
    return { ...one, rank, tied: tiedBefore || (after !== undefined && same(after.total, one.total)) }
  })
}

/** Who wins by these numbers; nobody when two share the first place. */
export function winner(list: readonly Scored[]): string | null {
  const [first] = list
  return first && !first.tied ? first.id : null
}
