// What the daemon says, as far as the page uses it. `schema.ts` is generated from its description, and
// the tests hold these against it.

import type { AgentBudget, CouncilEvent, CouncilRules, CouncilState, CouncilView, Lineage, LineageEvent, MeasureEvent, PhaseEvent, PhaseStep, PhasesView } from './team'

export type Fields = Record<string, unknown>

export interface Usage {
  tokens: number
  money: number
  /** The part of the money that is an estimate. */
  estimated?: number
  /** The turns whose tokens or cost nobody can tell. */
  unknown?: { tokens: number; money: number }
}

export interface Budget {
  tokens: number
  money: number
  handoffs: number
  time: number
}

export interface Agent {
  role: string
  runner: string
  profile?: string
  budget?: AgentBudget
}

export interface Route {
  from: string
  to: string
  reason: string
  requires: string[]
}

export interface Loop {
  name: string
  between: string[]
  max_rounds: number
}

export interface Workflow {
  workflow: { name: string; entry: string }
  agents: Record<string, Agent>
  routes: Route[]
  loops: Loop[]
  council?: CouncilRules | null
  phases?: PhaseStep[]
}

export interface MissingInput {
  key: string
  expected_type: string
  description: string
  source?: string
}

export type About =
  | 'inputs'
  | 'budget'
  | { recovery: string }
  | { loop: string }
  | { confirm: unknown[] }
  | { permission: [string, string] }
  | { change: string }
  | { council: string }
  | { check_in: string }

export interface Question {
  reason: string
  details: string
  options: string[]
  context: string
  blocking: boolean
  within: number | null
  default: string | null
  about: About
  answer_with?: string
}

export interface Offer {
  from: string
  to: string
  kind: 'transfer' | 'delegate'
  reason: string
  detail: string
  item?: string
  priority: 'low' | 'medium' | 'high' | 'critical'
  summary: string
  instructions?: string
  outputs: Fields
  missing: MissingInput[]
  question?: Question
}

export type Outcome = 'resolved' | 'partial' | 'failed' | 'escalated'

export interface Response {
  by: string
  outcome: Outcome
  outputs: Fields
  unresolved?: string[]
  failure?: string
  recommendations?: string[]
  summary?: string
  took: number
  usage: Usage
}

export interface TurnResult {
  response: Response
  offers: Offer[]
  usage: Usage
  bare: boolean
}

export interface Lap {
  head: string
  round: number
}

export interface Trail {
  held_by: string[]
  within?: string
  laps?: Record<string, Lap>
}

export type SessionState =
  | 'starting'
  | 'not_ready'
  | 'ready'
  | 'working'
  | 'waiting'
  | 'crashed'
  | 'restarting'
  | 'ended'

export type Receipt = 'queued' | 'delivered' | 'ingested' | 'acknowledged'
export type Way = 'answered' | 'expired' | 'cancelled'

export type Event =
  | { event: 'run_created'; workflow: Workflow; request: string; inputs: Fields; budget: Budget; by: string; lineage?: Lineage | null }
  | { event: 'run_forked'; from: string; after: number; by: string; state: Forked }
  | { event: 'run_adopted'; by: string; redelivered: string[] }
  | { event: 'run_paused'; by: string }
  | { event: 'run_unpaused'; by: string }
  | { event: 'run_finished'; status: string; why: string }
  | {
      event: 'handoff_admitted'
      id: string
      offer: Offer
      cause?: string
      returns_to?: string
      trail: Trail
      state: Record<string, unknown>
    }
  | { event: 'handoff_refused'; id: string; offer: Offer; cause?: string; refusal: Fields }
  | { event: 'handoff_blocked'; handoff: string; on: string[] }
  | { event: 'handoff_resumed'; handoff: string; inputs?: Fields; afresh?: boolean }
  | { event: 'handoff_closed'; handoff: string; response: Response; way: Way; succeeded_by?: string[] }
  | { event: 'inputs_assessed'; handoff: string; can_handle: boolean; reason?: string; missing?: string[] }
  | { event: 'turn_ordered'; turn: string; accept_by: number; finish_by: number; reserved: Usage }
  | { event: 'receipt_given'; turn: string; receipt: Receipt; due: number }
  | { event: 'turn_taken'; turn: string; taken: { by: string }; due: number; finish_by: number }
  | { event: 'session_changed'; agent: string; state: SessionState; note?: string }
  | { event: 'permit_given'; turn: string; permit: { request: string; choice: string } }
  | { event: 'message_sent'; id: string; to: string; from: string; by?: string; text: string }
  | { event: 'message_delivered'; turn: string; messages: string[]; way: 'tool_boundary' | 'stop' | 'next_turn' }
  | { event: 'message_unread'; messages: string[] }
  | { event: 'turn_told'; turn: string; told: { offers: Offer[]; response: Response | null; usage: Usage } }
  | { event: 'lease_renewed'; turn: string; due: number; note?: string }
  | { event: 'turn_finished'; turn: string; result: TurnResult }
  | { event: 'turn_failed'; turn: string; failure: { kind: string; message: string }; usage: Usage }
  | { event: 'retry_scheduled'; handoff: string; attempt: number; not_before: number }
  | { event: 'handoff_parked'; handoff: string; until: number; why: string }
  | { event: 'handoff_overdue'; handoff: string; deadline: number }
  | { event: 'late_result_kept'; turn: string; result: TurnResult }
  | { event: 'recovery_chosen'; handoff: string; action: string; reason: string; target?: string }
  | { event: 'question_answered'; handoff: string; values: Fields; text: string; by: string }
  | ({ event: 'budget_reached' } & Reached)
  | { event: 'question_postponed'; handoff: string; until: number; why: string }
  | { event: 'budget_raised'; limit: Budget; agent?: string | null }
  | { event: 'alert_raised'; code: string; message: string; printed?: boolean }
  | { event: 'frame_ignored'; turn: string; reason: string }
  | { event: 'change_proposed'; turn?: string; handoff?: string; agent?: string; change: string; revision: number; reason: string; count: number; files: FileNote[]; gates?: Gate[] }
  | { event: 'change_commented'; change: string; handoff?: string; comment: Comment }
  | { event: 'change_returned'; change: string; handoff?: string }
  | { event: 'change_ordered'; change: string; handoff?: string; work: 'apply' | 'undo' | 'undo_with_later' | 'renew'; by: string }
  | { event: 'change_settled'; change: string; handoff?: string; status: ChangeStatus; by?: string; note?: string }
  | { event: 'order_done'; order: string; change?: string }
  | CouncilEvent
  | LineageEvent
  | PhaseEvent
  | MeasureEvent

