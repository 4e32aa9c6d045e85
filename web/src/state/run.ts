// A run as its events tell it. Pure: the same events give the same state, on the page as in the daemon.

import type { Lineage } from '../api/team'
import type { Account, Budget, ForkedHandoff, Offer, Purse, Receipt, Recorded, Response, SessionState, Trail, Usage, Way, Workflow } from '../api/types'
import { type Council, convene, resumed as resumedCouncil } from './council'
import { handOn } from './lineage'
import { type Round, passOn, proceed, resumed as resumedRounds } from './phases'

/** Where a handoff stands. */
export type Standing =
  | { kind: 'pending'; notBefore: number }
  | { kind: 'parked'; until: number; why: string }
  | { kind: 'out'; phase: 'ordered' | 'accepted' | 'running'; turn: Turn }
  | { kind: 'blocked'; on: string[] }
  | { kind: 'asked'; until: number }
  | { kind: 'closed'; at: number; way: Way; response: Response }

export interface Turn {
  key: string
  orderedAt: number
  finishBy: number
  reserved: Usage
  receipt: Receipt
  note: string
  deliveries: number
}

/** A stretch of a handoff's life, as the track draws it. */
export interface Span {
  kind: 'wait' | 'work' | 'blocked' | 'parked' | 'asked'
  from: number
  to: number | null
  attempt: number
  turn: number
  end: '' | 'done' | 'failed' | 'called off'
}

/** Something that was said about a handoff, in the order it was said. */
export interface Note {
  seq: number
  at: number
  kind: 'said' | 'result' | 'handed' | 'failed' | 'retry' | 'parked' | 'late' | 'recovery' | 'answer' | 'permit' | 'missing' | 'redelivered' | 'change'
  text: string
}

