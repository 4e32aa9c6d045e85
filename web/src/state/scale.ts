// Time on the track. Work is drawn to scale; long stretches in which nobody works are folded, so that a
// night's wait for an answer does not press an hour of work into a few pixels.

export interface Piece {
  from: number
  to: number
  x: number
  width: number
  folded: boolean
}

export interface Scale {
  pieces: Piece[]
  from: number
  to: number
  /** From a moment to 0 … 1. */
  x: (at: number) => number
  /** From 0 … 1 to a moment. */
  at: (x: number) => number
}

export interface Interval {
  from: number
  to: number
}

/** Idle stretches longer than this part of all work are folded to exactly this part. */
const FOLD = 0.12

/** A scale over `from`…`to` on which only the times in `busy` have their true length. */
export function scale(from: number, to: number, busy: Interval[]): Scale {
  const end = Math.max(to, from + 1)
  const work = union(busy.map((one) => ({ from: Math.max(from, one.from), to: Math.min(end, one.to) })))
  const total = work.reduce((sum, one) => sum + one.to - one.from, 0) || end - from
  const room = Math.max(total * FOLD, 1)
  const pieces: Piece[] = []
  let cursor = from
  const push = (until: number, idle: boolean): void => {
    const length = until - cursor
    if (length <= 0) return
    const folded = idle && length > room * 2
    pieces.push({ from: cursor, to: until, x: 0, width: folded ? room : length, folded })
    cursor = until
  }
  for (const one of work) {
    push(one.from, true)
    push(one.to, false)
  }
  push(end, true)
  const sum = pieces.reduce((width, piece) => width + piece.width, 0) || 1
  let x = 0
  for (const piece of pieces) {
    piece.x = x
    piece.width /= sum
    x += piece.width
  }
  return { pieces, from, to: end, x: (at) => place(pieces, at), at: (at) => moment(pieces, at) }
}

function place(pieces: Piece[], at: number): number {
  const piece = pieces.findLast((one) => one.from <= at) ?? pieces[0]
  if (!piece) return 0
  const part = (at - piece.from) / Math.max(1, piece.to - piece.from)
  return piece.x + piece.width * Math.min(1, Math.max(0, part))
}

function moment(pieces: Piece[], x: number): number {
  const piece = pieces.findLast((one) => one.x <= x) ?? pieces[0]
  if (!piece) return 0
  const part = piece.width > 0 ? (x - piece.x) / piece.width : 0
  return piece.from + (piece.to - piece.from) * Math.min(1, Math.max(0, part))
}

/** The same times without overlaps, in order. */
export function union(intervals: Interval[]): Interval[] {
  const sorted = intervals.filter((one) => one.to > one.from).sort((a, b) => a.from - b.from)
  const merged: Interval[] = []
  for (const one of sorted) {
    const last = merged[merged.length - 1]
    if (last && one.from <= last.to) last.to = Math.max(last.to, one.to)
    else merged.push({ ...one })
  }
  return merged
}

const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21_600, 43_200, 86_400, 172_800, 604_800]

/** Round moments along the scale, at most about `count` of them, and none where time is folded. */
export function ticks(scale: Scale, count: number): number[] {
  const open = scale.pieces.filter((piece) => !piece.folded)
  const part = open.reduce((sum, piece) => sum + piece.width, 0) || 1
  const length = open.reduce((sum, piece) => sum + piece.to - piece.from, 0)
  const wanted = length / Math.max(1, count * part)
  const step = 1000 * (STEPS.find((seconds) => seconds * 1000 >= wanted) ?? Math.ceil(wanted / 604_800_000) * 604_800)
  const list: number[] = []
  let last = -1
  for (const piece of open) {
    for (let at = Math.ceil(piece.from / step) * step; at <= piece.to; at += step) {
      const x = scale.x(at)
      if (x < 0.03 || x > 0.97 || x - last < 0.7 / count) continue
      list.push(at)
      last = x
    }
  }
  return list
}
