// The track: lanes, legs, strokes. It is also the scrubber.

import type { JSX } from 'preact'
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { type Bar, type Stroke, type Track as Drawn, track } from '../state/track'
import { ticks } from '../state/scale'
import { clock, span } from '../state/words'
import { agent, at, dragTo, dragged, events, go, live, now, place, run, runId, short } from '../app/store'
import { still } from '../app/theme'
import { Past } from './Header'
import { useSize } from './parts'

const GUTTER = 104
const AXIS = 18
const END = 14

/** How high a row is, by how many there are. */
const rowHeight = (rows: number): number => (rows <= 8 ? 20 : rows <= 16 ? 15 : 11)

export function Track(): JSX.Element | null {
  // The whole run is drawn even when a moment of it is shown: what moves is the hand, not the track.
  const state = live.value
  const [size, measure] = useSize()
  const [hover, setHover] = useState<{ x: number; y: number; text: string } | null>(null)
  const time = Math.max(now.value, state?.updatedAt ?? 0)
  const drawn = useMemo(() => state && track(state, horizon(state.createdAt, time, state.stage === 'finished')), [state, Math.floor(time / 1000)])
  const drag = useRef<{ x: number; moved: boolean } | null>(null)
  if (!state || !drawn) return null
  const width = Math.max(40, size.width - GUTTER - END)
  const total = drawn.lanes.reduce((sum, lane) => sum + lane.rows, 0)
  const row = rowHeight(total)
  const tops: number[] = []
  drawn.lanes.reduce((y, lane, index) => {
    tops[index] = y
    return y + lane.rows * row + (row > 15 ? 4 : 2)
  }, 6)
  const height = (tops.at(-1) ?? 0) + (drawn.lanes.at(-1)?.rows ?? 1) * row + 4
  const x = (when: number): number => GUTTER + drawn.scale.x(when) * width
  const moveTo = (event: PointerEvent): void => {
    const box = (event.currentTarget as Element).getBoundingClientRect()
    dragTo(drawn.scale.at(Math.min(1, Math.max(0, (event.clientX - box.left - GUTTER) / width))))
  }
  const begin = (event: PointerEvent): void => {
    if (event.button !== 0 || event.clientX - (event.currentTarget as Element).getBoundingClientRect().left < GUTTER) return
    drag.current = { x: event.clientX, moved: false }
  }
  const move = (event: PointerEvent): void => {
    const going = drag.current
    if (!going) return
    if (!going.moved && Math.abs(event.clientX - going.x) < 4) return
    if (!going.moved) (event.currentTarget as Element).setPointerCapture(event.pointerId)
    going.moved = true
    moveTo(event)
  }
  const end = (event: PointerEvent): void => {
    const going = drag.current
    drag.current = null
    if (!going) return
    if (going.moved) {
      // Whoever holds Shift stays in the past.
      if (event.shiftKey && dragged.value !== null) go({ at: dragged.value, run: short(runId.value ?? '') })
      dragged.value = null
      return
    }
    const leg = (event.target as Element).closest<SVGElement>('[data-leg]')?.dataset['leg']
    if (leg) go({ handoff: leg, run: short(runId.value ?? '') })
  }
  const over = (event: PointerEvent): void => {
    const text = (event.target as Element).closest<SVGElement>('[data-label]')?.dataset['label']
    const box = (event.currentTarget as Element).getBoundingClientRect()
    setHover(text ? { x: Math.min(event.clientX - box.left, size.width - 260), y: event.clientY - box.top, text } : null)
  }
  const past = at.value !== null && run.value ? x(run.value.updatedAt) : null
  return (
    <section class="track" aria-label="Track of the run" ref={measure}>
      <div class="track-scroll">
        <svg
          class={`track-lanes${drag.current?.moved ? ' is-dragged' : ''}`}
          width="100%"
          height={height}
          onPointerDown={begin}
          onPointerMove={(event) => {
            move(event)
            over(event)
          }}
          onPointerUp={end}
          onPointerCancel={() => {
            drag.current = null
            dragged.value = null
          }}
          onPointerLeave={() => setHover(null)}
          role="group"
          aria-label="Legs and handoffs; every leg opens its handoff"
        >
          {drawn.scale.pieces
            .filter((piece) => piece.folded)
            .map((piece) => (
              <rect key={piece.from} class="track-fold" x={x(piece.from)} y={0} width={Math.max(1, x(piece.to) - x(piece.from))} height={height} data-label={`${span(piece.to - piece.from)} in which nobody worked`} />
            ))}
          {drawn.lanes.map((lane, index) => (
            <g key={lane.name}>
              <line class="track-line" x1={GUTTER} x2={GUTTER + width} y1={tops[index]! + (lane.rows * row) / 2} y2={tops[index]! + (lane.rows * row) / 2} />
              <text class={`track-name${agent.value === lane.name ? ' is-here' : ''}`} x={GUTTER - 10} y={tops[index]! + (lane.rows * row) / 2} font-size={row > 15 ? 12 : 10} onClick={() => go({ view: 'terminal', agent: lane.name })}>
                {lane.name.length > 14 ? `${lane.name.slice(0, 13)}…` : lane.name}
              </text>
            </g>
          ))}
          {drawn.strokes.map((stroke) => (
            <Crossing key={`${stroke.leg}${stroke.kind}`} stroke={stroke} x={x(stroke.at)} y={(lane) => tops[lane]! + ((drawn.lanes[lane]?.rows ?? 1) * row) / 2} />
          ))}
          {drawn.bars.map((bar) => (
            <LegBar key={`${bar.leg}/${bar.kind}/${bar.from}`} bar={bar} x={x(bar.from)} width={x(bar.open ? Math.min(bar.to, time) : bar.to) - x(bar.from)} y={tops[bar.lane]! + bar.row * row} height={row} chosen={place.value.handoff === bar.leg} />
          ))}
          {drawn.ticks.map((tick) => (
            <Mark key={`${tick.kind}${tick.at}${tick.leg}`} tick={tick} x={x(tick.at)} y={tops[tick.lane]!} height={(drawn.lanes[tick.lane]?.rows ?? 1) * row} />
          ))}
          {past !== null && (
            <g class="track-hand">
              <rect class="track-future" x={past} y={0} width={Math.max(0, size.width - past)} height={height} />
              <line class="track-now" x1={past} x2={past} y1={0} y2={height} />
            </g>
          )}
        </svg>
      </div>
      <Axis drawn={drawn} x={x} width={width} />
      {hover && !dragged.value && (
        <div class="tip" style={{ left: `${hover.x + 12}px`, top: `${hover.y + 14}px` }}>
          {hover.text}
        </div>
      )}
      <input
        class="track-slider"
        type="range"
        aria-label="Moment of the run, by event"
        min={1}
        max={Math.max(1, events.value.length)}
        value={at.value ?? events.value.length}
        onInput={(event) => {
          const value = Number(event.currentTarget.value)
          go({ at: value >= events.value.length ? null : value, run: short(runId.value ?? '') }, 'replace')
        }}
      />
      <Past />
    </section>
  )
}

