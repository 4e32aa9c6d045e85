import { describe, expect, test } from 'vitest'
import { agents, sentence } from '../src/state/agents'
import { batches, fallback, inbox } from '../src/state/inbox'
import { numbers } from '../src/state/numbers'
import type { RunState } from '../src/state/run'
import { NAMES, crowd, log, reduce, replay, view } from './logs'

function lived(name: string): RunState {
  const state = log(name).reduce<RunState | null>(reduce, null)
  if (!state) throw new Error(`${name} has no run_created`)
  return state
}

describe('the page and the daemon agree', () => {
  test.each(NAMES)('on what the run %s came to', (name) => {
    const daemon = view(name)
    const page = lived(name)
    expect([page.status, page.why ?? undefined, page.seq]).toEqual([daemon.status, daemon.why, daemon.seq])
    expect(page.purse).toMatchObject(daemon.purse)
    expect(page.tally).toMatchObject(daemon.tally)
  })

  test.each([...NAMES, 'asked', 'forked-council', 'forked-phases'])('on every handoff of %s', (name) => {
    const known: Record<string, object> = {}
    let state: RunState | null = null
    for (const event of log(name)) {
      state = reduce(state, event)
      for (const [id, fields] of Object.entries(event.changed?.handoffs ?? {})) known[id] = { ...known[id], ...fields }
      expect(Object.fromEntries([...state!.legs].map(([id, leg]) => [id, leg.handoff]))).toEqual(known)
    }
    for (const [id, leg] of state!.legs) expect([id, Object.keys(leg.handoff.state)[0] === 'closed']).toEqual([id, leg.standing.kind === 'closed'])
  })
})

describe('b_12 any moment', () => {
  test.each(NAMES)('of %s is the same replayed as lived', (name) => {
    let state: RunState | null = null
    for (const event of log(name)) {
      state = reduce(state, event)
      expect(replay(log(name), event.seq)).toEqual(state)
    }
  })

  test('reducing changes nothing that was seen before', () => {
    let state: RunState | null = null
    for (const event of log('feature')) {
      const before = JSON.stringify(state && { ...state, legs: [...state.legs] })
      const next = reduce(state, event)
      expect(JSON.stringify(state && { ...state, legs: [...state.legs] })).toBe(before)
      state = next
    }
  })
})

describe('the inbox', () => {
  test('b_13 has the question with its options, deadline and default', () => {
    const run = lived('asked')
    const [item, ...rest] = inbox([run])
    expect(rest).toEqual([])
    expect(item).toMatchObject({ handoff: 'h3', asker: 'planner', title: 'Sessions in the database, or signed tokens?' })
    expect(item?.question.options).toHaveLength(3)
    expect(item!.until).toBeGreaterThan(item!.since)
    expect(fallback(item!)).toMatch(/taken|expires/)
    expect([run.status, run.waitingOn]).toEqual(['waiting', 'human'])
    expect(sentence(run)).toBe('Waits for your answer')
  })

  test('is empty once it is answered', () => {
    expect(inbox([lived('feature')])).toEqual([])
  })

  test('b_13 puts the same question of several runs together, but never words', () => {
    const run = lived('asked')
    const twin = { ...run, id: '01a1df4c-ffff-75b2-8fd8-1889cad11adc' }
    expect(batches(inbox([run, twin])).map((group) => group.length)).toEqual([2])
    const open = inbox([run, twin]).map((item) => ({ ...item, question: { ...item.question, options: [] } }))
    expect(batches(open).map((group) => group.length)).toEqual([1, 1])
  })
})

describe('the rail', () => {
  test('s1_16 shows who needs a person first, and in whose words', () => {
    const [first] = agents(lived('asked'))
    expect(first).toMatchObject({ name: 'planner', group: 'needs you', question: 'h3' })
  })

  test('says who has the baton at every moment', () => {
    const at = log('feature').find((event) => event.event === 'lease_renewed' && event.note?.startsWith('Reading the diff'))
    const run = replay(log('feature'), at!.seq)!
    const working = agents(run).filter((agent) => agent.group === 'working')
    expect(working.map((agent) => agent.name)).toContain('reviewer')
    expect(working.find((agent) => agent.name === 'reviewer')?.doing).toBe('Reading the diff, 14 files')
  })

  test('has everyone done when the run is over', () => {
    expect(new Set(agents(lived('feature')).map((agent) => agent.group))).toEqual(new Set(['done']))
  })
})

test('s5_10 the numbers add up', () => {
  const run = lived('feature')
  const sums = numbers(run, run.updatedAt)
  expect(sums.agents.reduce((sum, agent) => sum + agent.spent.tokens, 0)).toBe(sums.spent.tokens)
  expect(sums.rounds).toEqual([{ name: 'review', round: 3, max: 3 }])
  expect(sums.escalationRate).toBeCloseTo(1 / 8)
  expect(sums.waitedForPeople).toBeGreaterThan(0)
  expect(sums.working).toBeGreaterThan(0)
})

test('ten thousand events of fifty agents are replayed in one frame or few', () => {
  const events = crowd(50, 10_000)
  const began = performance.now()
  const run = replay(events)
  const elapsed = performance.now() - began
  console.log(`10,000 events in ${elapsed.toFixed(0)} ms`)
  expect(run?.seq).toBe(events.length)
  expect(agents(run!)).toHaveLength(50)
})
