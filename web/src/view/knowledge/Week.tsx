// The calendar of a week. Proposed blocks are dragged or moved by the arrows, and accepted.

import type { JSX } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { type Block, type Health, HEALTH, type Occurrence, type Week as View, accept, drop, move, weekPath } from '../../api/knowledge'
import { type Plan, plans } from '../../state/returns'
import { DAYS, addDays, clockOf, dayKey, daysOf, inTheWay, monday, moved, onDay } from '../../state/week'
import { change, useAnswer, useKeys } from '../../app/knowledge'
import { go, items, now, place, respond, say, short, world } from '../../app/store'
import { Empty, Glyph, Key, Said, usePhone } from '../parts'
import { Grid } from './Grid'
import { Lack } from './Lack'
import { STATES, type Thing, dayName, hours, standing, things } from './things'

/** Where the browser is. */
const OWN = Intl.DateTimeFormat().resolvedOptions().timeZone

const find = (id: string): HTMLElement | null => document.querySelector(`[data-block="${CSS.escape(id)}"]`)

/** The week is the user's own, by the zone that the project says, wherever the browser is. */
export function Week(): JSX.Element {
  const { data, problem } = useAnswer<Health>(HEALTH)
  return data ? <WeekIn zone={data.timezone} /> : <Lack problem={problem} />
}

