import { describe, expect, test } from 'vitest'
import { graph } from '../src/state/graph'
import { scale, union } from '../src/state/scale'
import { laneNames, rule, track } from '../src/state/track'
import { log, replay } from './logs'

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
  expect(run.refused.map((one) => rule(one.refusal)).join('\n')).toContain(expected)
})
