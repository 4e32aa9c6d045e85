// What stands in a week, and how it is called.

import type { Block, Occurrence, Week } from '../../api/knowledge'
import { type Timed, clockOf } from '../../state/week'
import type { GlyphName } from '../parts'

/** What stands in the week: an event of the calendar, or a block that was proposed. */
export interface Thing extends Timed {
  title: string
  event: Occurrence | null
  block: Block | null
}

export const STATES: Record<Block['state'], [GlyphName, string]> = {
  proposed: ['needs you', 'proposed'],
  accepted: ['waiting', 'accepted, on its way into the calendar'],
  written: ['done', 'in the calendar'],
  moved: ['done', 'moved in the calendar'],
  deleted: ['cancelled', 'deleted from the calendar'],
  dropped: ['cancelled', 'dropped'],
}

/** Blocks that stand in the week; the others are over and done with. */
export const standing = (block: Block): boolean => block.state !== 'dropped' && block.state !== 'deleted'

/** Everything of a week once: an event that a block became is the block. */
export function things(view: Week): Thing[] {
  const blocks = view.proposals.filter(standing)
  const ours = new Set(blocks.map((block) => block.id))
  const events = view.events.filter((event) => !event.all_day && !ours.has(event.uid))
  return [
    ...events.map((event) => ({ id: `${event.uid}@${event.start}`, title: event.title, start: event.start, end: event.end, event, block: null })),
    ...blocks.map((block) => ({ id: block.id, title: block.title, start: block.start, end: block.end, event: null, block })),
  ]
}

export const hours = (one: Timed, zone: string): string => `${clockOf(one.start, zone)}–${clockOf(one.end, zone)}`
export const dayName = (day: number, zone: string, style: 'short' | 'long' = 'short'): string => new Date(day).toLocaleDateString('en', { timeZone: zone, weekday: style, day: 'numeric', month: 'short' })
