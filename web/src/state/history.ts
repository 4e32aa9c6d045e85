// What happened in a run on the way to where it stands: its events as they were told, and how long each
// handoff stood where. Nothing of the state is computed here.

import type { Recorded } from '../api/types'
import { type Leg, type RunState, type Standing, turnKey, words } from './run'

type Told<Name extends Recorded['event']> = Extract<Recorded, { event: Name }>

/** The events of each run by their names. */
const BY_NAME = new WeakMap<readonly Recorded[], Map<string, Recorded[]>>()

/** All events of a run that have this name, in their order. */
export function told<Name extends Recorded['event']>({ events }: RunState, name: Name): Told<Name>[] {
  let by = BY_NAME.get(events)
  if (!by) BY_NAME.set(events, (by = grouped(events, (event) => [[event.event, event]])))
  return (by.get(name) ?? []) as Told<Name>[]
}

function grouped<T>(events: readonly Recorded[], of: (event: Recorded) => [string, T][]): Map<string, T[]> {
  const by = new Map<string, T[]>()
  for (const [key, one] of events.flatMap(of)) {
    const list = by.get(key)
    if (list) list.push(one)
    else by.set(key, [one])
  }
  return by
}

/** A proposal that a rule refused. */
export type Refused = Told<'handoff_refused'>

/** The code of an alert; nobody vouches for what was only printed. */
export const alertCode = ({ code, printed }: Told<'alert_raised'>): string => (printed ? `${code} (printed)` : code)

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

/** The most notes that are shown of one handoff; the events have them all. */
const MOST_NOTES = 200

const SPAN_OF: Record<Exclude<Standing['kind'], 'closed'>, Span['kind']> = {
  pending: 'wait',
  parked: 'parked',
  out: 'work',
  blocked: 'blocked',
  asked: 'asked',
}

/** The spans of a leg whose standing is new: the one that was open ends, the next one begins. */
export function stretch({ spans: before, standing, attempt, turn }: Leg, { event, at: when }: Recorded): Span[] {
  const at = Date.parse(when)
  const spans = [...before]
  const last = spans.at(-1)
  const kind = standing.kind === 'closed' ? null : SPAN_OF[standing.kind]
  if (last?.to === null) {
    // Signs of life, and a turn that is delivered again, go on with the same work.
    if (last.kind === kind && last.attempt === attempt) return spans
    if (last.from === at && last.kind !== 'asked' && last.kind !== 'work') spans.pop()
    else spans[spans.length - 1] = { ...last, to: at, end: last.kind !== 'work' ? last.end : event === 'turn_failed' ? 'failed' : kind === null ? 'called off' : 'done' }
  }
  if (kind) spans.push({ kind, from: at, to: null, attempt, turn, end: '' })
  return spans
}

/** The notes of each run by handoff. */
const NOTES = new WeakMap<readonly Recorded[], Map<string, Note[]>>()

/** What was said about a handoff, and how much of it is left out here. */
export function notes({ events }: RunState, handoff: string): { notes: Note[]; dropped: number } {
  let by = NOTES.get(events)
  if (!by) NOTES.set(events, (by = grouped(events, (event) => said(event).map(({ about, kind, text }): [string, Note] => [about, { seq: event.seq, at: Date.parse(event.at), kind, text }]))))
  const all = (by.get(handoff) ?? []).filter((note) => note.text)
  // Agents repeat themselves with every sign of life, and what was said last is often all of the result.
  const list = all.filter((note, index) => note.text !== all[index - 1]?.text || (note.kind !== all[index - 1]?.kind && note.kind !== 'result'))
  return { notes: list.slice(-MOST_NOTES), dropped: Math.max(0, list.length - MOST_NOTES) }
}

/** What an event says about handoffs. */
function said(event: Recorded): { about: string; kind: Note['kind']; text: string }[] {
  const one = (about: string | null | undefined, kind: Note['kind'], text: string): ReturnType<typeof said> => [{ about: about ?? '', kind, text }]
  const turn = (key: string): string => turnKey(key).handoff
  switch (event.event) {
    case 'run_adopted':
      return (event.redelivered ?? []).flatMap((id) => one(id, 'redelivered', 'The daemon started again: delivered once more under the same key'))
    case 'inputs_assessed':
      return event.can_handle ? [] : one(event.handoff, 'missing', `Missing: ${(event.missing ?? []).join(', ')}`)
    case 'lease_renewed':
      return one(turn(event.turn), 'said', event.note ?? '')
    case 'turn_taken':
      return one(turn(event.turn), 'said', `Taken by ${event.taken.by}`)
    case 'permit_given':
      return one(turn(event.turn), 'permit', `${event.permit.request}: ${event.permit.choice}`)
    case 'turn_finished': {
      const handed = event.result.offers.flatMap((offer) => one(turn(event.turn), 'handed', `${offer.to}: ${offer.question?.details || offer.summary || words(offer.reason)}`))
      return [...one(turn(event.turn), 'result', event.result.response.summary ?? ''), ...handed]
    }
    case 'turn_failed':
      return one(turn(event.turn), 'failed', event.failure.message)
    case 'retry_scheduled':
      return one(event.handoff, 'retry', `Attempt ${event.attempt} follows`)
    case 'handoff_parked':
      return one(event.handoff, 'parked', event.why)
    case 'handoff_overdue':
      return one(event.handoff, 'failed', 'Not answered in time')
    case 'late_result_kept':
      return one(turn(event.turn), 'late', 'A result came too late and was kept as evidence')
    case 'recovery_chosen':
      return one(event.handoff, 'recovery', `${words(event.action)}: ${event.reason}`)
    case 'question_answered':
      return one(event.handoff, 'answer', event.text || JSON.stringify(event.values))
    case 'change_proposed':
      return one(event.handoff, 'change', `${event.change} ${event.revision > 1 ? `revised (${event.revision})` : 'proposed'}: ${event.reason}`)
    case 'change_commented':
      return one(event.handoff, 'change', `${event.change}, ${event.comment.by}: ${event.comment.text}`)
    case 'change_returned':
      return one(event.handoff, 'change', `${event.change} came back to be revised`)
    case 'change_ordered':
      return one(event.handoff, 'change', `${event.change} to ${event.work}, by ${event.by}`)
    case 'change_settled':
      return one(event.handoff, 'change', [`${event.change} ${event.status}`, event.note].filter(Boolean).join(': '))
    default:
      return []
  }
}
