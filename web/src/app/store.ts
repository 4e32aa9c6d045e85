// What the page knows and where it is, as signals; everything that is shown is computed from these.

import { batch, computed, signal } from '@preact/signals'
import * as api from '../api/client'
import { follow } from '../api/stream'
import type { Change, FileDiff, Problem, Recorded, TerminalView } from '../api/types'
import { type AgentView, agents, asked, asker } from '../state/agents'
import { listed, waits } from '../state/changes'
import { type Item, inbox } from '../state/inbox'
import { Moments, seqAt } from '../state/moments'
import { HOME, type Place, href, parse } from '../state/place'
import { type RunState, isOver } from '../state/run'
import { type Action, NOWHERE, reduceWorld } from '../state/world'

export interface Link {
  state: 'connecting' | 'live' | 'lost' | 'refused'
  since: number
  retryAt: number
}

export const world = signal(NOWHERE)
export const place = signal<Place>(parse(location.pathname, location.search))
export const link = signal<Link>({ state: 'connecting', since: Date.now(), retryAt: 0 })
export const now = signal(Date.now())
export const ready = signal(false)
export const trouble = signal<Problem | null>(null)
export const notice = signal<{ text: string; bad: boolean } | null>(null)
export const overlay = signal<'' | 'palette' | 'keys' | 'start'>('')
/** What the daemon can be asked. */
export const able = signal<Set<string>>(new Set())
export const terminals = signal<Map<string, TerminalView>>(new Map())
/** The moment under the pointer while the track is dragged. */
export const dragged = signal<number | null>(null)
/** Questions whose answers are on their way. */
export const sending = signal<Set<string>>(new Set())

const dispatch = (action: Action): void => {
  world.value = reduceWorld(world.value, action)
}

/** One line for each run, newest first. */
export const entries = computed(() => {
  const { rows, runs } = world.value
  const known = new Map<string, { id: string; request: string; word: string; createdAt: number; spent: number; asked: number }>()
  for (const row of rows) {
    known.set(row.run, { id: row.run, request: row.request, word: row.status, createdAt: Date.parse(row.created_at), spent: row.purse.spent.money, asked: 0 })
  }
  for (const state of runs.values()) {
    known.set(state.id, {
      id: state.id,
      request: state.request,
      word: state.status,
      createdAt: state.createdAt,
      spent: state.purse.spent.money,
      asked: asked(state).length,
    })
  }
  return [...known.values()].sort((a, b) => b.createdAt - a.createdAt)
})

/** The id of the run that is looked at. */
export const runId = computed<string | null>(() => {
  const wanted = place.value.run
  const list = entries.value
  if (wanted) return list.find((one) => one.id === wanted || one.id.endsWith(wanted) || one.id.startsWith(wanted))?.id ?? null
  const living = list.find((one) => !isOver(one.word))
  return (living ?? list[0])?.id ?? null
})

/** The run as it is now. */
export const live = computed<RunState | null>(() => world.value.runs.get(runId.value ?? '') ?? null)
/** All its events, also while it is shown as it was before. */
export const events = computed<readonly Recorded[]>(() => live.value?.events ?? [])
/** Every run that was read, by its id. */
export const known = computed(() => world.value.runs)
const moments = computed(() => new Moments(events.value))

/** The number of the event that is shown as the last one; nothing means now. */
export const at = computed(() => {
  const wanted = dragged.value ?? place.value.at
  return wanted !== null && live.value && wanted < live.value.seq ? wanted : null
})

/** The run as it is shown: now, or at a moment. */
export const run = computed<RunState | null>(() => (at.value === null ? live.value : moments.value.at(at.value)))

/** The present, or the moment that is shown. */
export const clock = computed(() => (at.value === null ? now.value : (run.value?.updatedAt ?? now.value)))

export const cast = computed<AgentView[]>(() => {
  const state = run.value
  if (!state) return []
  if (at.value !== null) return agents(state)
  // How a process stands now is known sooner from its terminal than from the events.
  return agents(state).map((one) => {
    const view = terminals.value.get(`${one.run}/${one.name}`)
    return view ? { ...one, session: view.state, crashed: view.state === 'crashed' || view.state === 'restarting' } : one
  })
})

/** Everything that is a person's to decide: now over all runs, at a moment only in its run. */
export const items = computed<Item[]>(() => {
  if (at.value !== null && run.value) return inbox([run.value])
  return inbox(world.value.runs.values())
})

