// A run: its state as the daemon computed it, and beside it what happened on the way. The page decides
// nothing about the state; it takes over what each event says that it changed.

import type { CouncilView, Lineage, PhasesView } from '../api/team'
import type { Budget, Forked, Handoff, Offer, Purse, Receipt, Recorded, Response, SessionState, Tally, Trail, Usage, Way, Workflow } from '../api/types'
import { type Council, convene, resumed as resumedCouncils, speak } from './council'
import { type Note, type Span, noted, notes, stretch } from './history'
import { type Round, enter, resumed as resumedRounds } from './phases'

/** Where a handoff stands. */
export type Standing =
  | { kind: 'pending'; notBefore: number }
  | { kind: 'parked'; until: number }
  | { kind: 'out'; phase: 'ordered' | 'accepted' | 'running'; turn: Turn }
  | { kind: 'blocked'; on: string[] }
  | { kind: 'asked'; until: number }
  | { kind: 'closed'; at: number; way: Way; response: Response }

export interface Turn {
  orderedAt: number
  finishBy: number
  receipt: Receipt
  note: string
  deliveries: number
}

/** A handoff as it stands, with what happened in it. */
export interface Leg {
  id: string
  offer: Offer
  cause: string | null
  returnsTo: string | null
  trail: Trail
  standing: Standing
  attempt: number
  turn: number
  usage: Usage
  /** All of it, as the daemon sent it. */
  handoff: Handoff
  admittedAt: number
  seq: number
  spans: Span[]
  notes: Note[]
  dropped: number
  succeededBy: string[]
  /** The sets of edits that were proposed in it. */
  changes: string[]
}

export interface Refused {
  id: string
  seq: number
  at: number
  offer: Offer
  cause: string | null
  refusal: Record<string, unknown>
}

export interface Alert {
  seq: number
  at: number
  code: string
  message: string
}

export interface Session {
  state: SessionState
  note: string
  at: number
}

export type Waiting = 'human' | 'budget' | 'cooldown' | 'quota'

/** What the daemon says of the run as a whole. */
interface Header {
  /** Its status in a word. */
  status: string
  /** What it waits for, when it waits. */
  waitingOn: Waiting | null
  /** Why it ended, when it has. */
  why: string | null
  purse: Purse
  tally: Tally
  phases: PhasesView | null
  council: CouncilView | null
  /** Where it stands among the generations of its team, if it is one. */
  lineage: Lineage | null
}

export interface RunState extends Header {
  id: string
  seq: number
  workflow: Workflow
  request: string
  by: string
  stage: 'active' | 'paused' | 'finished'
  createdAt: number
  updatedAt: number
  legs: Map<string, Leg>
  refused: Refused[]
  alerts: Alert[]
  sessions: Map<string, Session>
  /** Every council that has met, the last one last. */
  councils: Council[]
  /** Every time that a phase was entered. */
  rounds: Round[]
}

const NOTHING: Usage = { tokens: 0, money: 0 }

/** The state after `event`. An event that is already in the state changes nothing. */
export function reduce(state: RunState | null, event: Recorded): RunState | null {
  return extend(state, [event])
}

/** The state after all of `events`, up to and with number `until`, with one copy for all of them. */
export function extend(state: RunState | null, events: readonly Recorded[], until = Infinity): RunState | null {
  let draft = state && copy(state)
  for (const event of events) {
    if (event.seq > until) break
    if (draft !== null && event.seq !== draft.seq + 1) continue
    draft ??= first(event)
    if (draft !== null) step(draft, event)
  }
  return draft
}

/** A run begins with its request, or as another one was. */
function first(event: Recorded): RunState | null {
  if (event.event !== 'run_created' && event.event !== 'run_forked') return null
  const { workflow, request } = event.event === 'run_created' ? event : (event.state as unknown as Forked)
  const at = Date.parse(event.at)
  const limit: Budget = { money: 0, tokens: 0, handoffs: 0, time: 0 }
  return {
    id: event.run,
    seq: 0,
    workflow,
    request,
    by: event.by,
    stage: 'active',
    createdAt: at,
    updatedAt: at,
    legs: new Map(),
    refused: [],
    alerts: [],
    sessions: new Map(),
    councils: [],
    rounds: [],
    // Until the daemon says otherwise, with the same event.
    status: 'running',
    waitingOn: null,
    why: null,
    purse: { limit, spent: NOTHING, reserved: NOTHING, handoffs: 0, agents: {} },
    tally: { handoffs: 0, refused: 0, escalated: 0, retries: 0, redelivered: 0, late: 0 },
    phases: null,
    council: null,
    lineage: null,
  }
}

function copy(state: RunState): RunState {
  return { ...state, legs: new Map(state.legs), refused: [...state.refused], alerts: [...state.alerts], sessions: new Map(state.sessions) }
}

/** Takes an event into a draft that belongs to the caller; legs are replaced, never changed. */
function step(run: RunState, event: Recorded): void {
  const at = Date.parse(event.at)
  run.seq = event.seq
  takeOver(run, event, at)
  remember(run, event, at)
}

