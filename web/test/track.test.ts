import { describe, expect, test } from 'vitest'
import { graph } from '../src/state/graph'
import { told } from '../src/state/history'
import { type RunState, turnKey } from '../src/state/run'
import { scale, union } from '../src/state/scale'
import { laneNames, rule, track } from '../src/state/track'
import { NAMES, log, reduce, replay } from './logs'

const feature = replay(log('feature'))!

describe('the track', () => {
  const drawn = track(feature, feature.updatedAt)

  test('has a lane an agent, in the order in which work arrives', () => {
    expect(laneNames(feature)).toEqual(['planner', 'research', 'builder', 'reviewer', 'writer', 'fixer'])
  })

  test('draws a review loop as a zigzag between two lanes', () => {
    const names = drawn.lanes.map((lane) => lane.name)
    const loop = drawn.strokes
      .map((stroke) => [names[stroke.from], names[stroke.to]])
      .filter((pair) => pair.includes('fixer'))
    expect(loop).toEqual([
      ['reviewer', 'fixer'],
      ['fixer', 'reviewer'],
      ['reviewer', 'fixer'],
      ['fixer', 'reviewer'],
    ])
  })

  test('has an amber gap where a person was waited for, in the lane of whoever asked', () => {
    const gap = drawn.bars.filter((bar) => bar.kind === 'asked')
    expect(gap).toHaveLength(1)
    expect(drawn.lanes[gap[0]!.lane]?.name).toBe('planner')
    const open = replay(log('asked'))!
    expect(track(open, open.updatedAt + 60_000).bars.filter((bar) => bar.kind === 'needs you')).toHaveLength(1)
  })

  test('has a red tick with the rule where a handoff was refused', () => {
    const refused = drawn.ticks.filter((tick) => tick.kind === 'refused')
    expect(refused).toHaveLength(1)
    expect(refused[0]?.label).toContain('there is no route builder → fixer')
  })

  test('notches the bar at a retry', () => {
    const builder = drawn.bars.filter((bar) => drawn.lanes[bar.lane]?.name === 'builder' && bar.kind === 'work')
    expect(builder.map((bar) => [bar.attempt, bar.end])).toEqual([
      [1, 'failed'],
      [2, 'done'],
      [2, 'done'],
    ])
  })

  test('never ends a bar before it begins', () => {
    for (const event of log('feature')) {
      const state = replay(log('feature'), event.seq)!
      for (const bar of track(state, state.updatedAt).bars) expect(bar.to).toBeGreaterThanOrEqual(bar.from)
    }
  })
})

/** The daemon keeps how a handoff stands, and the page how long it stood so. */
describe('the stretches on the track', () => {
  test.each(NAMES)('of %s are how the daemon said that each handoff stood', (name) => {
    let run: RunState | null = null
    for (const event of log(name)) {
      run = reduce(run, event)
      for (const { id, spans, standing } of run!.legs.values()) {
        const kinds = { pending: 'wait', parked: 'parked', out: 'work', blocked: 'blocked', asked: 'asked', closed: undefined }
        const where = `${id} at ${event.seq}`
        expect([where, spans.find((span) => span.to === null)?.kind]).toEqual([where, kinds[standing.kind]])
        for (const [index, span] of spans.entries()) if (index > 0) expect([where, span.from]).toEqual([where, spans[index - 1]!.to])
        if (standing.kind === 'out') expect([where, spans.at(-1)!.from]).toEqual([where, standing.turn.orderedAt])
        if (standing.kind === 'closed' && spans.length > 0) expect([where, spans.at(-1)!.to]).toEqual([where, standing.at])
      }
    }
    const turns = (kind: 'turn_ordered' | 'turn_finished' | 'turn_failed', id: string): number => told(run!, kind).filter((event) => turnKey(event.turn).handoff === id).length
    for (const { id, spans } of run!.legs.values()) {
      const work = spans.filter((span) => span.kind === 'work')
      const ended = (how: string): number => work.filter((span) => span.end === how).length
      expect([id, work.length, ended('done'), ended('failed')]).toEqual([id, turns('turn_ordered', id), turns('turn_finished', id), turns('turn_failed', id)])
    }
  })
})

describe('the scale of time', () => {
  const minute = 60_000
  test('folds a night in which nobody works', () => {
    const night = scale(0, 600 * minute, [
      { from: 0, to: 10 * minute },
      { from: 590 * minute, to: 600 * minute },
    ])
    expect(night.x(10 * minute)).toBeGreaterThan(0.4)
    expect(night.pieces.filter((piece) => piece.folded)).toHaveLength(1)
  })

  test('is the same there and back, and never goes backwards', () => {
    const some = scale(0, 100, [
      { from: 10, to: 20 },
      { from: 15, to: 30 },
      { from: 90, to: 95 },
    ])
    let last = -1
    for (let at = 0; at <= 100; at += 1) {
      expect(some.at(some.x(at))).toBeCloseTo(at, 5)
      expect(some.x(at)).toBeGreaterThanOrEqual(last)
      last = some.x(at)
    }
    expect([some.x(0), some.x(100)]).toEqual([0, 1])
  })

  test('joins what overlaps', () => {
    expect(
      union([
        { from: 5, to: 9 },
        { from: 1, to: 6 },
        { from: 20, to: 20 },
      ]),
    ).toEqual([{ from: 1, to: 9 }])
  })
})

describe('the graph', () => {
  test('ranks agents from the entry and counts how often a route was used', () => {
    const drawn = graph(feature)
    const rank = Object.fromEntries(drawn.nodes.map((node) => [node.name, node.rank]))
    expect([rank['human'], rank['planner'], rank['builder'], rank['reviewer']]).toEqual([0, 1, 2, 3])
    expect(drawn.edges.find((edge) => edge.from === 'reviewer' && edge.to === 'fixer')?.used).toBe(2)
    expect(drawn.edges.find((edge) => edge.from === 'fixer' && edge.to === 'reviewer')?.back).toBe(true)
  })
})

test.each([
  ['circular', 'circular: writer → editor → writer'],
  ['unknown', 'nobody is called'],
  ['limit', 'limit'],
])('the refusal in %s is said in words', (name, expected) => {
  const run = replay(log(name))!
  expect(told(run, 'handoff_refused').map((one) => rule(one.refusal)).join('\n')).toContain(expected)
})
