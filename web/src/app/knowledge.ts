// What was asked about what is known, kept until it is asked again.

import { signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { Trouble, get } from '../api/client'
import type { Problem } from '../api/types'
import type { Part } from '../state/place'
import { attempt, place, world } from './store'

export const TITLES: Record<Part, string> = {
  decisions: 'Decisions',
  calendar: 'Calendar',
  threads: 'Threads',
  graph: 'What belongs together',
  constitution: 'Constitution',
  insights: 'Insights',
}

/** What the part that is shown does with keys. */
export const ownKeys: { current: ((key: string) => (() => void) | null) | null } = { current: null }

/** Gives the keys to a part for as long as it is shown. */
export function useKeys(keys: (key: string) => (() => void) | null): void {
  useEffect(() => {
    ownKeys.current = keys
    return () => {
      if (ownKeys.current === keys) ownKeys.current = null
    }
  })
}

interface Answer {
  data: unknown
  problem: Problem | null
}

/** As many answers are kept. */
const MOST = 100

const answers = signal<ReadonlyMap<string, Answer>>(new Map())
/** Grows whenever something may be new. */
const beat = signal(0)
const asking = new Set<string>()

function keep(path: string, answer: Answer): void {
  const before = answers.peek().get(path)
  // Nothing is drawn anew unless something is new.
  if (before && JSON.stringify(before) === JSON.stringify(answer)) return
  const kept = new Map(answers.peek())
  kept.delete(path)
  kept.set(path, answer)
  for (const old of kept.keys()) {
    if (kept.size <= MOST) break
    kept.delete(old)
  }
  answers.value = kept
}

async function lookUp(path: string): Promise<void> {
  if (asking.has(path)) return
  asking.add(path)
  try {
    keep(path, { data: await get(path), problem: null })
  } catch (cause) {
    const problem = cause instanceof Trouble ? cause.problem : null
    // What is shown stays while the daemon is away: the header tells of that.
    if (problem && problem.status !== 0) keep(path, { data: null, problem })
  } finally {
    asking.delete(path)
  }
}

/** What the daemon says to a question, asked again when something may be new. */
export function useAnswer<T>(path: string | null): { data: T | null; problem: Problem | null } {
  const now = beat.value
  useEffect(() => {
    if (path) void lookUp(path)
  }, [path, now])
  const known = path ? answers.value.get(path) : undefined
  return { data: (known?.data ?? null) as T | null, problem: known?.problem ?? null }
}

/** Does something about what is known; everything is looked up again afterwards. */
export async function change<T>(what: () => Promise<T>, done = ''): Promise<T | null> {
  const result = await attempt(what, done)
  beat.value += 1
  return result
}

let soon: ReturnType<typeof setTimeout> | null = null
const again = (): void => {
  soon = null
  if (document.visibilityState === 'visible' && place.peek().view === 'knowledge') beat.value += 1
}
// What happens in a run is known a moment later.
world.subscribe(() => {
  soon ??= setTimeout(again, 400)
})
// Others move events in their calendars: nothing tells of that.
setInterval(again, 3000)
