// What the daemon says, by the names that the page uses. All of it follows from `schema.ts`, which is
// generated from the daemon's description.

import type { components } from './schema'
import type { CouncilState } from './team'

/** As it is told: money and times may be asked for in words, but are told in numbers. */
type Told<T> = unknown extends T ? T : string | number extends T ? number | Extract<T, null | undefined> : T extends (infer One)[] ? Told<One>[] : T extends object ? { [Name in keyof T]: Told<T[Name]> } : T

export type Schemas = { [Name in keyof components['schemas']]: Told<components['schemas'][Name]> }

/** The name in the description: `handoff_closed` is `HandoffClosed` there. */
type Described<Name extends string> = Name extends `${infer First}_${infer Rest}` ? `${Capitalize<First>}${Described<Rest>}` : Capitalize<Name>

/** The events of these names, each with what it tells. */
type EventNamed<Names extends string> = { [Name in Names]: { event: Name } & Schemas[Described<Name> & keyof Schemas] }[Names]

export type Fields = Record<string, unknown>

export type Usage = Schemas['Usage']
export type Budget = Schemas['Budget']
export type Workflow = Schemas['Workflow']
export type Question = Schemas['Question']
export type Offer = Schemas['Offer']
export type Response = Schemas['Response']
export type Trail = Schemas['Trail']
export type SessionState = Schemas['SessionState']
export type Receipt = Schemas['Receipt']
export type Way = Schemas['Way']

export type Change = Schemas['Change']
export type Comment = Schemas['Comment']
export type FileDiff = Schemas['FileDiff']
export type Hunk = Schemas['Hunk']
/** What became of the sets that were to be applied or undone. */
export type Report = Schemas['Report2']

/** A handoff as the daemon sees it. */
export type Handoff = Schemas['HandoffState']
export type Tally = Pick<Schemas['Tally'], 'handoffs' | 'refused' | 'escalated' | 'retries' | 'redelivered' | 'late'>
export type Account = Schemas['Account']
export type Purse = Schemas['Purse']
export type RunView = Schemas['RunView']
export type Problem = Pick<Schemas['Problem'], 'code' | 'title' | 'status' | 'detail'>
export type TerminalView = Schemas['Glance'] & { state: SessionState }

/** Every event that the page knows; a test holds them against the description. */
export const EVENTS = [
  'run_created', 'run_forked', 'run_adopted', 'run_paused', 'run_unpaused', 'run_finished',
  'handoff_admitted', 'handoff_refused', 'handoff_blocked', 'handoff_resumed', 'handoff_closed', 'handoff_parked', 'handoff_overdue',
  'inputs_assessed', 'turn_ordered', 'receipt_given', 'turn_taken', 'turn_told', 'turn_finished', 'turn_failed',
  'session_changed', 'permit_given', 'lease_renewed', 'retry_scheduled', 'late_result_kept', 'recovery_chosen',
  'question_answered', 'question_postponed', 'budget_reached', 'budget_raised', 'alert_raised', 'frame_ignored',
  'message_sent', 'message_delivered', 'message_unread',
  'change_proposed', 'change_commented', 'change_returned', 'change_ordered', 'change_settled', 'order_done',
  'council_opened', 'council_heard', 'council_concluded', 'council_reopened', 'note_left', 'generation_handed_over',
  'phase_begun', 'phase_ended', 'turn_measured',
] as const
export type Event = EventNamed<(typeof EVENTS)[number]>

/** The fields of a run's state that an event changed, as the daemon computed it; null is one that is gone. */
export type Changed = Partial<Omit<Schemas['RunDetail'], 'handoffs'>> & { handoffs?: Record<string, Partial<Handoff>> }

/** What the page reads of the whole of a run, as the one that was forked from it begins. */
export interface Forked {
  workflow: Workflow
  request: string
  council?: CouncilState | null
}

/** An event in its place: `seq` counts within its run, `position` over all runs. */
export type Recorded = { position: number; run: string; seq: number; at: string; changed?: Changed } & Closed & Event

/** Votes that nobody may know yet are told without their contents, and with them when all are in. */
export interface Closed {
  sealed?: boolean
  again?: boolean
}