function WeekIn({ zone }: { zone: string }): JSX.Element {
  const phone = usePhone()
  const asked = plans(world.value.runs, items.value)
  const { about, spot } = place.value
  const week = monday(about ?? (asked[0]?.starts[0] !== undefined ? dayKey(asked[0].starts[0], zone) : null), now.value, zone)
  const days = daysOf(week, zone)
  const end = addDays(week, DAYS, zone)
  const { data, problem } = useAnswer<View>(weekPath(week, end))
  /** Where a block would be, while it is not said yet. */
  const [draft, setDraft] = useState<Thing | null>(null)
  const [busy, setBusy] = useState(false)
  const turn = (by: number): void => go({ about: dayKey(addDays(week, by * DAYS, zone), zone), spot: null }, 'replace')
  const all = data ? things(data) : []
  // What is on its way into another week is not known there yet.
  const known = draft && !all.some((one) => one.id === draft.id) ? [...all, draft] : all
  const shown = known.map((one) => (draft?.id === one.id ? { ...one, start: draft.start, end: draft.end } : one))
  const here = shown.find((one) => one.id === spot) ?? null
  const waiting = shown.filter((one) => one.block?.state === 'proposed')

  const focus = (one: Thing): void => {
    if (place.peek().spot !== one.id) go({ spot: one.id, about: dayKey(week, zone) }, 'replace')
  }
  const put = async (one: Thing): Promise<boolean> => {
    const other = inTheWay(one, all.filter((it) => it.event?.busy !== false))
    if (other) {
      say(`“${other.title}” is there from ${hours(other, zone)}`, true)
      setDraft(null)
      return false
    }
    setBusy(true)
    const done = await change(() => move(one.id, one.start, one.end))
    setBusy(false)
    setDraft(null)
    return done !== null
  }
  const yes = async (one: Thing): Promise<void> => {
    if (busy || !one.block) return
    if (draft?.id === one.id && !(await put(one))) return
    if (one.block.state !== 'proposed') return
    setBusy(true)
    const done = await change(() => accept(one.id))
    setBusy(false)
    if (done) say(done.trouble ? `Accepted, but not in the calendar yet: ${done.trouble}` : done.state === 'written' ? `“${done.title}” is in the calendar` : `“${done.title}” is accepted`)
  }
  const no = async (one: Thing): Promise<void> => {
    if (busy || one.block?.state !== 'proposed') return
    setBusy(true)
    setDraft(null)
    await change(() => drop(one.id), `“${one.title}” is dropped`)
    setBusy(false)
  }
  const shift = (one: Thing, byDays: number, minutes: number): void => {
    if (!one.block || !standing(one.block)) return
    const next = moved(one, byDays, minutes, zone)
    setDraft(next)
    if (next.start < week || next.start >= end) go({ about: dayKey(next.start, zone), spot: one.id }, 'replace')
  }
  const keys = (event: KeyboardEvent, one: Thing): void => {
    const far = event.shiftKey ? 60 : 15
    const acts: Record<string, () => void> = {
      ArrowUp: () => shift(one, 0, -far),
      ArrowDown: () => shift(one, 0, far),
      ArrowLeft: () => shift(one, -1, 0),
      ArrowRight: () => shift(one, 1, 0),
      Enter: () => void yes(one),
      Delete: () => void no(one),
      x: () => void no(one),
      Escape: () => setDraft(null),
    }
    const act = acts[event.key]
    if (!act || !one.block || event.ctrlKey || event.metaKey || event.altKey) return
    event.preventDefault()
    event.stopPropagation()
    act()
  }
  const step = (by: number): void => {
    const list = shown.filter((one) => one.block).sort((a, b) => a.start - b.start)
    const next = list[Math.min(list.length - 1, Math.max(0, list.findIndex((one) => one.id === spot) + by))]
    if (!next) return
    focus(next)
    find(next.id)?.focus()
  }
  // The week stays when what it was opened for is answered.
  useEffect(() => {
    if (!about) go({ about: dayKey(week, zone) }, 'replace')
  }, [])
  // Another week is drawn anew: the block that is on its way keeps the focus.
  useEffect(() => {
    if (draft) find(draft.id)?.focus()
  }, [week, data !== null])
  useKeys((key) => {
    if (key === 'j') return () => step(1)
    if (key === 'k') return () => step(-1)
    if (key === ',') return () => turn(-1)
    if (key === '.') return () => turn(1)
    if (key === 'y' && here) return () => void yes(here)
    if (key === 'x' && here) return () => void no(here)
    return null
  })
  if (problem?.code === 'no_calendar') {
    return (
      <Empty title="There is no calendar" command={'[knowledge.calendar]\nfolder = "calendar"'}>
        A folder of iCalendar files, or a server by CalDAV: tasks get free time in it once you say yes. It is named in stafette.toml:
      </Empty>
    )
  }
  if (!data) return <Lack problem={problem} />
  const wholeDays = data.events.filter((event) => event.all_day)
  const panel = here?.block ? (
    <Panel zone={zone} one={here} block={here.block} draft={draft?.id === here.id} busy={busy} yes={() => void yes(here)} no={() => void no(here)} shift={(byDays, minutes) => shift(here, byDays, minutes)} put={() => void put(here)} back={() => setDraft(null)} />
  ) : null
  return (
    <div class="week">
      <header class="part-head">
        <h1>
          {dayName(week, zone)} – {dayName(days[DAYS - 1]!, zone)}
        </h1>
        <span class="week-turn" role="group" aria-label="Weeks">
          <button type="button" class="small" aria-label="The week before" title="The week before (,)" onClick={() => turn(-1)}>
            ‹
          </button>
          <button type="button" class="small" onClick={() => go({ about: dayKey(now.value, zone), spot: null })}>
            Today
          </button>
          <button type="button" class="small" aria-label="The week after" title="The week after (.)" onClick={() => turn(1)}>
            ›
          </button>
        </span>
        {zone !== OWN && <span class="quiet">the clock of {zone}</span>}
        <span class="quiet">{waiting.length ? `${waiting.length === 1 ? 'one block waits' : `${waiting.length} blocks wait`} for you` : 'nothing waits for you here'}</span>
      </header>
      {asked.map((plan) => (
        <Asked key={plan.item.id} zone={zone} plan={plan} />
      ))}
      {data.doubts.length > 0 && (
        <details class="doubts">
          <summary>{data.doubts.length} things in the calendar were not understood</summary>
          <ul>
            {data.doubts.slice(0, 20).map((doubt) => (
              <li key={doubt}>
                <Said text={doubt} />
              </li>
            ))}
          </ul>
        </details>
      )}
      {phone ? (
        <Agenda zone={zone} days={days} list={shown} whole={wholeDays} here={here} focus={focus} panel={panel} />
      ) : (
        <div class="week-body">
          <Grid zone={zone} days={days} list={shown} whole={wholeDays} draft={draft} here={here} focus={focus} keys={keys} setDraft={setDraft} put={(one) => void put(one)} />
          {panel ?? (
            <aside class="block-panel quiet">
              {shown.length === 0 && wholeDays.length === 0 ? (
                <>
                  <p>Nothing takes place in this week.</p>
                  <p>When the execute stage plans tasks, their time is proposed here before it is in your calendar.</p>
                </>
              ) : (
                <p>
                  <Key>j</Key> and <Key>k</Key> go from block to block, the arrows move one, <Key>Enter</Key> accepts it. Or drag it.
                </p>
              )}
            </aside>
          )}
        </div>
      )}
    </div>
  )
}

/** A plan as a whole: one yes for all that is left of it. */
function Asked({ zone, plan }: { zone: string; plan: Plan }): JSX.Element {
  const { item, starts } = plan
  const first = starts[0]
  return (
    <p class="week-asked">
      <Glyph name="needs you" />
      <Said text={item.title} of="strong" />
      <Said text={item.request} of="quiet" />
      {first !== undefined && (
        <button type="button" class="link" onClick={() => go({ about: dayKey(first, zone), spot: null })}>
          from {dayName(first, zone)}, {clockOf(first, zone)}
        </button>
      )}
      <button type="button" class="act is-yours" onClick={() => void respond(item, 'approve')}>
        Accept all that is left
      </button>
      <button type="button" class="act" onClick={() => void respond(item, 'drop')}>
        Drop the plan
      </button>
    </p>
  )
}

