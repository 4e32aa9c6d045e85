// The track: one lane an agent, legs as bars, handoffs as strokes that cross from lane to lane.

import { about, asked, asker, title } from './agents'
import { type Span, told } from './history'
import { type Leg, type RunState, standingWord } from './run'
import { type Interval, type Scale, scale } from './scale'

export interface Bar {
  leg: string
  lane: number
  kind: Span['kind'] | 'needs you'
  from: number
  to: number
  open: boolean
  end: Span['end']
  attempt: number
  /** Which of the bars that overlap in this lane, from 0. */
  row: number
  label: string
}

export interface Stroke {
  leg: string
  at: number
  from: number
  to: number
  kind: 'handoff' | 'return' | 'refused'
  label: string
}

export interface Tick {
  lane: number
  at: number
  kind: 'refused' | 'asked' | 'alert' | 'crash'
  label: string
  leg: string | null
}

export interface Lane {
  name: string
  rows: number
}

export interface Track {
  lanes: Lane[]
  bars: Bar[]
  strokes: Stroke[]
  ticks: Tick[]
  scale: Scale
}

/** The track of a run as it is at `now`. */
export function track(run: RunState, now: number): Track {
  const end = run.stage === 'finished' ? run.updatedAt : Math.max(now, run.updatedAt)
  const names = laneNames(run)
  const lane = new Map(names.map((name, index) => [name, index]))
  const waits = new Set(asked(run).map((leg) => leg.id))
  const asks = new Map<string, Leg>()
  for (const leg of run.legs.values()) if (leg.offer.to === 'human') asks.set(leg.id, leg)
  const bars: Bar[] = []
  const strokes: Stroke[] = []
  const ticks: Tick[] = []
  const busy: Interval[] = []
  for (const leg of run.legs.values()) {
    const { from, to } = leg.offer
    const here = lane.get(to)
    if (to === 'human') {
      const at = lane.get(asker(run, leg))
      if (at !== undefined) person(run, leg, at, end, bars, ticks, waits)
      continue
    }
    if (here === undefined) continue
    for (const span of leg.spans) {
      const until = span.to ?? end
      if (span.kind === 'work') busy.push({ from: span.from, to: until })
      // Waits for a person are drawn by the question itself.
      if (span.kind === 'blocked' && covered(span, until, asks, end)) continue
      if (span.kind !== 'work' && until - span.from < 1) continue
      bars.push({
        leg: leg.id,
        lane: here,
        kind: span.kind,
        from: span.from,
        to: until,
        open: span.to === null && run.stage !== 'finished',
        end: span.end,
        attempt: span.attempt,
        row: 0,
        label: `${leg.id} ${to}: ${about(leg)} (${standingWord(leg.standing)})`,
      })
    }
    const there = lane.get(from)
    if (there !== undefined && there !== here) {
      strokes.push({ leg: leg.id, at: leg.admittedAt, from: there, to: here, kind: 'handoff', label: `${leg.id} ${from} → ${to}: ${about(leg)}` })
    }
    const back = leg.returnsTo ? run.legs.get(leg.returnsTo) : undefined
    if (back && leg.standing.kind === 'closed' && leg.standing.succeededBy.length === 0) {
      const home = lane.get(back.offer.to)
      if (home !== undefined && home !== here) {
        const label = `${leg.id} answers ${back.offer.to}: ${standingWord(leg.standing)}`
        strokes.push({ leg: leg.id, at: leg.standing.at, from: here, to: home, kind: 'return', label })
      }
    }
  }
  for (const one of told(run, 'handoff_refused')) {
    const at = lane.get(one.offer.from)
    if (at !== undefined) ticks.push({ lane: at, at: Date.parse(one.at), kind: 'refused', leg: one.id, label: `${one.id} ${one.offer.from} → ${one.offer.to} refused: ${rule(one.refusal)}` })
  }
  for (const { agent, state, at: when } of told(run, 'session_changed')) {
    const at = lane.get(agent)
    if (at !== undefined && state === 'crashed') ticks.push({ lane: at, at: Date.parse(when), kind: 'crash', leg: null, label: `${agent} crashed` })
  }
  const lanes = names.map((name) => ({ name, rows: 1 }))
  stack(lanes, bars)
  return { lanes, bars, strokes, ticks, scale: scale(run.createdAt, end, busy) }
}

