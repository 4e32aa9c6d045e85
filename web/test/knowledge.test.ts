import { expect, test } from 'vitest'
import type { Node, Picture, Scored, Term } from '../src/api/knowledge'
import { TERMS, reckon, winner } from '../src/state/returns'
import { beside, drawn, keyOf, ways, wrapped } from '../src/state/walk'
import { addDays, dayKey, daysOf, inTheWay, monday, moved, onDay, steps } from '../src/state/week'

const at = (text: string): number => new Date(text).getTime()
const timed = (id: string, start: string, end: string): { id: string; start: number; end: number } => ({ id, start: at(start), end: at(end) })

test('a week begins on its Monday, whatever day it is asked by', () => {
  expect(dayKey(monday('2026-11-22', 0))).toBe('2026-11-16')
  expect(dayKey(monday('2026-11-16', 0))).toBe('2026-11-16')
  expect(dayKey(monday('no day', at('2026-11-18T12:00')))).toBe('2026-11-16')
  expect(daysOf(monday('2026-11-18', 0)).map(dayKey)).toEqual(['2026-11-16', '2026-11-17', '2026-11-18', '2026-11-19', '2026-11-20', '2026-11-21', '2026-11-22'])
})

test('what overlaps stands side by side, and what follows has the whole width again', () => {
  const day = at('2026-11-16T00:00')
  const list = [timed('a', '2026-11-16T09:00', '2026-11-16T11:00'), timed('b', '2026-11-16T10:00', '2026-11-16T12:00'), timed('c', '2026-11-16T11:00', '2026-11-16T11:30'), timed('d', '2026-11-16T12:00', '2026-11-16T13:00')]
  expect(onDay(list, day).map(({ one, lane, lanes }) => [one.id, lane, lanes])).toEqual([
    ['a', 0, 2],
    ['b', 1, 2],
    ['c', 0, 2],
    ['d', 0, 1],
  ])
})

test('what lasts over midnight is on both days', () => {
  const night = timed('n', '2026-11-16T22:00', '2026-11-17T02:00')
  expect(onDay([night], at('2026-11-16T00:00')).map(({ from, to, continued }) => [from, to, continued])).toEqual([[22 * 60, 24 * 60, true]])
  expect(onDay([night], at('2026-11-17T00:00')).map(({ from, to }) => [from, to])).toEqual([[0, 120]])
  expect(onDay([night], at('2026-11-18T00:00'))).toEqual([])
})

test('a block keeps its length when it is moved, by whole steps', () => {
  const block = timed('a', '2026-11-16T09:00', '2026-11-16T11:00')
  const later = moved(block, 1, 45)
  expect([later.start, later.end]).toEqual([at('2026-11-17T09:45'), at('2026-11-17T11:45')])
  expect([steps(44, 44), steps(10, 44), steps(-17, 44), steps(3, 44)]).toEqual([60, 15, -30, 0])
  expect(dayKey(addDays(at('2026-03-28T09:00'), 1))).toBe('2026-03-29')
})

test('something is in the way only where both are', () => {
  const list = [timed('a', '2026-11-16T09:00', '2026-11-16T11:00')]
  expect(inTheWay(timed('b', '2026-11-16T11:00', '2026-11-16T12:00'), list)).toBeNull()
  expect(inTheWay(timed('b', '2026-11-16T10:45', '2026-11-16T12:00'), list)?.id).toBe('a')
  expect(inTheWay(timed('a', '2026-11-16T10:00', '2026-11-16T12:00'), list)).toBeNull()
})

const scored = (id: string, amounts: Record<Term, number>): Scored => ({ id, rank: 1, tied: false, total: 0, ratio: null, hours_factor: 1, parts: TERMS.map((term) => ({ term, amount: amounts[term], weight: 1, value: amounts[term] })) })
const build = scored('build', { benefit: 2000, goals: 400, cost: -100, hours: -600, risk: -80 })
const buy = scored('buy', { benefit: 1500, goals: 250, cost: -480, hours: -100, risk: -5 })

test('other weights give other places, and the parts add up', () => {
  const plain = { benefit: 1, goals: 1, cost: 1, hours: 1, risk: 1 }
  expect(reckon([buy, build], plain).map((one) => [one.id, one.rank, one.total])).toEqual([
    ['build', 1, 1620],
    ['buy', 2, 1165],
  ])
  const tired = reckon([build, buy], { ...plain, hours: 2 })
  expect(winner(tired)).toBe('buy')
  expect(tired[0]!.parts.reduce((sum, part) => sum + part.value, 0)).toBe(tired[0]!.total)
})

test('those that return the same share a place, and nobody wins', () => {
  const nothing = { benefit: 0, goals: 0, cost: 0, hours: 0, risk: 0 }
  const list = reckon([build, buy], nothing)
  expect(list.map((one) => [one.rank, one.tied])).toEqual([
    [1, true],
    [1, true],
  ])
  expect(winner(list)).toBeNull()
})

const made = { by: 'human', at: 0 } as Node['made']
const goal = { label: 'Goal', id: 'craft', title: 'Become better', horizon: 'quarter', target: '', made, changed: made } as Node
const decision = { label: 'Decision', id: 'd1', option: 'build', roi: 1, reasoning: '', status: 'pending', made, changed: made } as unknown as Node
const task = { label: 'Task', id: 't1', title: 'Write', effortHours: 2, priority: 'medium', status: 'open', made, changed: made } as unknown as Node
const picture: Picture = {
  nodes: [task, decision, goal],
  links: [
    { from: 'decision:d1', relation: 'SERVES', to: 'goal:craft', made },
    { from: 'task:t1', relation: 'PART_OF', to: 'decision:d1', made },
  ],
  cut: false,
}

test('a node reads its links from its own side', () => {
  expect(ways(picture, 'decision:d1').map((way) => [way.words, way.nodes.map(keyOf)])).toEqual([
    ['serves', ['goal:craft']],
    ['consists of', ['task:t1']],
  ])
  expect(ways(picture, 'goal:craft').map((way) => way.words)).toEqual(['is served by'])
})

test('the arrows go from column to column', () => {
  const drawing = drawn(picture, 'decision:d1', { width: 900, height: 400 }, { width: 176, height: 60 })
  expect(drawing.spots.map((spot) => [spot.key, spot.column])).toEqual([
    ['goal:craft', 0],
    ['decision:d1', 1],
    ['task:t1', 2],
  ])
  expect(beside(drawing, 'goal:craft', 'ArrowRight')?.key).toBe('decision:d1')
  expect(beside(drawing, 'task:t1', 'ArrowLeft')?.key).toBe('decision:d1')
  expect(beside(drawing, 'goal:craft', 'ArrowLeft')).toBeNull()
  expect(drawing.links).toHaveLength(2)
})

test('a long title has two lines', () => {
  expect(wrapped('Short', 10)).toEqual(['Short'])
  expect(wrapped('Become better at the work itself', 20)).toEqual(['Become better at the', 'work itself'])
  expect(wrapped('Donaudampfschifffahrtsgesellschaft and more and more', 12)).toEqual(['Donaudampfsc', 'hifffahrtsg…'])
})
