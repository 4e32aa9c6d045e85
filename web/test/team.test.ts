import { describe, expect, test } from 'vitest'
import type { CouncilView } from '../src/api/team'
import type { Recorded } from '../src/api/types'
import { councilOf, decided, speeches, stanceWord, stands, verdictWord } from '../src/state/council'
import { count, generations, neighbours } from '../src/state/lineage'
import { findings, steps, summaryTokens } from '../src/state/phases'
import type { RunState } from '../src/state/run'
import { log, replay, view } from './logs'

const lived = (name: string, until = Infinity): RunState => replay(log(name), until)!

/** The run right after a member has spoken for the nth time. */
function after(member: string, round: number): RunState {
  const event = log('generation1').find((one) => one.event === 'council_heard' && one.member === member && one.round === round)
  return lived('generation1', event!.seq)
}

const look = (run: RunState): { council: CouncilView; words: string[]; agreed: number } => {
  const council = councilOf(run, null)!
  const members = stands(council, run)
  return { council, words: members.map((one) => stanceWord(one.stance, one.turns, council.sealed)), agreed: council.agreed }
}

describe('s4_03 a council', () => {
  test('hides the first votes until all are given', () => {
    const blind = look(after('Jordan', 1))
    expect(blind.council.sealed).toBe(true)
    expect(blind.words).toEqual(['has voted', 'has voted', 'has voted', 'has voted', 'yet to speak'])
    expect(blind.agreed).toBe(0)
    const open = look(after('Pierre', 1))
    expect(open.council.sealed).toBe(false)
    expect(open.words).toEqual(['is building', 'agrees', 'disagrees', 'abstains', 'is building'])
  })

  test('fills its quorum by weight, and shows who has the word', () => {
    const agreed = (['Alex', 'Sam', 'Morgan', 'Jordan'] as const).map((name) => look(after(name, 2)).agreed)
    expect(agreed).toEqual([3, 3, 3, 4])
    const run = after('Morgan', 2)
    const next = lived('generation1', log('generation1').find((one) => one.seq > run.seq && one.event === 'turn_ordered')!.seq)
    const council = councilOf(next, 'h1')!
    expect(stands(council, next).filter((one) => one.speaks).map((one) => one.member)).toEqual(['Jordan'])
    expect(council).toMatchObject({ needed: 5, total: 6 })
  })

  test('comes to the verdict of the daemon, with its dissent and decisions', () => {
    const run = lived('generation1')
    const { council, agreed } = look(run)
    const verdict = council.verdict!
    expect([verdictWord(verdict), agreed, verdict.agreed]).toEqual(['Consensus', 5, 5])
    expect(verdict.dissent).toEqual([{ member: 'Morgan', signal: 'disagree', reason: 'the schema file does not reach those who lose data' }])
    expect(decided(council).map((one) => one.text)).toEqual(verdict.key_decisions)
    expect(decided(council).map((one) => one.by)).toEqual(['Sam', 'Alex', 'Pierre'])
    expect(council.next_topic).toBe(verdict.next_topic)
  })

  test('hears the person who lets it speak on', () => {
    const run = after('Pierre', 1)
    const said = { position: 0, run: run.id, seq: run.seq + 1, at: '2026-11-15T18:00:00Z', event: 'council_reopened', handoff: 'h1', advice: 'Mind the zeros' } as Recorded
    const reopened = replay([...log('generation1').slice(0, run.seq), said])!
    expect(speeches(reopened, councilOf(reopened, null)!).at(-1)).toMatchObject({ by: 'human', said: 'Mind the zeros' })
  })
})

describe('s4_01 generations', () => {
  const [first, second] = [lived('generation1'), lived('generation2')]
  const all = new Map([first, second].map((run) => [run.id, run]))

  test('lead to each other', () => {
    expect(neighbours(first, all)).toEqual({ before: null, after: second.id })
    expect(neighbours(second, all)).toEqual({ before: first.id, after: null })
    for (const run of [first, second]) expect(generations(run, all).map((one) => [one.number, one.run])).toEqual([[1, first.id], [2, second.id]])
    expect(generations(second, all).map((one) => one.place)).toEqual(['before', 'here'])
  })

  test('know the way to one that has not been read yet', () => {
    expect(neighbours(first, new Map()).after).toBe(second.id)
    expect(generations(first, new Map()).map((one) => [one.number, one.run, one.cost])).toEqual([[1, first.id, 0.23], [2, second.id, null]])
  })

  test('cost what the daemon says, and tell why they handed over', () => {
    expect(first.lineage?.handed_over).toMatchObject({ action: 'continue_discussion', topic: second.request, why: 'generation 2 of 3' })
    expect(first.lineage?.handed_over?.cost).toBe(view('generation1').purse.spent.money)
    expect(second.lineage?.spent).toBe(first.purse.spent.money)
    expect(count(second.lineage!)).toEqual({ now: 2, most: 3 })
  })
})