/** What the daemon says that the event changed. */
function takeOver(run: RunState, event: Recorded, at: number): void {
  const { changed = {} } = event
  const { status = run.status, waiting_on = run.waitingOn, why = run.why, purse = run.purse, tally = run.tally, phases = run.phases, council = run.council, lineage = run.lineage } = changed
  const header: Header = { status, waitingOn: waiting_on as Waiting | null, why, purse, tally, phases, council, lineage }
  Object.assign(run, header)
  run.stage = isOver(status) ? 'finished' : status === 'paused' ? 'paused' : 'active'
  if (changed.updated_at) run.updatedAt = Date.parse(changed.updated_at)
  for (const [id, fields] of Object.entries(changed.handoffs ?? {})) {
    run.legs.set(id, grown(run.legs.get(id), fields, event, at))
  }
  for (const [name, state] of Object.entries(changed.sessions ?? {})) {
    const known = run.sessions.get(name) ?? { note: '', at }
    const own = event.event === 'session_changed' && event.agent === name
    run.sessions.set(name, own ? { state, note: event.note ?? '', at } : { ...known, state })
  }
  if (changed.council) run.councils = convene(run.councils, changed.council, at)
  const round = run.rounds.at(-1)
  if (changed.phases && round?.endedAt === null) run.rounds = [...run.rounds.slice(0, -1), { ...round, parts: changed.phases.parts ?? [] }]
}

/** A leg with the fields of its handoff that changed; null takes one away. */
function grown(known: Leg | undefined, fields: Partial<Handoff>, event: Recorded, at: number): Leg {
  const handoff = { ...known?.handoff, ...fields } as Handoff
  const before = known ?? { admittedAt: at, seq: event.seq, spans: [], notes: [], dropped: 0, succeededBy: [], changes: [] }
  const { id, offer, trail, attempt, turn } = handoff
  const standing = fields.state || !known ? standingOf(handoff) : known.standing
  const leg: Leg = { ...before, id, offer, trail, attempt, turn, cause: handoff.cause ?? null, returnsTo: handoff.returns_to ?? null, usage: handoff.usage ?? NOTHING, standing, handoff }
  const spans = standing === known?.standing ? known.spans : stretch(before.spans, leg, event, at)
  return { ...leg, spans }
}

/** A standing in the daemon's own words. */
function standingOf({ state }: Handoff): Standing {
  const [kind = '', value] = Object.entries(state)[0] ?? []
  const of = (value ?? {}) as Record<string, unknown>
  switch (kind) {
    case 'ordered':
    case 'accepted':
    case 'running': {
      const turn: Turn = {
        orderedAt: Number(of['ordered_at'] ?? 0),
        finishBy: Number(of['finish_by'] ?? 0),
        receipt: (of['receipt'] as Receipt | undefined) ?? 'queued',
        note: String(of['note'] ?? ''),
        deliveries: Number(of['deliveries'] ?? 1),
      }
      return { kind: 'out', phase: kind, turn }
    }
    case 'parked':
    case 'asked':
      return { kind, until: Number(of['until'] ?? 0) }
    case 'blocked':
      return { kind, on: (of['on'] as string[] | undefined) ?? [] }
    case 'closed':
      return { kind, at: Number(of['at'] ?? 0), way: of['way'] as Way, response: of['response'] as Response }
    default:
      return { kind: 'pending', notBefore: Number(of['not_before'] ?? 0) }
  }
}

/** What is worth keeping of the event itself. */
function remember(run: RunState, event: Recorded, at: number): void {
  const { seq } = event
  for (const { about, kind, text } of notes(event)) {
    if (text) change(run, about, (leg) => ({ ...leg, ...noted(leg, { seq, at, kind, text }) }))
  }
  switch (event.event) {
    case 'run_forked':
      run.councils = resumedCouncils(run.councils, event, at)
      if (run.phases) run.rounds = resumedRounds(run.phases, at)
      break
    case 'handoff_refused':
      run.refused.push({ id: event.id, seq, at, offer: event.offer, cause: event.cause ?? null, refusal: event.refusal })
      break
    case 'alert_raised':
      run.alerts.push({ seq, at, code: event.printed ? `${event.code} (printed)` : event.code, message: event.message })
      break
    case 'handoff_closed':
      change(run, event.handoff, (leg) => ({ ...leg, succeededBy: event.succeeded_by ?? [] }))
      break
    case 'change_proposed':
      change(run, event.handoff ?? '', (leg) => ({ ...leg, changes: [...leg.changes.filter((one) => one !== event.change), event.change] }))
      break
    case 'council_heard':
    case 'council_reopened':
      run.councils = speak(run.councils, event, at)
      break
    case 'phase_begun':
    case 'phase_ended':
      run.rounds = enter(run.rounds, event, at, run.phases?.parts ?? [])
      break
  }
}

function change(run: RunState, id: string, how: (leg: Leg) => Leg): void {
  const leg = run.legs.get(id)
  if (leg) run.legs.set(id, how(leg))
}

/** The parts of `RUN/h3/1.2`: handoff 3, attempt 1, turn 2. */
export function turnKey(key: string): { handoff: string; attempt: number; turn: number } {
  const [, handoff = '', numbers = ''] = key.split('/')
  const [attempt = '1', turn = '1'] = numbers.split('.')
  return { handoff, attempt: Number(attempt), turn: Number(turn) }
}

/** `missing_required_input` as people say it. */
export function words(name: string): string {
  return name.replaceAll('_', ' ')
}

/** The word for where a handoff stands. */
export function standingWord(standing: Standing): string {
  switch (standing.kind) {
    case 'out':
      return standing.phase === 'ordered' ? 'pending' : standing.phase
    case 'closed':
      return standing.way === 'answered' ? standing.response.outcome : standing.way
    default:
      return standing.kind
  }
}

/** Whether a run of this status has ended. */
export const isOver = (status: string): boolean => status === 'succeeded' || status === 'failed' || status === 'cancelled'

export function openLegs(run: RunState): Leg[] {
  return [...run.legs.values()].filter((leg) => leg.standing.kind !== 'closed')
}