/** Lanes in the order in which work arrives, so that a relay reads downwards; then those who wait for theirs. */
export function laneNames(run: RunState): string[] {
  const names = new Set<string>()
  const known = new Set([...Object.keys(run.workflow.agents), 'orchestrator'])
  for (const leg of run.legs.values()) {
    const name = leg.offer.to === 'human' ? asker(run, leg) : leg.offer.to
    // The orchestrator answers at once; it has a lane only when it asks.
    if (known.has(name) && (name !== 'orchestrator' || leg.offer.to === 'human')) names.add(name)
  }
  for (const name of Object.keys(run.workflow.agents)) names.add(name)
  return [...names]
}

function person(run: RunState, leg: Leg, lane: number, end: number, bars: Bar[], ticks: Tick[], waits: Set<string>): void {
  const label = `${leg.id} ${title(leg)}`
  ticks.push({ lane, at: leg.admittedAt, kind: 'asked', leg: leg.id, label })
  const closed = leg.standing.kind === 'closed' ? leg.standing.at : end
  if (leg.offer.question && !leg.offer.question.blocking) return
  bars.push({
    leg: leg.id,
    lane,
    kind: waits.has(leg.id) && run.stage !== 'finished' ? 'needs you' : 'asked',
    from: leg.admittedAt,
    to: closed,
    open: leg.standing.kind !== 'closed' && run.stage !== 'finished',
    end: '',
    attempt: 1,
    row: 0,
    label,
  })
}

function covered(span: Span, until: number, asks: Map<string, Leg>, end: number): boolean {
  for (const ask of asks.values()) {
    const to = ask.standing.kind === 'closed' ? ask.standing.at : end
    if (ask.admittedAt <= span.from + 1 && to >= until - 1) return true
  }
  return false
}

/** Bars of one lane that overlap go into rows of their own. */
function stack(lanes: Lane[], bars: Bar[]): void {
  const free: number[][] = lanes.map(() => [])
  const rowOf = new Map<string, number>()
  for (const bar of [...bars].sort((a, b) => a.from - b.from)) {
    const rows = free[bar.lane]!
    const key = `${bar.lane}/${bar.leg}`
    const kept = rowOf.get(key)
    let row = kept !== undefined && (rows[kept] ?? 0) <= bar.from ? kept : rows.findIndex((until) => until <= bar.from)
    if (row < 0) row = Math.min(rows.length, 3)
    rows[row] = Math.max(rows[row] ?? 0, bar.to)
    rowOf.set(key, row)
    bar.row = row
    lanes[bar.lane]!.rows = Math.max(lanes[bar.lane]!.rows, row + 1)
  }
}

/** A refusal in words. */
export function rule(refusal: Record<string, unknown>): string {
  const name = typeof refusal['rule'] === 'string' ? refusal['rule'] : (Object.keys(refusal)[0] ?? 'refused')
  const inner = refusal[name]
  const of = (typeof inner === 'object' && inner !== null ? inner : refusal) as Record<string, unknown>
  const text = (key: string): string => String(of[key] ?? '?')
  const list = (key: string): string => (Array.isArray(of[key]) ? (of[key] as unknown[]).map(String) : []).join(', ')
  switch (name) {
    case 'too_large':
      return `${text('bytes')} bytes are more than the ${text('limit')} allowed`
    case 'item_limit':
      return `the work item was handed over ${text('limit')} times, which is the limit`
    case 'run_limit':
      return `the run has had ${text('limit')} handoffs, which is the limit`
    case 'repeated':
      return `the step ${text('from')} → ${text('to')} was just taken twice`
    case 'cycle':
      return `circular: ${(Array.isArray(of['path']) ? of['path'] : []).join(' → ')}`
    case 'loop_exhausted':
      return `the loop ${text('name')} has had its ${text('rounds')} rounds`
    case 'no_progress':
      return `round ${text('round')} of the loop ${text('name')} changed nothing`
    case 'unknown_target':
      return `nobody is called ${text('to')}`
    case 'denied':
      return `${text('from')} must not hand to ${text('to')}: ${text('why')}`
    case 'no_route':
      return `there is no route ${text('from')} → ${text('to')}; possible: ${list('possible')}`
    case 'missing_evidence':
      return `missing: ${list('missing')}`
    default:
      return name.replaceAll('_', ' ')
  }
}
