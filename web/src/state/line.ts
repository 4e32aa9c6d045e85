// An event in a line, for the list of events.

import type { Recorded } from '../api/types'
import { turnKey, words } from './run'
import { rule } from './track'

export interface Line {
  /** The handoff that it is about. */
  about: string
  text: string
  tone: '' | 'good' | 'bad' | 'yours'
}

export function line(event: Recorded): Line {
  const of = (about: string, text: string, tone: Line['tone'] = ''): Line => ({ about, text, tone })
  const turn = (key: string): string => turnKey(key).handoff
  switch (event.event) {
    case 'run_created':
      return of('', event.request)
    case 'run_forked':
      return of('', `from event ${event.after} of ${event.from.slice(-8)}`)
    case 'run_adopted':
      return of('', event.redelivered?.length ? `delivered again: ${event.redelivered.join(', ')}` : 'a daemon took the run over')
    case 'run_paused':
    case 'run_unpaused':
      return of('', `by ${event.by || 'somebody'}`)
    case 'run_finished':
      return of('', `${event.status}: ${event.why}`, event.status === 'succeeded' ? 'good' : 'bad')
    case 'handoff_admitted':
      return of(event.id, `${event.offer.from} → ${event.offer.to}  ${event.offer.question?.details || event.offer.summary}`, event.offer.to === 'human' ? 'yours' : '')
    case 'handoff_refused':
      return of(event.id, `${event.offer.from} → ${event.offer.to}  ${rule(event.refusal)}`, 'bad')
    case 'handoff_blocked':
      return of(event.handoff, event.on.length ? `waits for ${event.on.join(', ')}` : '')
    case 'handoff_resumed':
      return of(event.handoff, event.afresh ? 'goes on, counted afresh' : 'goes on')
    case 'handoff_closed':
      return of(event.handoff, `${event.way === 'answered' ? event.response.outcome : event.way}  ${event.response.summary ?? event.response.failure ?? ''}`, event.response.outcome === 'failed' ? 'bad' : 'good')
    case 'inputs_assessed':
      return of(event.handoff, event.missing?.length ? `missing ${event.missing.join(', ')}` : 'can start')
    case 'turn_ordered':
      return of(turn(event.turn), `turn ${event.turn.split('/').at(-1)}`)
    case 'receipt_given':
      return of(turn(event.turn), event.receipt)
    case 'turn_taken':
      return of(turn(event.turn), `taken by ${event.taken.by}`)
    case 'session_changed':
      return of('', `${event.agent} is ${event.state}`, event.state === 'crashed' ? 'bad' : '')
    case 'permit_given':
      return of(turn(event.turn), `${event.permit.request}: ${event.permit.choice}`)
    case 'turn_told':
      return of(turn(event.turn), `${event.told.offers.length} handed on`)
    case 'lease_renewed':
      return of(turn(event.turn), event.note ?? '')
    case 'turn_finished':
      return of(turn(event.turn), event.result.response.summary ?? '')
    case 'turn_failed':
      return of(turn(event.turn), event.failure.message, 'bad')
    case 'retry_scheduled':
      return of(event.handoff, `attempt ${event.attempt}`)
    case 'handoff_parked':
      return of(event.handoff, event.why)
    case 'handoff_overdue':
      return of(event.handoff, 'not answered in time', 'bad')
    case 'late_result_kept':
      return of(turn(event.turn), 'kept as evidence')
    case 'recovery_chosen':
      return of(event.handoff, `${words(event.action)}: ${event.reason}`)
    case 'question_answered':
      return of(event.handoff, event.text || JSON.stringify(event.values), 'good')
    case 'budget_reached':
      return of('', event.why, 'bad')
    case 'budget_raised':
      return of('', `to $${event.limit.money}`)
    case 'change_proposed': {
      const what = event.revision > 1 ? `revision ${event.revision}` : event.count === 1 ? 'one file' : `${event.count} files`
      return of(event.handoff ?? '', `${event.change}, ${what}: ${event.reason}`, event.gates?.length ? 'yours' : '')
    }
    case 'change_commented':
      return of(event.handoff ?? '', `${event.change}, ${event.comment.by}: ${event.comment.text}`)
    case 'change_returned':
      return of(event.handoff ?? '', `${event.change} ${event.handoff ? 'goes back' : 'could not go back'}`)
    case 'change_ordered':
      return of(event.handoff ?? '', `${event.change} to ${event.work}, by ${event.by}`)
    case 'change_settled':
      return of(event.handoff ?? '', [`${event.change} ${event.status}`, event.note].filter(Boolean).join(': '), event.status === 'failed' || event.status === 'refused' ? 'bad' : 'good')
    case 'question_postponed':
      return of(event.handoff, event.why)
    case 'council_opened':
      return of(event.handoff, `${event.members.map((seat) => seat.member).join(', ')}: ${event.topic}`)
    case 'council_heard':
      return of(event.handoff, [`${event.member} ${event.vote?.signal ?? 'does not say where it stands'}`, event.said || event.vote?.reason].filter(Boolean).join(': '))
    case 'council_concluded':
      return of(event.handoff, event.verdict.why, event.verdict.decision === 'exhausted' ? 'bad' : 'good')
    case 'council_reopened':
      return of(event.handoff, event.advice || 'each may speak on')
    case 'note_left':
      return of('', `${event.by || 'somebody'}: ${event.text}`)
    case 'generation_handed_over':
      return of('', `generation ${event.number}, then ${words(event.action)}: ${event.reason}`)
    case 'phase_begun':
      return of(event.parts[0] ?? '', event.round > 1 ? `${event.phase}, round ${event.round}` : event.phase)
    case 'phase_ended':
      return of(event.parts[0]?.handoff ?? '', `${event.decision}  ${event.why}`, event.decision === 'PROCEED' ? 'good' : 'bad')
    case 'turn_measured':
      return of(turn(event.turn), `${event.measured.response ?? '?'} tokens, ${event.measured.summary ?? '?'} of them the summary`)
    case 'alert_raised':
      return of('', `${event.code}${event.printed ? ' (printed)' : ''}  ${event.message}`, 'bad')
    case 'message_sent':
      return of('', `${event.id} ${event.by || event.from} → ${event.to}  ${event.text}`)
    case 'message_delivered':
      return of(turn(event.turn), `${event.messages.join(', ')} delivered, ${words(event.way)}`)
    case 'message_unread':
      return of('', `${event.messages.join(', ')}: the run ended before it was read`, 'bad')
    case 'frame_ignored':
      return of(turn(event.turn), `printed frame ignored: ${event.reason}`)
    default:
      return of('', words((event as Recorded).event))
  }
}