interface Panels {
  zone: string
  one: Thing
  block: Block
  draft: boolean
  busy: boolean
  yes: () => void
  no: () => void
  put: () => void
  back: () => void
  shift: (days: number, minutes: number) => void
}

function Panel({ zone, one, block, draft, busy, yes, no, put, back, shift }: Panels): JSX.Element {
  const [glyph, word] = STATES[block.state]
  const proposed = block.state === 'proposed'
  const slip = Math.round((block.end - block.planned_end) / 60_000)
  return (
    <aside class="block-panel" aria-label="The block">
      <h2>
        <Said text={one.title} />
      </h2>
      <p class="block-state">
        <Glyph name={glyph} /> {word}
      </p>
      <p class="figures" aria-live="polite">
        {dayName(one.start, zone, 'long')}, {hours(one, zone)}
        {draft && <span class="is-yours-word"> not moved yet</span>}
      </p>
      {block.kind && (
        <p class="quiet">
          <Said text={block.kind} />
        </p>
      )}
      {slip > 0 && !draft && <p class="quiet figures">{slip} minutes later than it was planned</p>}
      {block.trouble && (
        <p class="is-bad">
          <Said text={block.trouble} />
        </p>
      )}
      <div class="block-moves" role="group" aria-label="Move it">
        <button type="button" class="small" disabled={busy} onClick={() => shift(-1, 0)}>
          a day earlier
        </button>
        <button type="button" class="small" disabled={busy} onClick={() => shift(1, 0)}>
          a day later
        </button>
        <button type="button" class="small" disabled={busy} onClick={() => shift(0, -15)}>
          15 min earlier
        </button>
        <button type="button" class="small" disabled={busy} onClick={() => shift(0, 15)}>
          15 min later
        </button>
      </div>
      <div class="block-acts">
        {proposed && (
          <button type="button" class="act is-yours" disabled={busy} onClick={yes}>
            {draft ? 'Move and accept' : 'Accept'} <Key>Enter</Key>
          </button>
        )}
        {draft && (
          <button type="button" class="act" disabled={busy} onClick={put}>
            Only move
          </button>
        )}
        {draft && (
          <button type="button" class="act" disabled={busy} onClick={back}>
            Leave it <Key>Esc</Key>
          </button>
        )}
        {proposed && !draft && (
          <button type="button" class="act" disabled={busy} onClick={no}>
            Drop <Key>x</Key>
          </button>
        )}
      </div>
      <p class="quiet">
        <button type="button" class="link" onClick={() => go({ part: 'graph', about: block.task, spot: null })}>
          its task
        </button>{' '}
        <button type="button" class="link" onClick={() => go({ view: 'terminal', agent: null, run: short(block.run), handoff: block.handoff })}>
          where it was proposed
        </button>
      </p>
    </aside>
  )
}

/** On a phone: day by day, one below the other. */
function Agenda({ zone, days, list, whole, here, focus, panel }: { zone: string; days: number[]; list: Thing[]; whole: Occurrence[]; here: Thing | null; focus: (one: Thing) => void; panel: JSX.Element | null }): JSX.Element {
  const busy = days.filter((day) => onDay(list, day, zone).length > 0 || onDay(whole.map((event) => ({ ...event, id: event.uid })), day, zone).length > 0)
  const box = useRef<HTMLDivElement>(null)
  useEffect(() => box.current?.querySelector('.is-here')?.scrollIntoView({ block: 'center' }), [])
  return (
    <div class="agenda" ref={box}>
      {busy.length === 0 && <p class="quiet">Nothing takes place in this week.</p>}
      {busy.map((day) => (
        <section key={day}>
          <h2>{dayName(day, zone, 'long')}</h2>
          {whole
            .filter((event) => event.start < addDays(day, 1, zone) && event.end > day)
            .map((event) => (
              <p key={event.uid} class="quiet agenda-line">
                <span>all day</span> <Said text={event.title} />
              </p>
            ))}
          {onDay(list, day, zone).map(({ one }) => (
            <div key={one.id}>
              {one.block ? (
                <button type="button" class={`plain agenda-line is-${one.block.state}${here?.id === one.id ? ' is-here' : ''}`} aria-expanded={here?.id === one.id} onClick={() => focus(one)}>
                  <span class="figures">{hours(one, zone)}</span> <Said text={one.title} />
                  <Glyph name={STATES[one.block.state][0]} label={STATES[one.block.state][1]} />
                </button>
              ) : (
                <p class="quiet agenda-line">
                  <span class="figures">{hours(one, zone)}</span> <Said text={one.title} />
                </p>
              )}
              {here?.id === one.id && panel}
            </div>
          ))}
        </section>
      ))}
    </div>
  )
}
