// The phases of a run: what each took, as the daemon says, and what it found and handed on each time.

import type { Part, PhaseDecision, PhaseEvent, PhaseName, PhaseStep, PhasesView, Tokens } from '../api/team'
import type { Fields } from '../api/types'
import type { RunState } from './run'

/** A phase, each time that it is entered. */
export interface Round {
  place: number
  phase: PhaseName
  round: number
  beganAt: number
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

/** The rounds of a run after a phase was entered, with these parts, or has ended. */
export function enter(rounds: readonly Round[], event: PhaseEvent, at: number, parts: Part[]): Round[] {
  const now = rounds.at(-1)
  if (event.event === 'phase_begun') {
    const { place, phase, round } = event
    return [...rounds, { place, phase, round, beganAt: at, endedAt: null, parts, decision: null, why: '', rule: '', summary: '' }]
  }
  if (!now) return []
  const { decision, why, rule, summary } = event
  return [...rounds.slice(0, -1), { ...now, endedAt: at, parts: event.parts, decision, why, rule, summary }]
}

/** The rounds of a run that was forked: what those before have found is not kept. The one that goes on is the last. */
export function resumed({ phases, parts }: PhasesView, at: number): Round[] {
  const rounds = phases.map(({ place, phase, rounds: round, decision, why }): Round => {
    const goesOn = !decision
    return { place, phase, round, beganAt: at, endedAt: goesOn ? null : at, parts: goesOn ? (parts ?? []) : [], decision: decision ?? null, why: why ?? '', rule: '', summary: '' }
  })
  return [...rounds.filter((one) => one.decision), ...rounds.filter((one) => !one.decision)]
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
    const line = run.phases?.phases.find((one) => one.place === place)
    const rounds = run.rounds.filter((one) => one.place === place)
    const tokens = line?.tokens ?? NONE
    // What did not pass is the end of it, unless an earlier phase has another go.
    const failed = run.rounds.at(-1)?.place === place ? 'stopped' : 'sent back'
    const standing = !line ? 'to come' : !line.decision ? (run.stage === 'finished' ? 'stopped' : 'now') : line.decision === 'STOP' ? failed : 'passed'
    const took = Math.max(tokens.reported, tokens.request + tokens.response)
    const ended = line ? line.rounds - (line.decision ? 0 : 1) : 0
    return { place, phase: step.phase, agents: step.agents, rounds, ended, most: step.rounds ?? 3, standing, tokens, took, typical: line?.typical?.total ?? null }
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
