// What is a person's to decide, over all runs.

import type { Question } from '../api/types'
import { asked, asker, title } from './agents'
import type { Leg, RunState } from './run'

export interface Item {
  /** `RUN:h5`, as the API takes it. */
  id: string
  run: string
  request: string
  handoff: string
  asker: string
  title: string
  question: Question
  missing: Leg['offer']['missing']
  since: number
  until: number
  priority: Leg['offer']['priority']
  /** Items with the same key ask the same thing and can be answered together. */
  batch: string
}

const URGENCY = { critical: 0, high: 1, medium: 2, low: 3 } as const

const PLAIN: Question = {
  reason: '',
  details: '',
  options: [],
  context: '',
  blocking: true,
  within: null,
  default: null,
  about: 'inputs',
}

/** The open questions: the urgent ones first, then the ones that would be decided soonest by default. */
export function inbox(runs: Iterable<RunState>): Item[] {
  const items = [...runs].flatMap((run) => asked(run).map((leg) => item(run, leg)))
  return items.sort((a, b) => URGENCY[a.priority] - URGENCY[b.priority] || a.until - b.until || a.since - b.since)
}

function item(run: RunState, leg: Leg): Item {
  const question = { ...PLAIN, ...leg.offer.question }
  const kind = typeof question.about === 'string' ? question.about : (Object.keys(question.about)[0] ?? '')
  return {
    id: `${run.id}:${leg.id}`,
    run: run.id,
    request: run.request,
    handoff: leg.id,
    asker: asker(run, leg),
    title: title(leg),
    question,
    missing: leg.offer.missing ?? [],
    since: leg.admittedAt,
    until: leg.standing.kind === 'asked' ? leg.standing.until : 0,
    priority: leg.offer.priority,
    batch: JSON.stringify([kind, question.reason, question.details, question.options]),
  }
}

/** The groups of items that ask the same, the single ones included. */
export function batches(items: Item[]): Item[][] {
  const groups = new Map<string, Item[]>()
  for (const one of items) {
    // Only what has options can be meant alike; words are for one question.
    const key = one.question.options.length > 0 ? one.batch : one.id
    groups.set(key, [...(groups.get(key) ?? []), one])
  }
  return [...groups.values()]
}

/** What happens when nobody answers. */
export function fallback(item: Item): string {
  if (item.question.default) return `“${item.question.default}” is taken`
  return item.question.blocking ? 'it expires, and the run goes another way' : 'it expires; nothing waits for it'
}
