import { expect, test } from 'vitest'
import type { Node, Picture, Scored, Term } from '../src/api/knowledge'
import { TERMS, reckon, winner } from '../src/state/returns'
import { beside, drawn, keyOf, ways, wrapped } from '../src/state/walk'
import { addDays, clockOf, dayKey, daysOf, inTheWay, minutesOf, monday, moved, onDay, steps } from '../src/state/week'

const ZONE = 'Europe/Berlin'
const at = (text: string): number => new Date(`${text}+01:00`).getTime()
const timed = (id: string, start: string, end: string): { id: string; start: number; end: number } => ({ id, start: at(start), end: at(end) })

test('a week begins on its Monday, whatever day it is asked by', () => {
  const key = (day: string | null, now: number): string => dayKey(monday(day, now, ZONE), ZONE)
  expect(key('2026-11-22', 0)).toBe('2026-11-16')
  expect(key('2026-11-16', 0)).toBe('2026-11-16')
  expect(key('no day', at('2026-11-18T12:00'))).toBe('2026-11-16')
  expect(daysOf(monday('2026-11-18', 0, ZONE), ZONE).map((day) => dayKey(day, ZONE))).toEqual(['2026-11-16', '2026-11-17', '2026-11-18', '2026-11-19', '2026-11-20', '2026-11-21', '2026-11-22'])
})

test('days and hours are those of the zone that is asked for, wherever the browser is', () => {
  const late = Date.parse('2026-11-15T20:30:00Z')
  expect(['Asia/Tokyo', 'UTC', 'America/New_York', 'Asia/Kolkata'].map((zone) => [dayKey(late, zone), clockOf(late, zone)])).toEqual([
    ['2026-11-16', '05:30'],
    ['2026-11-15', '20:30'],
    ['2026-11-15', '15:30'],
    ['2026-11-16', '02:00'],
  ])
  expect(new Date(monday(null, late, 'Asia/Tokyo')).toISOString()).toBe('2026-11-15T15:00:00.000Z')
  expect(new Date(monday(null, late, 'America/New_York')).toISOString()).toBe('2026-11-09T05:00:00.000Z')
  expect(onDay([{ id: 'a', start: late, end: late + 3_600_000 }], monday('2026-11-16', 0, 'Asia/Tokyo'), 'Asia/Tokyo').map(({ from, to }) => [from, to])).toEqual([[330, 390]])
})

test('a day on which the clock is set has its midnights, and nine is nine', () => {
  const hours = (day: string): number => {
    const midnight = daysOf(monday(day, 0, ZONE), ZONE).find((one) => dayKey(one, ZONE) === day)!
    return (addDays(midnight, 1, ZONE) - midnight) / 3_600_000
  }
  expect([hours('2026-03-28'), hours('2026-03-29'), hours('2026-10-25')]).toEqual([24, 23, 25])
  const nine = (day: string, zulu: string): number[] => {
    const one = { id: 'a', start: Date.parse(`${day}T${zulu}:00Z`), end: Date.parse(`${day}T${zulu}:00Z`) + 3_600_000 }
    const midnight = daysOf(monday(day, 0, ZONE), ZONE).find((start) => dayKey(start, ZONE) === day)!
    return onDay([one], midnight, ZONE).flatMap(({ from, to }) => [from, to])
  }
  expect(nine('2026-03-28', '08:00')).toEqual([540, 600])
  expect(nine('2026-03-29', '07:00')).toEqual([540, 600])
  expect(nine('2026-10-25', '08:00')).toEqual([540, 600])
  expect([minutesOf(Date.parse('2026-10-25T00:30:00Z'), ZONE), minutesOf(Date.parse('2026-10-25T01:30:00Z'), ZONE)]).toEqual([150, 150])
  // Where the clock never shows midnight, the day begins when it goes on.
  const friday = daysOf(monday('2024-04-26', 0, 'Africa/Cairo'), 'Africa/Cairo')[4]!
  expect([dayKey(friday, 'Africa/Cairo'), clockOf(friday, 'Africa/Cairo')]).toEqual(['2024-04-26', '01:00'])
})

