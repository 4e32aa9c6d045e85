// A week by the clock on the wall of one zone, the user's own as the project says it: where everything
// stands, and where a block would be. Days are not always 24 hours long.

export const DAYS = 7
/** Blocks are moved in steps of so many minutes. */
export const STEP = 15

const MINUTE = 60_000
const DAY = 24 * 60 * MINUTE

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

const formats = new Map<string, Intl.DateTimeFormat>()

/** What the clock of a zone shows, in milliseconds as if it hung where there are no zones. */
function shown(at: number, zone: string): number {
  let format = formats.get(zone)
  if (!format) {
    format = new Intl.DateTimeFormat('en', { timeZone: zone, hourCycle: 'h23', year: 'numeric', month: 'numeric', day: 'numeric', hour: 'numeric', minute: 'numeric', second: 'numeric' })
    formats.set(zone, format)
  }
  const parts = Object.fromEntries(format.formatToParts(at).map(({ type, value }) => [type, Number(value)]))
  return Date.UTC(parts.year!, parts.month! - 1, parts.day!, parts.hour!, parts.minute!, parts.second!) + (((at % 1000) + 1000) % 1000)
}

/** When the clock of a zone shows this: the first time where it does twice, and as much later as it jumps where it never does. */
function when(wall: number, zone: string): number {
  const ahead = (at: number): number => wall - (shown(at, zone) - at)
  const [before, after] = [ahead(wall - DAY), ahead(wall + DAY)]
  return shown(before, zone) === wall || shown(after, zone) !== wall ? before : after
}

/** `2026-11-16`, the day in the zone. */
export function dayKey(at: number, zone: string): string {
  return new Date(shown(at, zone)).toISOString().slice(0, 10)
}

/** Minutes from midnight by the clock on the wall. */
export function minutesOf(at: number, zone: string): number {
  return (((shown(at, zone) % DAY) + DAY) % DAY) / MINUTE
}

/** `09:30` on the wall. */
export function clockOf(at: number, zone: string): string {
  return new Date(shown(at, zone)).toISOString().slice(11, 16)
}

/** The Monday of a day's week; of today's when the text is no day. */
export function monday(day: string | null, now: number, zone: string): number {
  const given = Date.parse(/^\d{4}-\d{2}-\d{2}$/.exec(day ?? '')?.[0] ?? '')
  const midnight = Number.isNaN(given) ? Date.parse(dayKey(now, zone)) : given
  return when(midnight - ((new Date(midnight).getUTCDay() + 6) % 7) * DAY, zone)
}

/** At the same time on the wall, so many days later. */
export function addDays(at: number, days: number, zone: string): number {
  return days === 0 ? at : when(shown(at, zone) + days * DAY, zone)
}

export function daysOf(week: number, zone: string): number[] {
  return Array.from({ length: DAYS }, (_, index) => addDays(week, index, zone))
}

/** Moved by days and by minutes on the wall; where the clock shows an hour twice, the minutes are those that pass. */
export function moved<T extends Timed>(one: T, days: number, minutes: number, zone: string): T {
  const day = addDays(one.start, days, zone)
  const wall = when(shown(day, zone) + minutes * MINUTE, zone)
  const forth = Math.sign(wall - day) === Math.sign(minutes)
  const start = minutes === 0 ? day : forth ? wall : day + minutes * MINUTE
  return { ...one, start, end: start + (one.end - one.start) }
}

/** Minutes that a distance on the grid stands for, in whole steps. */
export function steps(pixels: number, perHour: number): number {
  return Math.round(((pixels / perHour) * 60) / STEP) * STEP || 0
}

/** What a day shows of a list; those that overlap stand side by side. */
export function onDay<T extends Timed>(list: readonly T[], day: number, zone: string): Spot<T>[] {
  const next = addDays(day, 1, zone)
  const here = list
    .filter((one) => one.start < next && one.end > day)
    .map((one) => {
      const from = one.start < day ? 0 : minutesOf(one.start, zone)
      const to = one.end >= next ? 24 * 60 : minutesOf(one.end, zone)
      // In the hour that the clock shows twice it can end before it begins.
      const last = to > from ? to : Math.min(24 * 60, from + (one.end - one.start) / MINUTE)
      return { one, from, to: last, lane: 0, lanes: 1, continued: one.start < day || one.end > next }
    })
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