/** A handoff with all that became of it. */
export interface Leg {
  id: string
  offer: Offer
  cause: string | null
  returnsTo: string | null
  trail: Trail
  admittedAt: number
  seq: number
  standing: Standing
  attempt: number
  turn: number
  usage: Usage
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

export interface Tally {
  handoffs: number
  refused: number
  escalated: number
  retries: number
  redelivered: number
  late: number
}

export interface RunState {
  id: string
  seq: number
  workflow: Workflow
  request: string
  by: string
  stage: 'active' | 'paused' | 'finished'
  ending: { status: string; why: string } | null
  createdAt: number
  updatedAt: number
  legs: Map<string, Leg>
  refused: Refused[]
  alerts: Alert[]
  sessions: Map<string, Session>
  purse: Purse
  tally: Tally
  adopted: number[]
  /** Every council that has met, the last one last. */
  councils: Council[]
  /** Every time that a phase was entered. */
  rounds: Round[]
  /** Where it stands among the generations of its team, if it is one. */
  lineage: Lineage | null
}

/** The most notes that are kept of one handoff; the events have them all. */
const MOST_NOTES = 200

const NOTHING: Usage = { tokens: 0, money: 0 }

/** The state after `event`. An event that is already in the state changes nothing. */
export function reduce(state: RunState | null, event: Recorded): RunState | null {
  if (state === null) return first(event)
  if (event.seq !== state.seq + 1) return state
  const draft = copy(state)
  step(draft, event)
  return draft
}

/** The state after all of `events`, up to and with number `until`. */
export function replay(events: readonly Recorded[], until = Infinity): RunState | null {
  return extend(null, events, until)
}

/** The same from a state onwards, with one copy for all of them. */
export function extend(state: RunState | null, events: readonly Recorded[], until = Infinity): RunState | null {
  let draft = state && copy(state)
  for (const event of events) {
    if (event.seq > until) break
    if (draft === null) {
      draft = first(event)
    } else if (event.seq === draft.seq + 1) {
      step(draft, event)
    }
  }
  return draft
}

/** A run begins with its request, or as another one was. */
function first(event: Recorded): RunState | null {
  if (event.event === 'run_created') return create(event)
  return event.event === 'run_forked' ? forked(event) : null
}

function forked(event: Extract<Recorded, { event: 'run_forked' }>): RunState {
  const { state } = event
  const run = create({ ...event, event: 'run_created', workflow: state.workflow, request: state.request, inputs: {}, budget: state.purse.limit })
  const at = run.createdAt
  for (const old of Object.values(state.handoffs)) {
    const standing = restored(old)
    const leg: Leg = {
      id: old.id,
      offer: old.offer,
      cause: old.cause ?? null,
      returnsTo: old.returns_to ?? null,
      trail: old.trail,
      admittedAt: at,
      seq: event.seq,
      standing,
      attempt: old.attempt,
      turn: old.turn,
      usage: old.usage,
      spans: [],
      notes: [],
      dropped: 0,
      succeededBy: [],
        changes: [],
    }
    // What had ended before has no place on the track of the fork.
    if (standing.kind !== 'closed') leg.spans.push({ kind: SPAN_OF[standing.kind], from: at, to: null, attempt: old.attempt, turn: old.turn, end: '' })
    run.legs.set(old.id, leg)
  }
  run.purse = { ...state.purse, spent: NOTHING }
  if (state.council && state.workflow.council) run.councils = [resumedCouncil(state.council, state.workflow.council, event.seq, at)]
  if (state.phases) run.rounds = resumedRounds(state.phases, at)
  run.lineage = state.lineage ?? null
  return run
}

/** A standing in the daemon's own words. */
function restored({ id, attempt, turn, state }: ForkedHandoff): Standing {
  const [kind = '', value] = Object.entries(state)[0] ?? []
  const of = (value ?? {}) as Record<string, unknown>
  switch (kind) {
    case 'ordered':
    case 'accepted':
    case 'running':
      return {
        kind: 'out',
        phase: kind,
        turn: {
          key: `/${id}/${attempt}.${turn}`,
          orderedAt: Number(of['ordered_at'] ?? 0),
          finishBy: Number(of['finish_by'] ?? 0),
          reserved: (of['reserved'] as Usage | undefined) ?? NOTHING,
          receipt: (of['receipt'] as Receipt | undefined) ?? 'queued',
          note: String(of['note'] ?? ''),
          deliveries: Number(of['deliveries'] ?? 1),
        },
      }
    case 'parked':
      return { kind: 'parked', until: Number(of['until'] ?? 0), why: '' }
    case 'blocked':
      return { kind: 'blocked', on: (of['on'] as string[] | undefined) ?? [] }
    case 'closed':
      return { kind: 'closed', at: Number(of['at'] ?? 0), way: of['way'] as Way, response: of['response'] as Response }
    default:
      return admitted(state)
  }
}

function create(event: Extract<Recorded, { event: 'run_created' }>): RunState {
  const at = Date.parse(event.at)
  return {
    id: event.run,
    seq: event.seq,
    workflow: event.workflow,
    request: event.request,
    by: event.by,
    stage: 'active',
    ending: null,
    createdAt: at,
    updatedAt: at,
    legs: new Map(),
    refused: [],
    alerts: [],
    sessions: new Map(),
    purse: { limit: event.budget, spent: NOTHING, reserved: NOTHING, handoffs: 0, agents: {} },
    tally: { handoffs: 0, refused: 0, escalated: 0, retries: 0, redelivered: 0, late: 0 },
    adopted: [],
    councils: [],
    rounds: [],
    lineage: event.lineage ?? null,
  }
}

function copy(state: RunState): RunState {
  return {
    ...state,
    legs: new Map(state.legs),
    refused: [...state.refused],
    alerts: [...state.alerts],
    sessions: new Map(state.sessions),
    purse: { ...state.purse, agents: { ...state.purse.agents } },
    tally: { ...state.tally },
    adopted: [...state.adopted],
  }
}

/** Applies an event to a draft that belongs to the caller; legs are replaced, never changed. */
function step(run: RunState, event: Recorded): void {
  const at = Date.parse(event.at)
  run.seq = event.seq
  // What comes after the end does not move the end.
  if (run.stage !== 'finished') run.updatedAt = at
  const note = (id: string, kind: Note['kind'], text: string): void => {
    if (text) change(run, id, (leg) => ({ ...leg, ...noted(leg, { seq: event.seq, at, kind, text }) }))
  }
  switch (event.event) {
    case 'run_created':
    case 'run_forked':
      break
    case 'budget_reached':
      run.purse.reached = { part: event.part, agent: event.agent ?? null, why: event.why }
      break
    case 'council_opened':
    case 'council_heard':
    case 'council_concluded':
    case 'council_reopened':
      run.councils = convene(run.councils, event, at)
      break
    case 'phase_begun':
    case 'phase_ended':
    case 'turn_measured':
      run.rounds = proceed(run.rounds, event, at, run)
      break
    case 'note_left':
    case 'generation_handed_over':
      run.lineage = handOn(run.lineage, event, at, run.createdAt)
      break
    case 'run_adopted':
      run.adopted.push(at)
      for (const id of event.redelivered ?? []) {
        run.tally.redelivered += 1
        change(run, id, (leg) =>
          leg.standing.kind === 'out'
            ? {
                ...leg,
                standing: {
                  kind: 'out',
                  phase: 'ordered',
                  turn: { ...leg.standing.turn, receipt: 'queued', deliveries: leg.standing.turn.deliveries + 1 },
                },
              }
            : leg,
        )
        note(id, 'redelivered', 'The daemon started again: delivered once more under the same key')
      }
      break
    case 'run_paused':
      run.stage = 'paused'
      break
    case 'run_unpaused':
      run.stage = 'active'
      break
    case 'run_finished':
      run.stage = 'finished'
      run.ending = { status: event.status, why: event.why }
      break
    case 'handoff_admitted': {
      if (counts(event.offer)) run.tally.handoffs += 1
      if (event.offer.to === 'human') run.tally.escalated += 1
      const standing = admitted(event.state)
      run.legs.set(event.id, {
        id: event.id,
        offer: event.offer,
        cause: event.cause ?? null,
        returnsTo: event.returns_to ?? null,
        trail: event.trail,
        admittedAt: at,
        seq: event.seq,
        standing,
        attempt: 1,
        turn: 0,
        usage: NOTHING,
        spans: [{ kind: standing.kind === 'asked' ? 'asked' : 'wait', from: at, to: null, attempt: 1, turn: 0, end: '' }],
        notes: [],
        dropped: 0,
        succeededBy: [],
        changes: [],
      })
      break
    }
    case 'handoff_refused':
      run.tally.refused += 1
      run.refused.push({
        id: event.id,
        seq: event.seq,
        at,
        offer: event.offer,
        cause: event.cause ?? null,
        refusal: event.refusal,
      })
      break
    case 'handoff_blocked':
      change(run, event.handoff, (leg) => stand(leg, at, { kind: 'blocked', on: event.on }))
      break
    case 'handoff_resumed':
      change(run, event.handoff, (leg) => stand(leg, at, { kind: 'pending', notBefore: at }))
      break
    case 'handoff_closed': {
      const leg = run.legs.get(event.handoff)
      if (!leg) break
      if (leg.standing.kind === 'out') reserve(run, leg.offer.to, leg.standing.turn.reserved, less)
      const standing: Standing = { kind: 'closed', at, way: event.way, response: event.response }
      const end = leg.standing.kind === 'out' ? 'called off' : 'done'
      run.legs.set(leg.id, { ...stand(leg, at, standing, end), succeededBy: event.succeeded_by ?? [] })
      unblock(run, leg, event.succeeded_by ?? [])
      run.rounds = passOn(run.rounds, leg.id, event.succeeded_by?.[0], run)
      break
    }
    case 'inputs_assessed':
      if (!event.can_handle) note(event.handoff, 'missing', `Missing: ${(event.missing ?? []).join(', ')}`)
      break
    case 'turn_ordered': {
      const { handoff, turn } = turnKey(event.turn)
      const given = run.legs.get(handoff)
      if (given) reserve(run, given.offer.to, event.reserved, more, given.turn === 0)
      change(run, handoff, (leg) =>
        stand({ ...leg, turn }, at, {
          kind: 'out',
          phase: 'ordered',
          turn: {
            key: event.turn,
            orderedAt: at,
            finishBy: event.finish_by,
            reserved: event.reserved,
            receipt: 'queued',
            note: '',
            deliveries: 1,
          },
        }),
      )
      break
    }
    case 'receipt_given':
      out(run, event.turn, (turn, phase) => ({
        turn: { ...turn, receipt: event.receipt },
        phase: phase === 'running' ? 'running' : 'accepted',
      }))
      break
    case 'lease_renewed':
      out(run, event.turn, (turn) => ({ turn: { ...turn, note: event.note ?? turn.note }, phase: 'running' }))
      note(turnKey(event.turn).handoff, 'said', event.note ?? '')
      break
    case 'turn_taken':
      out(run, event.turn, (turn) => ({ turn: { ...turn, receipt: 'acknowledged', finishBy: event.finish_by }, phase: 'accepted' }))
      note(turnKey(event.turn).handoff, 'said', `Taken by ${event.taken.by}`)
      break
    case 'session_changed':
      run.sessions.set(event.agent, { state: event.state, note: event.note ?? '', at })
      break
    case 'permit_given':
      note(turnKey(event.turn).handoff, 'permit', `${event.permit.request}: ${event.permit.choice}`)
      break
    case 'turn_told':
      break
    case 'turn_finished':
      settle(run, event.turn, at, event.result.usage, 'done')
      note(turnKey(event.turn).handoff, 'result', event.result.response.summary ?? '')
      for (const offer of event.result.offers) {
        note(turnKey(event.turn).handoff, 'handed', `${offer.to}: ${offer.question?.details || offer.summary || words(offer.reason)}`)
      }
      break
    case 'turn_failed':
      settle(run, event.turn, at, event.usage, 'failed')
      note(turnKey(event.turn).handoff, 'failed', event.failure.message)
      break
    case 'retry_scheduled':
      run.tally.retries += 1
      change(run, event.handoff, (leg) =>
        stand({ ...leg, attempt: event.attempt }, at, { kind: 'pending', notBefore: event.not_before }),
      )
      note(event.handoff, 'retry', `Attempt ${event.attempt} follows`)
      break
    case 'handoff_parked':
      change(run, event.handoff, (leg) => stand(leg, at, { kind: 'parked', until: event.until, why: event.why }))
      note(event.handoff, 'parked', event.why)
      break
    case 'late_result_kept':
      run.tally.late += 1
      note(turnKey(event.turn).handoff, 'late', 'A result came too late and was kept as evidence')
      break
    case 'recovery_chosen':
      note(event.handoff, 'recovery', `${words(event.action)}: ${event.reason}`)
      break
    case 'question_postponed':
      change(run, event.handoff, (leg) => (leg.standing.kind === 'asked' ? { ...leg, standing: { kind: 'asked', until: event.until } } : leg))
      break
    case 'question_answered':
      note(event.handoff, 'answer', event.text || JSON.stringify(event.values))
      break
    case 'budget_raised':
      run.purse.limit = event.limit
      run.purse.reached = null
      if (event.agent) keep(run, event.agent, (account) => ({ ...account, raised: account.raised + 1 }))
      break
    case 'change_proposed':
      note(event.handoff ?? '', 'change', `${event.change} ${event.revision > 1 ? `revised (${event.revision})` : 'proposed'}: ${event.reason}`)
      change(run, event.handoff ?? '', (leg) => ({ ...leg, changes: [...leg.changes.filter((one) => one !== event.change), event.change] }))
      break
    case 'change_commented':
      note(event.handoff ?? '', 'change', `${event.change}, ${event.comment.by}: ${event.comment.text}`)
      break
    case 'change_returned':
      note(event.handoff ?? '', 'change', `${event.change} came back to be revised`)
      break
    case 'change_ordered':
      note(event.handoff ?? '', 'change', `${event.change} to ${event.work}, by ${event.by}`)
      break
    case 'change_settled':
      note(event.handoff ?? '', 'change', [`${event.change} ${event.status}`, event.note].filter(Boolean).join(': '))
      break
    case 'alert_raised':
      run.alerts.push({ seq: event.seq, at, code: event.code, message: event.message })
      break
    default:
      // An event of a newer daemon: what is not known changes nothing that is shown.
      event satisfies never
  }
}

/** Handoffs between agents count; questions, rulings, a person's own requests and the word in a council do not. */
function counts(offer: Offer): boolean {
  return !(offer.from === 'council' && offer.reason === 'council') && offer.from !== 'human' && offer.to !== 'human' && offer.to !== 'orchestrator'
}

function admitted(state: Record<string, unknown>): Standing {
  const asked = state['asked'] as { until: number } | undefined
  if (asked) return { kind: 'asked', until: asked.until }
  const pending = state['pending'] as { not_before: number } | undefined
  return { kind: 'pending', notBefore: pending?.not_before ?? 0 }
}

function change(run: RunState, id: string, how: (leg: Leg) => Leg): void {
  const leg = run.legs.get(id)
  if (leg) run.legs.set(id, how(leg))
}

const SPAN_OF: Record<Exclude<Standing['kind'], 'closed'>, Span['kind']> = {
  pending: 'wait',
  parked: 'parked',
  out: 'work',
  blocked: 'blocked',
  asked: 'asked',
}

/** The leg with a new standing: the span that was open ends, the next one begins. */
function stand(leg: Leg, at: number, standing: Standing, end: Span['end'] = ''): Leg {
  const spans = leg.spans.slice()
  const last = spans[spans.length - 1]
  if (last && last.to === null) {
    if (last.from === at && last.kind !== 'asked' && last.kind !== 'work') spans.pop()
    else spans[spans.length - 1] = { ...last, to: at, end: last.kind === 'work' ? end || 'done' : last.end }
  }
  if (standing.kind !== 'closed') {
    spans.push({ kind: SPAN_OF[standing.kind], from: at, to: null, attempt: leg.attempt, turn: leg.turn, end: '' })
  }
  return { ...leg, standing, spans }
}

function out(
  run: RunState,
  key: string,
  how: (turn: Turn, phase: string) => { turn: Turn; phase: 'ordered' | 'accepted' | 'running' },
): void {
  change(run, turnKey(key).handoff, (leg) =>
    leg.standing.kind === 'out' ? { ...leg, standing: { kind: 'out', ...how(leg.standing.turn, leg.standing.phase) } } : leg,
  )
}

function settle(run: RunState, key: string, at: number, used: Usage, end: Span['end']): void {
  const leg = run.legs.get(turnKey(key).handoff)
  if (!leg) return
  const turn = leg.standing.kind === 'out' ? leg.standing.turn : null
  reserve(run, leg.offer.to, turn?.reserved ?? NOTHING, less)
  run.purse.spent = more(run.purse.spent, used)
  keep(run, leg.offer.to, (account) => ({ ...account, turns: account.turns + 1, spent: more(account.spent, used), time: account.time + (turn ? at - turn.orderedAt : 0) }))
  run.legs.set(leg.id, { ...stand(leg, at, { kind: 'blocked', on: [] }, end), usage: more(leg.usage, used) })
}

const NO_ACCOUNT: Account = { turns: 0, spent: NOTHING, reserved: NOTHING, handoffs: 0, time: 0, raised: 0 }

/** Changes what is known of an agent's spending. */
function keep(run: RunState, agent: string, how: (account: Account) => Account): void {
  run.purse.agents[agent] = how(run.purse.agents[agent] ?? NO_ACCOUNT)
}

/** Sets something aside for an agent's turn, or gives it free again; a handoff counts when its agent begins with it. */
function reserve(run: RunState, agent: string, amount: Usage, how: (a: Usage, b: Usage) => Usage, begins = false): void {
  run.purse.reserved = how(run.purse.reserved, amount)
  keep(run, agent, (account) => ({ ...account, reserved: how(account.reserved, amount), handoffs: account.handoffs + (begins ? 1 : 0) }))
  if (begins) run.purse.handoffs += 1
}

/** Whoever waited for a closed leg waits for those that took its place. */
function unblock(run: RunState, closed: Leg, instead: string[]): void {
  if (!closed.returnsTo) return
  change(run, closed.returnsTo, (leg) => {
    if (leg.standing.kind !== 'blocked') return leg
    const on = leg.standing.on.filter((id) => id !== closed.id).concat(instead)
    return { ...leg, standing: { kind: 'blocked', on } }
  })
}

function noted(leg: Leg, note: Note): Pick<Leg, 'notes' | 'dropped'> {
  const last = leg.notes[leg.notes.length - 1]
  // Agents repeat themselves with every sign of life, and what was said last is often all of the result.
  if (last && last.text === note.text && (last.kind === note.kind || note.kind === 'result')) return leg
  const notes = [...leg.notes, note]
  return notes.length > MOST_NOTES ? { notes: notes.slice(1), dropped: leg.dropped + 1 } : { notes, dropped: leg.dropped }
}

/** The parts of `RUN/h3/1.2`: handoff 3, attempt 1, turn 2. */
export function turnKey(key: string): { handoff: string; attempt: number; turn: number } {
  const [, handoff = '', numbers = ''] = key.split('/')
  const [attempt = '1', turn = '1'] = numbers.split('.')
  return { handoff, attempt: Number(attempt), turn: Number(turn) }
}

// Money is added in millionths, as the daemon does, so that sums are exact.
const exact = (dollars: number): number => Math.round(dollars * 1e6) / 1e6

function more(a: Usage, b: Usage): Usage {
  return { tokens: a.tokens + b.tokens, money: exact(a.money + b.money) }
}

function less(a: Usage, b: Usage): Usage {
  return { tokens: Math.max(0, a.tokens - b.tokens), money: Math.max(0, exact(a.money - b.money)) }
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

export type Waiting = 'human' | 'budget' | 'cooldown' | 'quota'

/** Where the run stands, in a word, and what it waits for. */
export function status(run: RunState): { word: string; waitingOn: Waiting | null } {
  if (run.stage === 'finished') return { word: run.ending?.status ?? 'finished', waitingOn: null }
  if (run.stage === 'paused') return { word: 'paused', waitingOn: null }
  const open = openLegs(run)
  const some = (kind: Standing['kind']): boolean => open.some((leg) => leg.standing.kind === kind)
  if (some('out')) return { word: 'running', waitingOn: null }
  const budget = open.some((leg) => leg.standing.kind === 'asked' && leg.offer.question?.about === 'budget')
  if (budget) return { word: 'waiting', waitingOn: 'budget' }
  if (some('pending')) return { word: 'waiting', waitingOn: 'cooldown' }
  if (some('parked')) return { word: 'waiting', waitingOn: 'quota' }
  if (some('asked')) return { word: 'waiting', waitingOn: 'human' }
  return { word: 'running', waitingOn: null }
}

export function openLegs(run: RunState): Leg[] {
  return [...run.legs.values()].filter((leg) => leg.standing.kind !== 'closed')
}

export type { Budget }