export type ChangeStatus = 'pending' | 'approved' | 'refused' | 'applied' | 'validated' | 'failed' | 'undone'
export type ChangeAction = 'create' | 'modify' | 'delete' | 'rename'

/** A file of a set, as events tell it. */
export interface FileNote {
  file: string
  action: ChangeAction
  from?: string
  before?: string
  after?: string
}

/** Something that a person has to say yes to. */
export interface Gate {
  kind: 'deletion' | 'own_logic' | 'dependencies' | 'validation' | 'steering' | 'foreign' | 'printed'
  file: string
}

export interface Comment {
  by: string
  at: string
  file?: string
  line?: number
  revision: number
  text: string
}

/** A set of edits. */
export interface Change {
  id: string
  status: ChangeStatus
  revision: number
  author: { run?: string; agent?: string; handoff?: string; person?: string }
  reason: string
  edits: { file: string; action: ChangeAction }[]
  gates: Gate[]
  proposed_at: string
  approved_by?: string
  applied_at?: string
  validated_at?: string
  undone_at?: string
  commit?: string
  failure?: string
  notes?: string[]
  comments?: Comment[]
}

export interface FileDiff {
  file: string
  action: ChangeAction
  from?: string
  added: number
  removed: number
  mode?: [number, number]
  /** Why there are no lines. */
  unshown?: string
  hunks: Hunk[]
}

export interface Hunk {
  old_start: number
  old_lines: number
  new_start: number
  new_lines: number
  lines: { sign: string; text: string; unended?: boolean }[]
}

/** What became of the sets that were to be applied or undone. */
export interface Report {
  landed: Change[]
  rolled_back: { id: string; why: string; output: string; notes: string[] }[]
  left: { id: string; why: string; needs_person: boolean }[]
}

/** What the page reads of the whole of a run, as the one that was forked from it begins. */
export interface Forked {
  workflow: Workflow
  request: string
  council?: CouncilState | null
}

/** A handoff as the daemon sees it. */
export interface Handoff {
  id: string
  offer: Offer
  cause?: string | null
  returns_to?: string | null
  trail: Trail
  state: Record<string, unknown>
  attempt: number
  turn: number
  usage: Usage
}

export interface Tally {
  handoffs: number
  refused: number
  escalated: number
  retries: number
  redelivered: number
  late: number
}

/** The fields of a run's state that an event changed, as the daemon computed it; null is one that is gone. */
export interface Changed {
  status?: string
  waiting_on?: string | null
  why?: string | null
  updated_at?: string
  purse?: Purse
  tally?: Tally
  phases?: PhasesView | null
  council?: CouncilView | null
  lineage?: Lineage | null
  sessions?: Record<string, SessionState>
  handoffs?: Record<string, Partial<Handoff>>
}

/** An event in its place: `seq` counts within its run, `position` over all runs. */
export type Recorded = { position: number; run: string; seq: number; at: string; changed?: Changed } & Closed & Event

/** Votes that nobody may know yet are told without their contents, and with them when all are in. */
export interface Closed {
  sealed?: boolean
  again?: boolean
}

export interface Account {
  turns: number
  spent: Usage
  reserved: Usage
  handoffs: number
  /** How long its turns took together. */
  time: number
  /** How often it was allowed as much again. */
  raised: number
}

/** What stood in the way of spending more. */
export interface Reached {
  part: string
  /** Whose budget, when it is an agent's own. */
  agent?: string | null
  why: string
}

export interface Purse {
  limit: Budget
  spent: Usage
  reserved: Usage
  /** Handoffs that agents have begun to work on. */
  handoffs: number
  reached?: Reached | null
  days?: Record<string, { turns: number; spent: Usage }>
  agents: Record<string, Account>
  /** What was known about each agent's cost when the run began. */
  forecasts?: Record<string, 'unmetered' | { known: Usage }> | null
}

/** A run as the list of runs shows it. */
export interface RunView {
  run: string
  workflow: string
  request: string
  status: string
  waiting_on?: string | null
  why?: string | null
  working: string[]
  seq: number
  created_at: string
  updated_at: string
  purse: Purse
}

export interface Problem {
  code: string
  title: string
  status: number
  detail?: string
}

export interface TerminalView {
  run: string
  agent: string
  state: SessionState
  title: string
  cols: number
  rows: number
  pid?: number
  since?: string
  note?: string | null
}