describe('s3_05 phases', () => {
  const run = lived('phases')

  test('took, are used to and saved what the daemon says', () => {
    const daemon = (view('phases') as unknown as { phases: { phases: { tokens: object; rounds: number; typical: { total: number } }[]; saving: object } }).phases
    expect(steps(run).map((step) => step.tokens)).toEqual(daemon.phases.map((line) => line.tokens))
    expect(steps(run).map((step) => step.rounds.length)).toEqual(daemon.phases.map((line) => line.rounds))
    expect(steps(run).map((step) => step.typical)).toEqual(daemon.phases.map((line) => line.typical.total))
    expect(run.phases?.saving).toEqual(daemon.saving)
  })

  test('stand where they are at every moment', () => {
    const at = (event: string, place: number): string[] => steps(lived('phases', log('phases').find((one) => one.event === event && 'place' in one && one.place === place)!.seq)).map((step) => step.standing)
    expect(at('phase_begun', 0)).toEqual(['now', 'to come', 'to come'])
    expect(at('phase_ended', 0)).toEqual(['passed', 'to come', 'to come'])
    expect(at('phase_ended', 2)).toEqual(['passed', 'passed', 'stopped'])
    const again = log('phases').findLast((one) => one.event === 'phase_begun' && one.phase === 'write')!
    expect(steps(lived('phases', again.seq)).map((step) => step.standing)).toEqual(['passed', 'now', 'sent back'])
    expect(steps(run).map((step) => step.standing)).toEqual(['passed', 'passed', 'passed'])
  })

  test('hand on a summary whose tokens were counted', () => {
    const [research] = steps(run)
    expect(research!.rounds[0]!.summary).toMatch(/^Rows come from/)
    expect(summaryTokens(research!.rounds[0]!)).toBe(36)
  })

  test('have findings by kind, whatever an agent makes of them', () => {
    const leg = run.legs.get(steps(run)[2]!.rounds[0]!.parts[0]!.handoff)!
    const found = findings(leg.standing.kind === 'closed' ? leg.standing.response.outputs : {})
    expect(found.map((group) => group.title)).toEqual(['Must be repaired', 'To look at', 'Checks'])
    expect(found[2]!.list.map(({ of, word }) => [of, word])).toEqual([['types', 'passed'], ['tests', 'passed'], ['security', 'failed']])
    expect(findings({ conflicts: [null, 3, {}], checks: 'none', recommendations: { a: 1 } })).toEqual([])
  })
})

describe('b_12 a fork goes on where it began', () => {
  test('in the middle of a council', () => {
    const run = lived('forked-council')
    const council = councilOf(run, null)!
    expect(stands(council, run).map((one) => [one.member, one.weight, one.stance, one.turns, one.speaks?.id ?? null])).toEqual([
      ['Alex', 2, 'agree', 2, null],
      ['Sam', 1, 'agree', 2, null],
      ['Morgan', 1, 'disagree', 2, null],
      ['Jordan', 1, 'abstain', 1, 'h10'],
      ['Pierre', 1, 'building', 1, null],
    ])
    expect(council).toMatchObject({ agreed: 3, needed: 5, total: 6 })
    expect(speeches(run, council).map((one) => `${one.by} ${one.round}`)).toEqual(['Alex 1', 'Sam 1', 'Morgan 1', 'Jordan 1', 'Pierre 1', 'Alex 2', 'Sam 2', 'Morgan 2'])
    expect(run.lineage?.number).toBe(1)
  })

  test('in the middle of its phases', () => {
    const run = lived('forked-phases')
    expect(steps(run).map((step) => [step.standing, step.tokens.reported])).toEqual([['passed', 1380], ['now', 2240], ['sent back', 1120]])
    expect(steps(run)[1]!.rounds.at(-1)?.parts.map((part) => part.handoff)).toEqual(['h4'])
    expect(run.phases?.saving).toEqual({ raw: 4740, handed_on: 71 })
    // Of those that had ended only the last decision is known.
    expect(steps(run).map((step) => step.rounds.map(({ round, beganAt, decision }) => [round, beganAt === null, decision]))).toEqual([[[1, true, 'PROCEED']], [[2, false, null]], [[1, true, 'STOP']]])
  })
})