/** The right end of a track that still runs lies a little ahead and moves in steps, so that nothing creeps. */
function horizon(from: number, now: number, over: boolean): number {
  if (over) return now
  const elapsed = Math.max(1000, now - from)
  const step = Math.max(2000, 2 ** Math.floor(Math.log2(elapsed)) / 8)
  return from + Math.ceil(elapsed / step + 0.25) * step
}

function LegBar({ bar, x, width, y, height, chosen }: { bar: Bar; x: number; width: number; y: number; height: number; chosen: boolean }): JSX.Element {
  const thick = Math.max(5, height - 8)
  const w = Math.max(bar.kind === 'work' ? 3 : 1, width)
  const top = y + (height - thick) / 2
  const name = `leg is-${bar.kind.replace(' ', '-')}${bar.end === 'failed' ? ' is-failed' : ''}${bar.open ? ' is-open' : ''}${chosen ? ' is-chosen' : ''}`
  const yours = bar.kind === 'needs you' || bar.kind === 'asked'
  const text = yours ? span(bar.to - bar.from) : `${bar.leg}${bar.attempt > 1 ? ` · try ${bar.attempt}` : ''}`
  return (
    <g
      class={name}
      data-leg={bar.leg}
      data-label={`${bar.label} · ${span(bar.to - bar.from)}`}
      tabindex={bar.kind === 'work' || yours ? 0 : undefined}
      role={bar.kind === 'work' || yours ? 'button' : undefined}
      aria-label={bar.kind === 'work' || yours ? `${text}, ${bar.label}` : undefined}
      onKeyDown={(event) => {
        if (event.key === 'Enter') go({ handoff: bar.leg })
      }}
    >
      {bar.kind === 'work' || yours ? <rect class="leg-bar" x={x} y={top} width={w} height={thick} rx={2} /> : <line class="leg-wait" x1={x} x2={x + w} y1={y + height / 2} y2={y + height / 2} />}
      {bar.end === 'failed' && <path class="leg-notch" d={`M${x + w} ${top - 2}l-4 ${thick / 2 + 2} 4 ${thick / 2 + 2}z`} />}
      {bar.kind === 'work' && w > 54 && height > 15 && (
        <text class="leg-text" x={x + 6} y={y + height / 2}>
          {text}
        </text>
      )}
      {yours && w > 44 && height > 15 && (
        <text class="leg-text" x={x + 6} y={y + height / 2}>
          {text}
        </text>
      )}
    </g>
  )
}

