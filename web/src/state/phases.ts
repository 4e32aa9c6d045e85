// The phases of a run: what each took, found and handed on.

import type { Brought, Measured, PhaseDecision, PhaseEvent, PhaseName, PhaseStep, PhasesState, Tokens } from '../api/team'
import type { Fields } from '../api/types'
import type { RunState } from './run'

/** One agent's part in a phase. */
export interface Part {
  handoff: string
  agent: string
  measured: Measured | null
  brought: Brought | null
}

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
  tokens: Tokens
  /** What it saved, where only that is known. */
  kept: { raw: number; handed_on: number } | null
}

/** A summary of more tokens goes back to who wrote it. */
export const MOST_SUMMARY = 500

/** What a phase usually takes in all, in tokens. */
const TYPICAL: Partial<Record<PhaseName, number>> = { research: 1500, write: 2500, validate: 1300 }

const NONE: Tokens = { request: 0, response: 0, reported: 0 }

/** A part as the daemon tells it. */
const told = ({ handoff, agent, measured, brought }: PhasesState['parts'][number]): Part => ({ handoff, agent, measured: measured ?? null, brought: brought ?? null })

/** The rounds of a run after an event. */
export function proceed(rounds: readonly Round[], event: PhaseEvent, at: number, run: Pick<RunState, 'legs'>): Round[] {
  const now = rounds.at(-1)
  switch (event.event) {
    case 'phase_begun': {
      const begun = event.parts.map((handoff): Part => ({ handoff, agent: run.legs.get(handoff)?.offer.to ?? '', measured: null, brought: null }))
      // What the generation before had of it comes first.
      const parts = [...(event.kept ?? []).map(told), ...begun]
      return [...rounds, { place: event.place, phase: event.phase, round: event.round, beganAt: at, endedAt: null, parts, decision: null, why: '', rule: '', summary: '', tokens: NONE, kept: null }]
    }
    case 'turn_measured': {
      if (!now) return [...rounds]
      const handoff = event.turn.split('/')[1]
      return [...rounds.slice(0, -1), { ...now, parts: now.parts.map((part) => (part.handoff === handoff ? { ...part, measured: event.measured } : part)) }]
    }
    case 'phase_ended': {
      if (!now) return [...rounds]
      const parts = event.parts.map(told)
      const { decision, why, rule, summary, tokens } = event
      return [...rounds.slice(0, -1), { ...now, endedAt: at, parts, decision, why, rule, summary, tokens }]
    }
  }
}

/** The rounds of a run that was forked, those before taken together: what they found is not kept. The one that goes on is the last. */
export function resumed(old: PhasesState, at: number): Round[] {
  const before: Round[] = []
  const going: Round[] = []
  for (const { place, phase, rounds, decision, why, tokens, saving } of old.hops) {
    const round: Round = { place, phase, round: rounds, beganAt: at, endedAt: at, parts: [], decision: decision ?? 'PROCEED', why: why ?? '', rule: '', summary: '', tokens, kept: saving }
    if (decision) before.push(round)
    else {
      if (rounds > 1) before.push({ ...round, round: rounds - 1 })
      const parts = old.parts.map(told)
      going.push({ ...round, endedAt: null, parts, decision: null, why: '', tokens: NONE, kept: null })
    }
  }
  return [...before, ...going]
}

/** Whoever takes a part over has it from then on. */
export function passOn(rounds: Round[], handoff: string, to: string | undefined, run: Pick<RunState, 'legs'>): Round[] {
  const now = rounds.at(-1)
  if (!to || !now?.parts.some((part) => part.handoff === handoff)) return rounds
  const parts = now.parts.map((part) => (part.handoff === handoff ? { ...part, handoff: to, agent: run.legs.get(to)?.offer.to ?? part.agent } : part))
  return [...rounds.slice(0, -1), { ...now, parts }]
}

/** A phase of the workflow with all that became of it. */
export interface Step {
  place: number
  phase: PhaseName
  agents: string[]
  rounds: Round[]
  most: number
  standing: 'to come' | 'now' | 'passed' | 'sent back' | 'stopped'
  tokens: Tokens
  /** What it took in all: as its agents say, or at least what was counted. */
  took: number
  typical: number | null
}

export function steps(run: RunState): Step[] {
  return (run.workflow.phases ?? []).map((step: PhaseStep, place): Step => {
    const rounds = run.rounds.filter((one) => one.place === place)
    const last = rounds.at(-1)
    const tokens = rounds.reduce((sum, { tokens }) => ({ request: sum.request + tokens.request, response: sum.response + tokens.response, reported: sum.reported + tokens.reported }), NONE)
    const over = run.stage === 'finished'
    // What did not pass is the end of it, unless an earlier phase has another go.
    const failed = run.rounds.at(-1) === last ? 'stopped' : 'sent back'
    const standing = !last ? 'to come' : last.decision === null ? (over ? 'stopped' : 'now') : last.decision === 'STOP' ? failed : 'passed'
    const took = Math.max(tokens.reported, tokens.request + tokens.response)
    return { place, phase: step.phase, agents: step.agents, rounds, most: step.rounds ?? 3, standing, tokens, took, typical: TYPICAL[step.phase] ?? null }
  })
}

/** How many tokens the summary of a round has, as they were counted. */
export function summaryTokens(round: Round): number | null {
  const counts = round.parts.map((part) => part.measured?.summary)
  return counts.some((count) => typeof count === 'number') ? counts.reduce<number>((sum, count) => sum + (count ?? 0), 0) : null
}

/** What there was to hand on, and what was handed on instead. */
export function saving(run: RunState): { raw: number; handedOn: number } {
  const last = (run.workflow.phases?.length ?? 0) - 1
  let [raw, handedOn] = [0, 0]
  for (const round of run.rounds) {
    if (round.decision === null || (round.place >= last && round.decision !== 'STOP')) continue
    raw += round.kept?.raw ?? Math.max(round.tokens.reported, round.tokens.response)
    handedOn += round.kept?.handed_on ?? summaryTokens(round) ?? 0
  }
  return { raw, handedOn }
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