/** Who has the baton: the newest turn that is out, else whoever asks, else whoever had it last. */
export const baton = computed<string | null>(() => {
  const state = run.value
  if (!state) return null
  const legs = [...state.legs.values()]
  const out = legs.filter((leg) => leg.standing.kind === 'out')
  const newest = out.reduce<(typeof out)[number] | null>((best, leg) => {
    const when = (one: typeof leg): number => (one.standing.kind === 'out' ? one.standing.turn.orderedAt : 0)
    return !best || when(leg) >= when(best) ? leg : best
  }, null)
  if (newest) return newest.offer.to
  const question = asked(state).at(-1)
  if (question) return asker(state, question)
  const worked = legs.filter((leg) => leg.turn > 0).at(-1)
  return worked?.offer.to ?? state.workflow.workflow.entry
})

/** Whose terminal is shown. The tabs follow the baton until somebody touches one. */
export const following = computed(() => place.value.agent === null)
export const agent = computed(() => place.value.agent ?? baton.value)

export function go(part: Partial<Place>, how: 'push' | 'replace' = 'push'): void {
  const next = { ...place.value, ...part }
  const address = href(next)
  if (address === location.pathname + location.search) return
  place.value = next
  history[how === 'push' ? 'pushState' : 'replaceState'](null, '', address)
}

export const goRun = (id: string): void => go({ ...HOME, run: short(id) })

/** The digits of a run that people type. */
export const short = (id: string): string => id.slice(-8)

addEventListener('popstate', () => {
  place.value = parse(location.pathname, location.search)
})

/** A step in time, by events. */
export function stepTime(by: number): void {
  const last = live.value?.seq
  if (!last) return
  const next = (at.value ?? last) + by
  go({ at: next >= last ? null : Math.max(1, next), run: short(runId.value ?? '') }, 'replace')
}

export function dragTo(moment: number): void {
  dragged.value = seqAt(events.value, moment)
}

export function say(text: string, bad = false): void {
  notice.value = { text, bad }
}

/** Does something that can go wrong, and says so. */
export async function attempt<T>(what: () => Promise<T>, done = ''): Promise<T | null> {
  try {
    const result = await what()
    if (done) say(done)
    return result
  } catch (cause) {
    const problem = cause instanceof api.Trouble ? cause.problem : null
    say(problem ? [problem.title, problem.detail].filter(Boolean).join('. ') : String(cause), true)
    return null
  }
}

/** Whether a run can be forked from the moment that is shown. */
export const forkable = computed(() => able.value.has('/v1/runs/{run}/fork') && run.value !== null && run.value.stage !== 'finished')

/** Begins a run that goes its own way from the moment that is shown. */
export async function forkHere(): Promise<void> {
  const id = runId.value
  const state = run.value
  if (!id || !state) return
  const begun = await attempt(() => api.fork(id, state.seq), 'The fork goes its own way from here')
  if (begun) goRun(begun.run)
}

export async function respond(item: Item, text: string, values: Record<string, unknown> = {}): Promise<boolean> {
  if (sending.value.has(item.id)) return false
  sending.value = new Set(sending.value).add(item.id)
  const taken = await attempt(() => api.answer(item.id, text, values))
  const left = new Set(sending.value)
  left.delete(item.id)
  sending.value = left
  return taken !== null
}

/** Reads a run, or what is missing of it. */
export async function load(id: string): Promise<void> {
  const known = world.value.runs.get(id)
  // What was told without its contents may be told with them by now.
  const closed = known?.events.find((event) => event.sealed)
  const list = await api.eventsOf(id, closed ? closed.seq - 1 : known?.seq ?? 0)
  dispatch({ type: 'read', run: id, events: list })
}

const reading = new Set<string>()

async function loadOnce(id: string): Promise<void> {
  if (reading.has(id)) return
  reading.add(id)
  try {
    await load(id)
  } catch {
    // The next event of the run, or the next look at it, tries again.
  } finally {
    reading.delete(id)
  }
}

/** Reads what is there: the rows, every run that lives, and the one that is looked at. */
async function sync(): Promise<void> {
  const cursor = await api.head()
  // A store that knows less than we do is another one: nothing here is true any more.
  if (cursor < world.value.cursor) location.reload()
  const rows = await api.runs()
  dispatch({ type: 'rows', rows, cursor: world.value.cursor === 0 ? cursor : world.value.cursor })
  const living = rows.filter((row) => !isOver(row.status)).map((row) => row.run)
  const wanted = new Set(living)
  if (runId.value) wanted.add(runId.value)
  await Promise.all([...wanted].map(loadOnce))
  void api.paths().then((known) => (able.value = known))
  batch(() => {
    ready.value = true
    trouble.value = null
  })
}

/** Which terminals there are, and how they stand. */
export async function lookUpTerminals(): Promise<void> {
  const id = runId.value
  if (!id) return
  try {
    const list = await api.terminals(id)
    terminals.value = new Map(list.map((one) => [`${one.run}/${one.agent}`, one]))
  } catch {
    // A daemon without terminals, or a moment without a daemon: the journal is shown instead.
  }
}

