import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import type { components } from '../src/api/schema'
import type { Change, Changed, FileDiff, Handoff, Problem, Purse, Recorded, Report, RunView } from '../src/api/types'

const description = new URL('../../docs/openapi.json', import.meta.url)

type Schemas = components['schemas']

// What the page expects is held against what the daemon describes when this file is compiled.
const views: ((run: Schemas['RunView']) => Omit<RunView, 'run' | 'purse'>)[] = [(run) => run]
const problems: ((problem: Schemas['Problem']) => Pick<Problem, 'code' | 'title' | 'status'>)[] = [(problem) => problem]
const purses: ((purse: Schemas['Purse']) => (keyof Purse)[])[] = [(purse) => Object.keys(purse) as (keyof Schemas['Purse'])[]]

const states: ((field: keyof Changed) => keyof Schemas['RunDetail'])[] = [(field) => field]
const handoffs: ((handoff: Schemas['HandoffState']) => Pick<Handoff, 'id' | 'attempt' | 'turn'>)[] = [(handoff) => handoff]
const sets: ((change: Schemas['Change']) => Pick<Change, 'id' | 'status' | 'reason' | 'edits' | 'proposed_at'>)[] = [(change) => change]
const diffs: ((diff: Schemas['FileDiff']) => Pick<FileDiff, 'file' | 'action' | 'added' | 'removed' | 'hunks'>)[] = [(diff) => diff]
const reports: ((report: Schemas['Report2']) => Pick<Report, 'rolled_back' | 'left'>)[] = [(report) => report]

/** Every event that the page knows; leaving one out does not compile. */
const KNOWN: Record<Recorded['event'], true> = {
  run_created: true, run_forked: true, run_adopted: true, run_paused: true, run_unpaused: true, run_finished: true,
  handoff_admitted: true, handoff_refused: true, handoff_blocked: true, handoff_resumed: true, handoff_closed: true, handoff_parked: true, handoff_overdue: true,
  inputs_assessed: true, turn_ordered: true, receipt_given: true, turn_taken: true, turn_told: true, turn_finished: true, turn_failed: true,
  session_changed: true, permit_given: true, lease_renewed: true, retry_scheduled: true, late_result_kept: true, recovery_chosen: true,
  question_answered: true, budget_reached: true, budget_raised: true, alert_raised: true, frame_ignored: true,
  message_sent: true, message_delivered: true, message_unread: true,
  change_proposed: true, change_commented: true, change_returned: true, change_ordered: true, change_settled: true, order_done: true,
  council_opened: true, council_heard: true, council_concluded: true, council_reopened: true, note_left: true, generation_handed_over: true,
  phase_begun: true, phase_ended: true, turn_measured: true, question_postponed: true,
}

test('the types are those of the API', () => {
  expect([views, problems, purses, states, handoffs, sets, diffs, reports].every((list) => list.length === 1)).toBe(true)
})

test('the page knows every event that the daemon can tell', () => {
  type Named = { properties?: { event: { const: string } } }
  const document = JSON.parse(readFileSync(description, 'utf8')) as {
    components: { schemas: { EventLine: { anyOf: Named[] }; TeamEvent: { oneOf: Named[] } } }
  }
  const { EventLine, TeamEvent } = document.components.schemas
  const told = [...EventLine.anyOf, ...TeamEvent.oneOf].flatMap((one) => one.properties?.event.const ?? [])
  expect(told.length).toBe(Object.keys(KNOWN).length)
  expect(told.filter((name) => !(name in KNOWN))).toEqual([])
})
