// A diff as rows to look at: one under the other, or side by side.

import type { FileDiff, Hunk } from '../api/types'
import { type Open, type Piece, colour, languageOf } from './syntax'

export interface Row {
  sign: ' ' | '+' | '-'
  /** The line's number before, if it was there. */
  before: number | null
  /** The line's number after, if it is there. */
  after: number | null
  pieces: Piece[]
  unended: boolean
}

/** The rows of a place that differs, numbered and coloured. */
export function rows(file: string, hunk: Hunk): Row[] {
  const language = languageOf(file)
  let [before, after] = [Math.max(1, hunk.old_start), Math.max(1, hunk.new_start)]
  // What goes and what comes are two texts: a comment that begins in one does not go on in the other.
  let [old, fresh]: [Open, Open] = [null, null]
  return hunk.lines.map((line) => {
    const sign = line.sign === '+' || line.sign === '-' ? line.sign : ' '
    const [pieces, open] = colour(line.text, language, sign === '-' ? old : fresh)
    if (sign !== '+') old = open
    if (sign !== '-') fresh = open
    const row: Row = { sign, before: sign === '+' ? null : before, after: sign === '-' ? null : after, pieces, unended: line.unended ?? false }
    if (sign !== '+') before += 1
    if (sign !== '-') after += 1
    return row
  })
}

export type Pair = [Row | null, Row | null]

/** The same rows side by side: what goes beside what comes in its place. */
export function pairs(list: Row[]): Pair[] {
  const out: Pair[] = []
  let gone: Row[] = []
  let come: Row[] = []
  const flush = (): void => {
    for (let index = 0; index < Math.max(gone.length, come.length); index += 1) out.push([gone[index] ?? null, come[index] ?? null])
    gone = []
    come = []
  }
  for (const row of list) {
    if (row.sign === '-') {
      // What comes after what has come is another place.
      if (come.length) flush()
      gone.push(row)
    } else if (row.sign === '+') {
      come.push(row)
    } else {
      flush()
      out.push([row, row])
    }
  }
  flush()
  return out
}

/** The line that a remark about this row is about: as it would be, or as it was in a file that goes. */
export function lineOf(diff: FileDiff, row: Row): number | null {
  return diff.action === 'delete' ? row.before : row.after
}

export const linesOf = (diff: FileDiff): number => diff.hunks.reduce((sum, hunk) => sum + hunk.lines.length, 0)
