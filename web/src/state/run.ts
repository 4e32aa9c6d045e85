// A run: its state as the daemon computed it, with the events that led there. The page decides nothing
// about the state; it takes over what each event says that it changed.

import type { CouncilView, Lineage, PhasesView } from '../api/team'
import type { Budget, Forked, Handoff, Offer, Purse, Receipt, Recorded, Response, SessionState, Tally, Trail, Usage, Way, Workflow } from '../api/types'
import { type Span, stretch } from './history'

/** Where a handoff stands. */
export type Standing =
  | { kind: 'pending'; notBefore: number }
  | { kind: 'parked'; until: number; why: string }
  | { kind: 'out'; phase: 'ordered' | 'accepted' | 'running'; turn: Turn }
  | { kind: 'blocked'; on: string[] }
  | { kind: 'asked'; until: number }
  | { kind: 'closed'; at: number; way: Way; response: Response; succeededBy: string[] }

export interface Turn {
  orderedAt: number
  finishBy: number
  receipt: Receipt
  note: string
  deliveries: number
}

/** A handoff as it stands. */
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
  admittedAt: number
  /** All of it, as the daemon sent it. */
  handoff: Handoff
  /** How it stood until now. */
  spans: Span[]
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
  /** Where it stands among the generations of its team, if it is one. */
  lineage: Lineage | null
  sessions: Record<string, SessionState>
}

export interface RunState extends Header {
  id: string
  seq: number
  workflow: Workflow
  request: string
  stage: 'active' | 'paused' | 'finished'
  createdAt: number
  updatedAt: number
  legs: Map<string, Leg>
  /** Every council that has met, by the handoff that it decides on: how it stands, or stood when the next one met. */
  councils: Map<string, CouncilView>
  /** The events that led here, `seq` of them. */
  events: readonly Recorded[]
}

const NOTHING: Usage = { tokens: 0, money: 0 }

/** The state after all of `events`, with one copy for all of them. Those that are already in it change nothing. */
export function extend(state: RunState | null, events: readonly Recorded[]): RunState | null {
  let draft = state && { ...state, legs: new Map(state.legs), councils: new Map(state.councils) }
  const taken = [...(state?.events ?? [])]
  for (const event of events) {
    if (draft !== null && event.seq !== draft.seq + 1) continue
    draft ??= first(event)
    if (draft === null) continue
    takeOver(draft, event)
    taken.push(event)
  }
  return draft && { ...draft, events: taken }
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
    stage: 'active',
    createdAt: at,
    updatedAt: at,
    legs: new Map(),
    councils: new Map(),
    events: [],
    // Until the daemon says otherwise, with the same event.
    status: 'running',
    waitingOn: null,
    why: null,
    purse: { limit, spent: NOTHING, reserved: NOTHING, handoffs: 0, agents: {} },
    tally: { handoffs: 0, refused: 0, escalated: 0, retries: 0, redelivered: 0, late: 0 },
    phases: null,
    lineage: null,
    sessions: {},
  }
}

/** Takes what the daemon says that an event changed into a draft; legs are replaced, never changed. */
function takeOver(run: RunState, event: Recorded): void {
  const { changed = {} } = event
  const { status = run.status, waiting_on = run.waitingOn, why = run.why, purse = run.purse, tally = run.tally, phases = run.phases, lineage = run.lineage, sessions = run.sessions } = changed
  const header: Header = { status, waitingOn: waiting_on as Waiting | null, why, purse, tally, phases, lineage, sessions: sessions ?? {} }
  Object.assign(run, header)
  run.seq = event.seq
  run.stage = isOver(status) ? 'finished' : status === 'paused' ? 'paused' : 'active'
  if (changed.updated_at) run.updatedAt = Date.parse(changed.updated_at)
  if (changed.council) run.councils.set(changed.council.handoff ?? '', changed.council)
  for (const [id, fields] of Object.entries(changed.handoffs ?? {})) {
    run.legs.set(id, grown(run.legs.get(id), fields, event))
  }
}

/** A leg with the fields of its handoff that changed; null takes one away. */
function grown(known: Leg | undefined, fields: Partial<Handoff>, event: Recorded): Leg {
  const handoff = { ...known?.handoff, ...fields } as Handoff
  const { id, offer, trail, attempt, turn, admitted_at: admittedAt } = handoff
  const standing = fields.state || !known ? standingOf(handoff) : known.standing
  const leg: Leg = { id, offer, trail, attempt, turn, admittedAt, cause: handoff.cause ?? null, returnsTo: handoff.returns_to ?? null, usage: handoff.usage ?? NOTHING, standing, handoff, spans: known?.spans ?? [] }
  return standing === known?.standing ? leg : { ...leg, spans: stretch(leg, event) }
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
      return { kind, until: Number(of['until'] ?? 0), why: String(of['why'] ?? '') }
    case 'asked':
      return { kind, until: Number(of['until'] ?? 0) }
    case 'blocked':
      return { kind, on: (of['on'] as string[] | undefined) ?? [] }
    case 'closed':
      return { kind, at: Number(of['at'] ?? 0), way: of['way'] as Way, response: of['response'] as Response, succeededBy: (of['succeeded_by'] as string[] | undefined) ?? [] }
    default:
      return { kind: 'pending', notBefore: Number(of['not_before'] ?? 0) }
  }
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
