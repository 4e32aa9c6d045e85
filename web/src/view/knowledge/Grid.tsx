// A week by hours. Blocks are dragged here, and take the keys of whoever shows them.

import type { JSX } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import type { Occurrence } from '../../api/knowledge'
import { DAYS, type Spot, dayKey, minutesOf, moved, onDay, steps } from '../../state/week'
import { now } from '../../app/store'
import { Glyph, Said } from '../parts'
import { STATES, type Thing, dayName, hours } from './things'

/** The height of an hour. */
const HOUR = 44

interface Grids {
  zone: string
  days: number[]
  list: Thing[]
  whole: Occurrence[]
  draft: Thing | null
  here: Thing | null
  focus: (one: Thing) => void
  keys: (event: KeyboardEvent, one: Thing) => void
  setDraft: (one: Thing | null) => void
  put: (one: Thing) => void
}

export function Grid({ zone, days, list, whole, draft, here, focus, keys, setDraft, put }: Grids): JSX.Element {
  const box = useRef<HTMLDivElement>(null)
  const first = Math.min(8 * 60, ...days.flatMap((day) => onDay(list, day, zone).map((spot) => spot.from)))
  // Once: whoever scrolls stays where they are.
  useEffect(() => {
    if (box.current) box.current.scrollTop = Math.max(0, (first / 60) * HOUR - 8)
  }, [days[0]])
  const today = dayKey(now.value, zone)
  // All of them in one layer and in an order that never changes: what is moved to another day keeps the focus and the pointer.
  const pieces = days
    .flatMap((start, day) => onDay(list, start, zone).map((spot) => ({ key: spot.continued ? `${spot.one.id} ${day}` : spot.one.id, day, spot })))
    .sort((a, b) => (a.key < b.key ? -1 : 1))
  return (
    <div class="grid" ref={box} tabIndex={0} role="region" aria-label="The week by hours">
      <div class="grid-head">
        <span />
        {days.map((day) => (
          <div key={day} class={dayKey(day, zone) === today ? 'grid-day is-today' : 'grid-day'}>
            {dayName(day, zone)}
            {onDay(whole.map((event) => ({ ...event, id: event.uid })), day, zone).map((spot) => (
              <Said key={spot.one.id} text={spot.one.title} of="whole-day" />
            ))}
          </div>
        ))}
      </div>
      <div class="grid-body" style={{ height: `${24 * HOUR}px` }}>
        <div class="grid-hours" aria-hidden="true">
          {Array.from({ length: 24 }, (_, hour) => (
            <span key={hour} style={{ top: `${hour * HOUR}px` }}>
              {String(hour).padStart(2, '0')}:00
            </span>
          ))}
        </div>
        {days.map((day) => (
          <div key={day} class="grid-column">
            {dayKey(day, zone) === today && <span class="grid-now" style={{ top: `${(minutesOf(now.value, zone) / 60) * HOUR}px` }} />}
          </div>
        ))}
        <div class="grid-stands">
          {pieces.map(({ key, day, spot }) => (
            <Stand key={key} zone={zone} day={day} spot={spot} moving={draft?.id === spot.one.id} here={here?.id === spot.one.id} focus={focus} keys={keys} setDraft={setDraft} put={put} />
          ))}
        </div>
      </div>
    </div>
  )
}

interface Stands {
  zone: string
  /** Which day of the week. */
  day: number
  spot: Spot<Thing>
  moving: boolean
  here: boolean
  focus: (one: Thing) => void
  keys: (event: KeyboardEvent, one: Thing) => void
  setDraft: (one: Thing | null) => void
  put: (one: Thing) => void
}

function Stand({ zone, day, spot, moving, here, focus, keys, setDraft, put }: Stands): JSX.Element {
  const { one } = spot
  const pulled = useRef<{ x: number; y: number; width: number; from: Thing; to: Thing } | null>(null)
  const style = {
    top: `${(spot.from / 60) * HOUR}px`,
    height: `${Math.max(18, ((spot.to - spot.from) / 60) * HOUR - 1)}px`,
    left: `calc(${((day + spot.lane / spot.lanes) / DAYS) * 100}% + 1px)`,
    width: `calc(${100 / spot.lanes / DAYS}% - 3px)`,
  }
  const words = (
    <>
      <Said text={one.title} of="stand-title" /> <span class="figures stand-hours">{hours(one, zone)}</span>
    </>
  )
  if (!one.block) {
    return (
      <div class={`stand is-event${one.event?.busy === false ? ' is-free' : ''}`} style={style} title={`${one.title}, ${hours(one, zone)}`}>
        {words}
      </div>
    )
  }
  const { state } = one.block
  const pull = (event: PointerEvent): void => {
    const began = pulled.current
    if (!began) return
    const next = moved(began.from, Math.round((event.clientX - began.x) / began.width), steps(event.clientY - began.y, HOUR), zone)
    if (next.start === began.to.start) return
    began.to = next
    setDraft(next)
  }
  const leave = (): void => {
    const began = pulled.current
    pulled.current = null
    if (began && began.to.start !== began.from.start) put(began.to)
  }
  return (
    <button
      type="button"
      data-block={one.id}
      class={`plain stand is-${state}${moving ? ' is-moving' : ''}${here ? ' is-here' : ''}`}
      style={style}
      aria-label={`${one.title} ${hours(one, zone)}, ${dayName(one.start, zone, 'long')}, ${STATES[state][1]}${moving ? ', not moved yet' : ''}`}
      aria-current={here ? 'true' : undefined}
      aria-keyshortcuts="ArrowUp ArrowDown ArrowLeft ArrowRight Enter Delete"
      onFocus={() => focus(one)}
      onClick={() => focus(one)}
      onKeyDown={(event) => keys(event, one)}
      onPointerDown={(event) => {
        if (event.button !== 0) return
        const layer = event.currentTarget.parentElement
        if (!layer) return
        event.currentTarget.setPointerCapture(event.pointerId)
        pulled.current = { x: event.clientX, y: event.clientY, width: layer.clientWidth / DAYS || 1, from: one, to: one }
      }}
      onPointerMove={pull}
      onPointerUp={leave}
      onPointerCancel={() => {
        pulled.current = null
        setDraft(null)
      }}
    >
      <span class="stand-word">
        <Glyph name={STATES[state][0]} />
      </span>
      {words}
    </button>
  )
}
