// What happened in a handoff on the way to where it stands: stretches of time for the track, and what
// was said for the journal.

import type { Recorded } from '../api/types'
import { type Leg, type Standing, turnKey, words } from './run'

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

/** The most notes that are kept of one handoff; the events have them all. */
const MOST_NOTES = 200

const SPAN_OF: Record<Exclude<Standing['kind'], 'closed'>, Span['kind']> = {
  pending: 'wait',
  parked: 'parked',
  out: 'work',
  blocked: 'blocked',
  asked: 'asked',
}

/** The spans of a leg whose standing is new: the one that was open ends, the next one begins. */
export function stretch(before: readonly Span[], { standing, attempt, turn }: Leg, { event }: Recorded, at: number): Span[] {
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

/** The notes of a leg with one more. */
export function noted(leg: Leg, note: Note): Pick<Leg, 'notes' | 'dropped'> {
  const last = leg.notes.at(-1)
  // Agents repeat themselves with every sign of life, and what was said last is often all of the result.
  if (last && last.text === note.text && (last.kind === note.kind || note.kind === 'result')) return leg
  const notes = [...leg.notes, note]
  return notes.length > MOST_NOTES ? { notes: notes.slice(1), dropped: leg.dropped + 1 } : { notes, dropped: leg.dropped }
}

/** What an event says about handoffs. */
export function notes(event: Recorded): { about: string; kind: Note['kind']; text: string }[] {
  const one = (about: string | null | undefined, kind: Note['kind'], text: string): ReturnType<typeof notes> => [{ about: about ?? '', kind, text }]
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
