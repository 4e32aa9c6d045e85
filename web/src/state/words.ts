// Numbers and times as people read them. Widths are steady, so that nothing flickers.

import type { Usage } from '../api/types'

/** `4s`, `3m 05s`, `2h 14m`, `3d`. */
export function span(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000))
  if (seconds < 60) return `${seconds}s`
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m ${two(seconds % 60)}s`
  if (seconds < 48 * 3600) return `${Math.floor(seconds / 3600)}h ${two(Math.floor(seconds / 60) % 60)}m`
  return `${Math.floor(seconds / 86400)}d`
}

/** The same for what may take less than a second. */
export function took(ms: number): string {
  if (ms < 100) return `${Math.round(ms)}ms`
  if (ms < 10_000) return `${(ms / 1000).toFixed(1)}s`
  return span(ms)
}

export function money(dollars: number): string {
  if (dollars === 0) return '$0.00'
  return dollars < 0.01 ? `$${dollars.toFixed(4)}` : `$${dollars.toFixed(2)}`
}

/** `$0.10`, `≈ $0.10` for an estimate, `≥ $0.10` where some of it is not known, or `unknown`. */
export function cost(usage: Usage): string {
  if (usage.unknown?.money) return usage.money ? `≥ ${money(usage.money)}` : 'unknown'
  return usage.estimated ? `≈ ${money(usage.money)}` : money(usage.money)
}

/** The tokens, where they are known: `80`, `≥ 80` or `unknown`. */
export function counted(usage: Usage): string {
  if (usage.unknown?.tokens) return usage.tokens ? `≥ ${tokens(usage.tokens)}` : 'unknown'
  return tokens(usage.tokens)
}

/** What was used in a sentence; empty for nothing. */
export function used(usage: Usage): string {
  const nothing = !usage.tokens && !usage.money && !usage.unknown
  return nothing ? '' : `${counted(usage)} tokens, ${cost(usage)}`
}

/** `2 turns unknown`, as far as there are any. */
export function unknown(usage: Usage): string {
  const turns = Math.max(usage.unknown?.money ?? 0, usage.unknown?.tokens ?? 0)
  return turns ? `${turns} ${turns === 1 ? 'turn' : 'turns'} unknown` : ''
}

export function tokens(count: number): string {
  if (count < 1000) return String(count)
  if (count < 100_000) return `${(count / 1000).toFixed(1)}k`
  if (count < 1_000_000) return `${Math.round(count / 1000)}k`
  return `${(count / 1_000_000).toFixed(1)}M`
}

/** `14:02:07` of the local day. */
export function clock(at: number, millis = false): string {
  const date = new Date(at)
  const text = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`
  return millis ? `${text}.${String(date.getMilliseconds()).padStart(3, '0')}` : text
}

/** The same with its day when that is not the day of `now`. */
export function moment(at: number, now: number): string {
  const date = new Date(at)
  const same = date.toDateString() === new Date(now).toDateString()
  const time = `${two(date.getHours())}:${two(date.getMinutes())}`
  return same ? time : `${date.toLocaleDateString('en', { weekday: 'short', day: 'numeric', month: 'short' })}, ${time}`
}

export function percent(part: number): string {
  return `${Math.round(part * 100)}%`
}

function two(value: number): string {
  return String(value).padStart(2, '0')
}
