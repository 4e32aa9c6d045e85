// A week in the local time of whoever looks: where everything stands, and where a block would be.

export const DAYS = 7
/** Blocks are moved in steps of so many minutes. */
export const STEP = 15

const MINUTE = 60_000

export interface Timed {
  id: string
  start: number
  end: number
}

/** A piece of something on one day. */
export interface Spot<T extends Timed> {
  one: T
  /** Minutes from midnight. */
  from: number
  to: number
  /** Side by side with others: which lane of how many. */
  lane: number
  lanes: number
  /** Whether it began on a day before, or goes on after it. */
  continued: boolean
}

/** `2026-11-16`, of the local day. */
export function dayKey(at: number): string {
  const date = new Date(at)
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`
}

const two = (value: number): string => String(value).padStart(2, '0')

/** The Monday of a day's week; of today's when the text is no day. */
export function monday(day: string | null, now: number): number {
  const [year, month, date] = (/^\d{4}-\d{2}-\d{2}$/.exec(day ?? '')?.[0] ?? dayKey(now)).split('-').map(Number)
  const at = new Date(year!, month! - 1, date!)
  at.setDate(at.getDate() - ((at.getDay() + 6) % 7))
  return at.getTime()
}

/** Midnight, so many days later: days are not always 24 hours long. */
export function addDays(at: number, days: number): number {
  const date = new Date(at)
  date.setDate(date.getDate() + days)
  return date.getTime()
}

export function daysOf(week: number): number[] {
  return Array.from({ length: DAYS }, (_, index) => addDays(week, index))
}

/** Moved by days and minutes; the clock on the wall stays the same over a change of summer time. */
export function moved<T extends Timed>(one: T, days: number, minutes: number): T {
  const start = addDays(one.start, days) + minutes * MINUTE
  return { ...one, start, end: start + (one.end - one.start) }
}

/** Minutes that a distance on the grid stands for, in whole steps. */
export function steps(pixels: number, perHour: number): number {
  return Math.round(((pixels / perHour) * 60) / STEP) * STEP || 0
}

/** What a day shows of a list; those that overlap stand side by side. */
export function onDay<T extends Timed>(list: readonly T[], day: number): Spot<T>[] {
  const next = addDays(day, 1)
  const here = list
    .filter((one) => one.start < next && one.end > day)
    .map((one) => ({ one, from: Math.max(0, (one.start - day) / MINUTE), to: Math.min(24 * 60, (one.end - day) / MINUTE), lane: 0, lanes: 1, continued: one.start < day || one.end > next }))
    .sort((a, b) => a.from - b.from || b.to - a.to || (a.one.id < b.one.id ? -1 : 1))
  let group: Spot<T>[] = []
  let until = -1
  const close = (): void => {
    const lanes = Math.max(0, ...group.map((spot) => spot.lane)) + 1
    for (const spot of group) spot.lanes = lanes
    group = []
  }
  for (const spot of here) {
    if (spot.from >= until) close()
    const taken = new Set(group.filter((other) => other.to > spot.from).map((other) => other.lane))
    while (taken.has(spot.lane)) spot.lane += 1
    group.push(spot)
    until = Math.max(until, spot.to)
  }
  close()
  return here
}

/** Whether another of the list is at that time. */
export function inTheWay<T extends Timed>(one: Timed, list: readonly T[]): T | null {
  return list.find((other) => other.id !== one.id && other.start < one.end && other.end > one.start) ?? null
}
