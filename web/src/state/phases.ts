// The phases of a run: where each stands and what it took, as the daemon says, and what it found and
// handed on each time, as the events tell.

import type { Part, PhaseDecision, PhaseLine, PhaseName, PhaseStep, PhasesView, Tokens } from '../api/team'
import type { Fields } from '../api/types'
import { told } from './history'
import type { RunState } from './run'

/** A phase, each time that it is entered. */
export interface Round {
  round: number
  /** Nothing for one of an earlier run. */
  beganAt: number | null
  endedAt: number | null
  parts: Part[]
  decision: PhaseDecision | null
  why: string
  rule: string
  summary: string
}

/** A summary of more tokens goes back to who wrote it. */
export const MOST_SUMMARY = 500

const NONE: Tokens = { request: 0, response: 0, reported: 0 }

/** The rounds of a phase: those that have ended as they were told, and the last one as it stands. */
function rounds(run: RunState, { parts }: PhasesView, { place, rounds: last, decision, why }: PhaseLine): Round[] {
  const began = told(run, 'phase_begun').filter((event) => event.place === place)
  const beganAt = (round: number): number | null => Date.parse(began.find((event) => event.round === round)?.at ?? '') || null
  const list = told(run, 'phase_ended')
    .filter((event) => event.place === place)
    .map(({ round, at, parts, decision, why, rule, summary }): Round => ({ round, beganAt: beganAt(round), endedAt: Date.parse(at), parts, decision, why, rule, summary }))
  const now = { round: last, endedAt: null, rule: '', summary: '' }
  if (!decision) list.push({ ...now, beganAt: beganAt(last) ?? run.createdAt, parts: parts ?? [], decision: null, why: '' })
  // It has ended in the run that this one goes on from.
  else if (list.at(-1)?.round !== last) list.push({ ...now, beganAt: null, parts: [], decision, why: why ?? '' })
  return list
}

/** A phase of the workflow with all that became of it. */
export interface Step {
  place: number
  phase: PhaseName
  agents: string[]
  rounds: Round[]
  /** How often it was entered and has ended. */
  ended: number
  most: number
  standing: 'to come' | 'now' | 'passed' | 'sent back' | 'stopped'
  tokens: Tokens
  /** What it took in all: as its agents say, or at least what was counted. */
  took: number
  typical: number | null
}

export function steps(run: RunState): Step[] {
  return (run.workflow.phases ?? []).map((step: PhaseStep, place): Step => {
    const { phases } = run
    const line = phases?.phases.find((one) => one.place === place)
    const tokens = line?.tokens ?? NONE
    // What did not pass is the end of it, unless an earlier phase has another go.
    const failed = phases?.place === place ? 'stopped' : 'sent back'
    const standing = !line ? 'to come' : !line.decision ? (run.stage === 'finished' ? 'stopped' : 'now') : line.decision === 'STOP' ? failed : 'passed'
    const took = Math.max(tokens.reported, tokens.request + tokens.response)
    const ended = line ? line.rounds - (line.decision ? 0 : 1) : 0
    return { place, phase: step.phase, agents: step.agents, rounds: phases && line ? rounds(run, phases, line) : [], ended, most: step.rounds ?? 3, standing, tokens, took, typical: line?.typical?.total ?? null }
  })
}

/** How many tokens the summary of a round has, as they were counted. */
export function summaryTokens(round: Round): number | null {
  const counts = round.parts.map((part) => part.measured?.summary)
  return counts.some((count) => typeof count === 'number') ? counts.reduce<number>((sum, count) => sum + (count ?? 0), 0) : null
}

/** Something that a phase has found, made or checked. */
export interface Finding {
  /** A file, a check, or nothing. */
  of: string
  text: string
  /** How much it matters, or whether it holds. */
  word: string
  tone: '' | 'good' | 'bad'
}

export interface Found {
  title: string
  list: Finding[]
}

const TITLES: Record<string, string> = {
  existing_implementations: 'There already',
  conflicts: 'Conflicts',
  patterns_found: 'How it is done here',
  recommendations: 'Recommended',
  files_created: 'Created',
  files_modified: 'Modified',
  tests_written: 'Tests',
  implementation_notes: 'Notes',
  blocking_issues: 'Must be repaired',
  warnings: 'To look at',
  checks: 'Checks',
}

/** What an agent has brought back, by kind. What has no known shape is left to the handoff itself. */
export function findings(outputs: Fields): Found[] {
  const groups: Found[] = []
  for (const [key, title] of Object.entries(TITLES)) {
    const value = outputs[key]
    const list = key === 'checks' ? checks(value) : Array.isArray(value) ? value.map((one) => finding(key, one)) : []
    const said = list.filter((one) => one.of || one.text)
    if (said.length > 0) groups.push({ title, list: said })
  }
  return groups
}

const text = (value: unknown): string => (typeof value === 'string' ? value : typeof value === 'number' ? String(value) : '')
const fields = (value: unknown): Fields => (typeof value === 'object' && value !== null ? (value as Fields) : {})

function finding(key: string, value: unknown): Finding {
  const tone = key === 'blocking_issues' ? 'bad' : ''
  if (typeof value === 'string') return { of: '', text: value, word: '', tone }
  const of = fields(value)
  const tests = of['test_count']
  const said = [text(of['description']), text(of['pattern']), text(of['recommendation']), text(of['purpose']), text(of['changes']), Array.isArray(of['coverage_areas']) ? of['coverage_areas'].map(text).join(', ') : '']
  const severity = text(of['severity'])
  return {
    of: text(of['file']) || text(of['path']) || text(of['type']),
    text: said.filter(Boolean).join('; '),
    word: text(of['relevance']) || severity || (typeof tests === 'number' ? `${tests} test${tests === 1 ? '' : 's'}` : ''),
    tone: severity === 'critical' ? 'bad' : tone,
  }
}

function checks(value: unknown): Finding[] {
  return Object.entries(fields(value)).map(([name, check]): Finding => {
    const of = fields(check)
    const passed = of['passed'] === true
    const count = typeof of['total'] === 'number' ? `${text(of['passed_count'])} of ${text(of['total'])}` : ''
    const wrong = ['errors', 'failures', 'issues', 'vulnerabilities'].flatMap((key) => (Array.isArray(of[key]) ? (of[key] as unknown[]).map((one) => text(one) || text(fields(one)['description']) || text(fields(one)['message'])) : []))
    return { of: name, text: [count, ...wrong].filter(Boolean).join('; '), word: passed ? 'passed' : 'failed', tone: passed ? 'good' : 'bad' }
  })
}
