// A handoff with all that became of it: readable fields first, JSON second.

import type { ComponentChildren, JSX } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import type { Fields, Offer, Response } from '../api/types'
import { about } from '../state/agents'
import { type Refused, notes, told } from '../state/history'
import { type Leg, type RunState, standingWord, words } from '../state/run'
import { rule } from '../state/track'
import { clock as time, took, used } from '../state/words'
import { changes, clock, diffOf, go, lookUpDiff, place, run, runId, say, short } from '../app/store'
import { changeGlyph } from './Changes'
import { Diff } from './Diff'
import { Glyph, Said } from './parts'
import { legGlyph } from './Legs'

export function Drawer(): JSX.Element | null {
  const id = place.value.handoff
  const state = run.value
  const box = useRef<HTMLElement>(null)
  const open = id !== null && state !== null
  useEffect(() => {
    if (!open) return
    const before = document.activeElement
    box.current?.focus()
    return () => {
      if (before instanceof HTMLElement) before.focus()
    }
  }, [open])
  if (!id || !state) return null
  const leg = state.legs.get(id)
  const refused = told(state, 'handoff_refused').find((one) => one.id === id)
  return (
    <aside class="drawer" ref={box} tabIndex={-1} aria-label={`Handoff ${id}`}>
      <header class="drawer-head">
        <span class="mono quiet">{id}</span>
        <h2>{leg || refused ? <Path offer={(leg ?? refused)!.offer} /> : 'Not here'}</h2>
        <button
          type="button"
          class="plain tool"
          title="Copy a link to this handoff"
          aria-label="Copy link"
          onClick={() => {
            void navigator.clipboard.writeText(location.href).then(() => say('Link copied'))
          }}
        >
          <svg width="14" height="14" viewBox="0 0 14 14" aria-hidden="true">
            <path d="M6 8 12.5 1.500m0 0H8.500m4 0v4M11 8v4.500H1.500V3H6" fill="none" stroke="currentColor" stroke-width="1.3" />
          </svg>
        </button>
        <button type="button" class="plain tool" title="Close (Esc)" aria-label="Close" onClick={() => go({ handoff: null })}>
          <svg width="14" height="14" viewBox="0 0 14 14" aria-hidden="true">
            <path d="m3 3 8 8m0-8-8 8" stroke="currentColor" stroke-width="1.4" />
          </svg>
        </button>
      </header>
      <div class="drawer-body">{leg ? <Whole leg={leg} state={state} /> : refused ? <No one={refused} /> : <p class="quiet">This handoff is not part of the run at this moment.</p>}</div>
    </aside>
  )
}

function Path({ offer }: { offer: Offer }): JSX.Element {
  return (
    <>
      <Said text={offer.from} /> <span class="quiet">→</span> <Said text={offer.to} />
    </>
  )
}

function Whole({ leg, state }: { leg: Leg; state: RunState }): JSX.Element {
  const { standing, offer } = leg
  const end = standing.kind === 'closed' ? standing.at : clock.value
  const round = leg.trail.within ? leg.trail.laps?.[leg.trail.within]?.round : undefined
  const turn = standing.kind === 'out' ? standing.turn : null
  const opened = told(state, 'handoff_admitted').find((event) => event.id === leg.id)
  const proposed = told(state, 'change_proposed').filter((event) => event.handoff === leg.id)
  const { notes: list } = notes(state, leg.id)
  const next = standing.kind === 'closed' ? standing.succeededBy : []
  return (
    <>
      <p class={`drawer-state is-${legGlyph(leg).replace(' ', '-')}`}>
        <Glyph name={legGlyph(leg)} />
        <strong>{standingWord(standing)}</strong>
        <span class="quiet">
          {words(offer.reason)}
          {offer.kind === 'delegate' ? ', and waits for the answer' : ''}
        </span>
      </p>
      <Facts
        rows={[
          ['Opened', `${time(leg.admittedAt)}${opened ? ` (event ${opened.seq})` : ''}`],
          ['Took', took(end - leg.admittedAt)],
          ['Used', used(leg.usage) || 'nothing yet'],
          ['Tries', leg.attempt > 1 || leg.turn > 1 ? `attempt ${leg.attempt}, turn ${leg.turn}` : ''],
          ['Round', round && leg.trail.within ? `${round} of the loop ${leg.trail.within}` : ''],
          ['Receipt', turn ? `${turn.receipt}${turn.deliveries > 1 ? `, delivered ${turn.deliveries} times` : ''}` : ''],
          ['Priority', offer.priority === 'medium' ? '' : offer.priority],
          ['Caused by', leg.cause ? <Go id={leg.cause} /> : ''],
          ['Answers to', leg.returnsTo && leg.returnsTo !== leg.cause ? <Go id={leg.returnsTo} /> : ''],
          ['Went on as', next.length ? next.map((id) => <Go key={id} id={id} />) : ''],
          ['Waits for', standing.kind === 'blocked' && standing.on.length ? standing.on.map((id) => <Go key={id} id={id} />) : ''],
        ]}
      />
      <Section title="Request">
        <Request offer={offer} />
      </Section>
      {standing.kind === 'closed' && (
        <Section title="Response">
          <Answer response={standing.response} />
        </Section>
      )}
      {[...new Set(proposed.map((event) => event.change))].map((id) => (
        <Proposed key={id} id={id} />
      ))}
      {list.length > 0 && (
        <Section title="On the way">
          <ol class="entry-notes">
            {list.slice(-60).map((note) => (
              <li key={note.seq} class={`entry-note is-${note.kind}`}>
                <button type="button" class="plain mono quiet figures" title={`Show the run at event ${note.seq}`} onClick={() => go({ at: note.seq, run: short(runId.value ?? '') })}>
                  {time(note.at)}
                </button>
                <Said text={note.text} />
              </li>
            ))}
          </ol>
        </Section>
      )}
      <Json value={leg.handoff} />
    </>
  )
}