/** All sets of edits, in the order in which they are listed. */
export const changes = signal<Change[]>([])
/** The diffs that were read, by the set and what it was then. */
export const diffs = signal<Map<string, FileDiff[]>>(new Map())
/** What is being done to sets, by their names. */
export const acting = signal<Map<string, string>>(new Map())
/** How many sets wait for a person. */
export const waiting = computed(() => changes.value.filter(waits).length)

/** The set that is looked at. */
export const change = computed<Change | null>(() => changes.value.find((one) => one.id === place.value.change) ?? changes.value[0] ?? null)

const diffKey = (one: Change): string => `${one.id}/${one.revision}`
export const diffOf = (one: Change): FileDiff[] | null => diffs.value.get(diffKey(one)) ?? null

export async function lookUpChanges(): Promise<void> {
  try {
    const list = listed(await api.changes())
    // Nothing is drawn anew unless something is new.
    if (JSON.stringify(list) !== JSON.stringify(changes.peek())) changes.value = list
  } catch {
    // A daemon without changes, or a moment without a daemon.
  }
}

/** Reads what a set does line by line, once for each revision. */
export async function lookUpDiff(one: Change): Promise<void> {
  if (diffs.peek().has(diffKey(one))) return
  const read = await attempt(() => api.changeOf(one.id))
  if (read) diffs.value = new Map(diffs.peek()).set(diffKey(read.change), read.diff)
}

/** Does something to a set; nothing else is done to it meanwhile. */
export async function act<T>(id: string, word: string, what: () => Promise<T>, done = ''): Promise<T | null> {
  if (acting.value.has(id)) return null
  acting.value = new Map(acting.value).set(id, word)
  const result = await attempt(what, done)
  const left = new Map(acting.value)
  left.delete(id)
  acting.value = left
  await lookUpChanges()
  return result
}

/** What may have started or ended a terminal. */
const SESSIONS = new Set<string>(['session_changed', 'turn_ordered', 'receipt_given', 'turn_finished', 'turn_failed'])

export function begin(): void {
  const stop = new AbortController()
  const queue: Recorded[] = []
  let scheduled = false
  const flush = (): void => {
    scheduled = false
    const list = queue.splice(0)
    dispatch({ type: 'heard', events: list })
    for (const id of world.value.gaps) void loadOnce(id)
    if (list.some((event) => SESSIONS.has(event.event))) void lookUpTerminals()
    if (list.some((event) => event.event.startsWith('change_'))) void lookUpChanges()
  }
  const listen = async (): Promise<void> => {
    for (let wait = 250; ; wait = Math.min(4000, wait * 2)) {
      try {
        await sync()
        break
      } catch (cause) {
        const problem = cause instanceof api.Trouble ? cause.problem : null
        const refused = problem?.status === 401 || problem?.status === 403
        batch(() => {
          trouble.value = problem
          link.value = { state: refused ? 'refused' : 'lost', since: link.value.since, retryAt: Date.now() + wait }
        })
        await new Promise((resolve) => setTimeout(resolve, wait))
      }
    }
    let broken = false
    await follow(
      {
        heard: (list) => {
          queue.push(...list)
          // All that comes within a frame is one change; a hidden page has no frames.
          if (scheduled) return
          scheduled = true
          if (document.visibilityState === 'visible') requestAnimationFrame(flush)
          else setTimeout(flush, 50)
        },
        state: (state, retryAt) => {
          if (state === 'live' && broken) void sync().then(() => Promise.all([lookUpTerminals(), lookUpChanges()]), () => undefined)
          broken = state !== 'live'
          link.value = { state, retryAt, since: link.value.state === state ? link.value.since : Date.now() }
        },
        cursor: () => queue.at(-1)?.position ?? world.value.cursor,
      },
      stop.signal,
    )
  }
  void listen()
  runId.subscribe((id) => {
    if (!id || !ready.peek()) return
    if (!world.peek().runs.has(id)) void loadOnce(id)
    void lookUpTerminals()
  })
  ready.subscribe((is) => {
    if (is) void lookUpTerminals()
    if (is) void lookUpChanges()
  })
  setInterval(() => {
    if (document.visibilityState === 'visible') now.value = Date.now()
  }, 1000)
  document.addEventListener('visibilitychange', () => {
    now.value = Date.now()
  })
  // A program can die while nobody waits for it: no event tells of that.
  setInterval(() => {
    if (document.visibilityState === 'visible' && terminals.peek().size > 0) void lookUpTerminals()
    // A set that belongs to no run has no events either.
    if (document.visibilityState === 'visible' && place.peek().view === 'changes') void lookUpChanges()
  }, 3000)
}
