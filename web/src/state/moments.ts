// Any moment of a run, fast enough to be dragged along: states are kept from place to place.

import type { Recorded } from '../api/types'
import { type RunState, extend } from './run'

const EVERY = 400

export class Moments {
  readonly #events: readonly Recorded[]
  readonly #kept: (RunState | null)[] = [null]

  constructor(events: readonly Recorded[]) {
    this.#events = events
  }

  /** The run after its event number `seq`. */
  at(seq: number): RunState | null {
    const place = Math.min(Math.floor(seq / EVERY), Math.floor(this.#events.length / EVERY))
    for (let next = this.#kept.length; next <= place; next += 1) {
      const slice = this.#events.slice((next - 1) * EVERY, next * EVERY)
      this.#kept.push(extend(this.#kept[next - 1] ?? null, slice))
    }
    return extend(this.#kept[place] ?? null, this.#events.slice(place * EVERY, seq))
  }
}

/** The number of the last event that happened no later than `at`; the first one if none did. */
export function seqAt(events: readonly Recorded[], at: number): number {
  let low = 0
  let high = events.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (Date.parse(events[middle]!.at) <= at) low = middle + 1
    else high = middle
  }
  return events[Math.max(0, low - 1)]?.seq ?? 1
}