/** A set that was proposed in the handoff, as it is now. */
function Proposed({ id }: { id: string }): JSX.Element | null {
  const one = changes.value.find((it) => it.id === id)
  const diff = one ? diffOf(one) : null
  useEffect(() => {
    if (one) void lookUpDiff(one)
  }, [one?.id, one?.revision])
  if (!one) return null
  return (
    <Section title={`Change ${id}`}>
      <p class="drawer-state">
        <Glyph name={changeGlyph(one)} />
        <strong>{one.status}</strong>
        <Said text={one.reason.split('\n')[0] ?? ''} />
        <button type="button" class="link" onClick={() => go({ view: 'changes', change: id, handoff: null })}>
          Look at it
        </button>
      </p>
      {diff && <Diff change={one} diff={diff} split={false} quiet />}
    </Section>
  )
}

function No({ one }: { one: Refused }): JSX.Element {
  return (
    <>
      <p class="drawer-state is-refused">
        <Glyph name="refused" />
        <strong>refused</strong>
        <Said text={rule(one.refusal)} />
      </p>
      <Facts
        rows={[
          ['At', `${time(Date.parse(one.at))} (event ${one.seq})`],
          ['Rule', words(String(one.refusal['rule'] ?? 'unknown'))],
          ['Caused by', one.cause ? <Go id={one.cause} /> : ''],
        ]}
      />
      <Section title="Request">
        <Request offer={one.offer} />
      </Section>
      <Json value={{ ...one, changed: undefined }} />
    </>
  )
}

function Request({ offer }: { offer: Offer }): JSX.Element {
  const { question } = offer
  return (
    <>
      <p class="prose">
        <Said text={question?.details || about({ offer })} />
      </p>
      {offer.detail && offer.detail !== offer.summary && (
        <p class="prose quiet">
          <Said text={offer.detail} />
        </p>
      )}
      {offer.instructions && (
        <p class="prose">
          <Said text={offer.instructions} />
        </p>
      )}
      {question && question.options.length > 0 && (
        <ul class="prose">
          {question.options.map((option) => (
            <li key={option}>
              <Said text={option} />
              {option === question.default && <span class="quiet"> (by default)</span>}
            </li>
          ))}
        </ul>
      )}
      <Values title="Evidence and values" fields={offer.outputs} />
      {offer.missing?.length > 0 && (
        <Facts rows={offer.missing.map((one): [string, string] => [one.key, [one.description, one.expected_type, one.source].filter(Boolean).join(' · ')])} />
      )}
    </>
  )
}

function Answer({ response }: { response: Response }): JSX.Element {
  return (
    <>
      {(response.summary || response.failure) && (
        <p class="prose">
          <Said text={response.summary || response.failure || ''} />
        </p>
      )}
      <Facts
        rows={[
          ['By', response.by],
          ['Outcome', response.outcome],
          ['Took', took(response.took)],
          ['Cost', used(response.usage)],
          ['Unresolved', response.unresolved?.join(', ') ?? ''],
          ['Advice', response.recommendations?.join('; ') ?? ''],
        ]}
      />
      <Values title="Brought back" fields={response.outputs} />
    </>
  )
}

export function Facts({ rows }: { rows: [string, ComponentChildren][] }): JSX.Element {
  return (
    <dl class="facts">
      {rows
        .filter(([, value]) => value !== '')
        .map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{typeof value === 'string' ? <Said text={value} /> : value}</dd>
          </div>
        ))}
    </dl>
  )
}

function Values({ title, fields }: { title: string; fields: Fields }): JSX.Element | null {
  const rows = Object.entries(fields ?? {})
  if (rows.length === 0) return null
  return (
    <>
      <h4>{title}</h4>
      <dl class="facts">
        {rows.map(([key, value]) => (
          <div key={key}>
            <dt class="mono">
              <Said text={key} />
            </dt>
            <dd>
              <Value value={value} />
            </dd>
          </div>
        ))}
      </dl>
    </>
  )
}

function Value({ value }: { value: unknown }): JSX.Element {
  if (Array.isArray(value) && value.every((one) => typeof one !== 'object')) {
    return (
      <ul>
        {value.map((one, index) => (
          <li key={index}>
            <Said text={String(one)} />
          </li>
        ))}
      </ul>
    )
  }
  return typeof value === 'object' ? <pre>{JSON.stringify(value, null, 2)}</pre> : <Said text={String(value)} />
}

function Go({ id }: { id: string }): JSX.Element {
  return (
    <button type="button" class="link mono" onClick={() => go({ handoff: id })}>
      {id}
    </button>
  )
}

function Section({ title, children }: { title: string; children: ComponentChildren }): JSX.Element {
  return (
    <section>
      <h3>{title}</h3>
      {children}
    </section>
  )
}

function Json({ value }: { value: unknown }): JSX.Element {
  return (
    <details class="json">
      <summary>JSON</summary>
      <pre tabIndex={0}>{JSON.stringify(value, null, 2)}</pre>
    </details>
  )
}