/** A handoff crosses from lane to lane; a new one travels there. */
function Crossing({ stroke, x, y }: { stroke: Stroke; x: number; y: (lane: number) => number }): JSX.Element {
  const line = useRef<SVGLineElement>(null)
  const fresh = useRef(Date.now() - stroke.at < 1500)
  const from = y(stroke.from)
  const to = y(stroke.to)
  useEffect(() => {
    if (!fresh.current || still.matches) return
    line.current?.animate([{ strokeDashoffset: '1' }, { strokeDashoffset: '0' }], { duration: 200, easing: 'ease-out' })
  }, [])
  return (
    <g class={`stroke is-${stroke.kind}`} data-leg={stroke.leg} data-label={stroke.label}>
      <line class="stroke-hit" x1={x} x2={x} y1={from} y2={to} />
      <line ref={line} class="stroke-line" x1={x} x2={x} y1={from} y2={to} pathLength={stroke.kind === 'handoff' ? 1 : undefined} />
      <circle class="stroke-head" cx={x} cy={to} r={2.6} />
    </g>
  )
}

function Mark({ tick, x, y, height }: { tick: Drawn['ticks'][number]; x: number; y: number; height: number }): JSX.Element {
  const data = { 'data-label': tick.label, ...(tick.leg ? { 'data-leg': tick.leg } : {}) }
  const middle = y + height / 2
  if (tick.kind === 'asked') return <path class="tick is-asked" {...data} d={`M${x} ${middle - 5}l5 5-5 5-5-5z`} />
  const r = Math.min(5, height / 2 - 1)
  return (
    <g class={`tick is-${tick.kind}`} {...data}>
      <rect class="tick-hit" x={x - 7} y={y} width={14} height={height} />
      <path class="tick-cross" d={`M${x - r} ${middle - r}l${2 * r} ${2 * r}m0 ${-2 * r}l${-2 * r} ${2 * r}`} />
    </g>
  )
}

function Axis({ drawn, x, width }: { drawn: Drawn; x: (at: number) => number; width: number }): JSX.Element {
  const marks = ticks(drawn.scale, Math.max(2, Math.floor(width / 96)))
  return (
    <svg class="track-axis" width="100%" height={AXIS} aria-hidden="true">
      {marks.map((mark) => (
        <text key={mark} class="axis-text" x={x(mark)} y={12} text-anchor="middle">
          {clock(mark)}
        </text>
      ))}
      {drawn.scale.pieces
        .filter((piece) => piece.folded && piece.width * width > 40)
        .map((piece) => (
          <text key={piece.from} class="axis-text" x={(x(piece.from) + x(piece.to)) / 2} y={12} text-anchor="middle">
            {`⋯ ${span(piece.to - piece.from)}`}
          </text>
        ))}
    </svg>
  )
}