test('a block that is moved over a change of the clock keeps its time on the wall', () => {
  const saturday = { id: 'a', start: Date.parse('2026-03-28T08:00:00Z'), end: Date.parse('2026-03-28T10:00:00Z') }
  const sunday = moved(saturday, 1, 0, ZONE)
  expect([new Date(sunday.start).toISOString(), sunday.end - sunday.start]).toEqual(['2026-03-29T07:00:00.000Z', 7_200_000])
  expect(moved(sunday, -1, 0, ZONE)).toEqual(saturday)
  // An hour that there is not, and one that there is twice.
  const early = { id: 'a', start: Date.parse('2026-03-29T00:30:00Z'), end: Date.parse('2026-03-29T00:45:00Z') }
  expect(clockOf(moved(early, 0, 60, ZONE).start, ZONE)).toBe('03:30')
  let twice = { id: 'a', start: Date.parse('2026-10-25T00:45:00Z'), end: Date.parse('2026-10-25T01:00:00Z') }
  const forth: string[] = []
  for (let step = 0; step < 3; step += 1) {
    const next = moved(twice, 0, 15, ZONE)
    expect(next.start).toBeGreaterThan(twice.start)
    forth.push(clockOf((twice = next).start, ZONE))
  }
  expect(forth).toEqual(['03:00', '03:15', '03:30'])
  const second = { id: 'a', start: Date.parse('2026-10-25T01:15:00Z'), end: Date.parse('2026-10-25T01:30:00Z') }
  expect(moved(second, 0, 15, ZONE).start).toBe(second.start + 900_000)
  expect(moved(second, 0, -15, ZONE).start).toBeLessThan(second.start)
  expect(onDay([{ id: 'a', start: Date.parse('2026-10-25T00:45:00Z'), end: Date.parse('2026-10-25T01:15:00Z') }], Date.parse('2026-10-24T22:00:00Z'), ZONE).map(({ from, to }) => [from, to])).toEqual([[165, 195]])
})

test('what overlaps stands side by side, and what follows has the whole width again', () => {
  const day = at('2026-11-16T00:00')
  const list = [timed('a', '2026-11-16T09:00', '2026-11-16T11:00'), timed('b', '2026-11-16T10:00', '2026-11-16T12:00'), timed('c', '2026-11-16T11:00', '2026-11-16T11:30'), timed('d', '2026-11-16T12:00', '2026-11-16T13:00')]
  expect(onDay(list, day, ZONE).map(({ one, lane, lanes }) => [one.id, lane, lanes])).toEqual([
    ['a', 0, 2],
    ['b', 1, 2],
    ['c', 0, 2],
    ['d', 0, 1],
  ])
})

test('what lasts over midnight is on both days', () => {
  const night = timed('n', '2026-11-16T22:00', '2026-11-17T02:00')
  expect(onDay([night], at('2026-11-16T00:00'), ZONE).map(({ from, to, continued }) => [from, to, continued])).toEqual([[22 * 60, 24 * 60, true]])
  expect(onDay([night], at('2026-11-17T00:00'), ZONE).map(({ from, to }) => [from, to])).toEqual([[0, 120]])
  expect(onDay([night], at('2026-11-18T00:00'), ZONE)).toEqual([])
})

test('a block keeps its length when it is moved, by whole steps', () => {
  const block = timed('a', '2026-11-16T09:00', '2026-11-16T11:00')
  const later = moved(block, 1, 45, ZONE)
  expect([later.start, later.end]).toEqual([at('2026-11-17T09:45'), at('2026-11-17T11:45')])
  expect([steps(44, 44), steps(10, 44), steps(-17, 44), steps(3, 44)]).toEqual([60, 15, -30, 0])
  expect(dayKey(addDays(at('2026-03-28T09:00'), 1, ZONE), ZONE)).toBe('2026-03-29')
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
