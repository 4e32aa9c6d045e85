import { describe, expect, test } from 'vitest'
import type { Recorded } from '../src/api/types'
import { NOWHERE, type World, reduceWorld } from '../src/state/world'
import { log, replay } from './logs'

const events = log('feature')
const run = events[0]!.run

function hear(world: World, ...lists: Recorded[][]): World {
  return lists.reduce((known, list) => reduceWorld(known, { type: 'heard', events: list }), world)
}

describe('a connection that breaks', () => {
  test('loses and doubles nothing, wherever it breaks and however much comes again', () => {
    const whole = replay(events)
    for (let cut = 1; cut < events.length; cut += 1) {
      const again = Math.max(0, cut - 7)
      const world = hear(NOWHERE, events.slice(0, cut), events.slice(again))
      expect(world.runs.get(run)).toEqual(whole)
      expect(world.runs.get(run)?.events.map((event) => event.seq)).toEqual(events.map((event) => event.seq))
      expect(world.gaps.size).toBe(0)
      expect(world.cursor).toBe(events[events.length - 1]!.position)
    }
  })

  test('with a hole in it is noticed, and the hole is read', () => {
    let world = hear(NOWHERE, events.slice(0, 10), events.slice(20, 30))
    expect(world.gaps).toEqual(new Set([run]))
    expect(world.runs.get(run)?.seq).toBe(10)
    world = reduceWorld(world, { type: 'read', run, events: events.slice(10) })
    expect(world.gaps.size).toBe(0)
    expect(world.runs.get(run)).toEqual(replay(events))
  })

  test('of a run that nobody has read is not mistaken for the whole', () => {
    const world = hear(NOWHERE, events.slice(40, 50))
    expect(world.runs.size).toBe(0)
    expect(world.gaps).toEqual(new Set([run]))
  })
})

describe('s4_03 a blind vote', () => {
  const all = log('generation1')
  const id = all[0]!.run
  const last = all.findIndex((event) => event.event === 'council_heard' && event.member === 'Pierre' && event.round === 1)
  const veiled = all.slice(0, last).map((event): Recorded => (event.event === 'council_heard' ? { ...event, said: '', vote: null, sealed: true } : event))
  const closed = hear(NOWHERE, veiled)

  test('is known when it is told again with its contents', () => {
    const again = all.slice(0, last).filter((event) => event.event === 'council_heard').map((event) => ({ ...event, again: true }))
    const world = hear(closed, [...again, ...all.slice(last)])
    expect(world.runs.get(id)).toEqual(replay(all))
    expect(world.runs.get(id)?.events.some((event) => event.sealed)).toBe(false)
  })

  test('is known when it is read again', () => {
    const world = reduceWorld(closed, { type: 'read', run: id, events: all })
    expect(world.runs.get(id)).toEqual(replay(all))
  })
})
