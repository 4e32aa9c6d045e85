// The run at a glance: what it is, where it stands, what it costs, what went wrong.

import type { JSX } from 'preact'
import { sentence } from '../state/agents'
import { alertCode, told } from '../state/history'
import { clock, cost, money, percent, span, unknown } from '../state/words'
import { at, clock as moment, events, forkHere, forkable, go, link, now, overlay, place, run } from '../app/store'
import { Glyph, Said, runGlyph } from './parts'

export function Header(): JSX.Element {
  const state = run.value
  if (!state) {
    return (
      <header class="header">
        <h1 class="header-title">Stafette</h1>
        <Connection />
      </header>
    )
  }
  const { status: word, waitingOn } = state
  const yours = waitingOn === 'human' || waitingOn === 'budget'
  const over = state.stage === 'finished'
  const elapsed = (over ? state.updatedAt : moment.value) - state.createdAt
  return (
    <header class="header">
      <h1 class="header-title" title={state.request}>
        <Said text={state.request} />
      </h1>
      <p class={`header-state is-${yours ? 'yours' : word}`} aria-live="polite">
        <Glyph name={yours ? 'needs you' : runGlyph(word)} label={word} />
        {yours && at.value === null ? (
          <button type="button" class="plain header-answer" title="Answer (i)" onClick={() => go({ view: 'inbox', question: null, handoff: null })}>
            <Said text={sentence(state)} />
          </button>
        ) : (
          <Said text={sentence(state)} />
        )}
        <span class="quiet figures">{span(elapsed)}</span>
      </p>
      <Connection />
      <Alerts />
      <Meter />
      <button type="button" class="plain header-menu" title="Commands (Ctrl K)" aria-label="Commands" onClick={() => (overlay.value = 'palette')}>
        <svg width="16" height="16" viewBox="0 0 16 16" aria-hidden="true">
          <path d="M2 4h12M2 8h12M2 12h12" stroke="currentColor" stroke-width="1.4" />
        </svg>
      </button>
    </header>
  )
}

/** What is spent and set aside, against what may be spent. */
function Meter(): JSX.Element | null {
  const state = run.value
  if (!state) return null
  const { limit, spent, reserved } = state.purse
  const most = limit.money || 1
  const used = Math.min(1, spent.money / most)
  const held = Math.min(1 - used, reserved.money / most)
  const unseen = unknown(spent)
  const said = `${cost(spent)} of ${money(limit.money)} spent, ${money(reserved.money)} set aside${unseen && `, ${unseen}`}`
  return (
    <button type="button" class="plain meter" title={`${said} (${percent(used)})`} onClick={() => go({ view: 'numbers', agent: null })}>
      <span class="figures">
        {cost(spent)} <span class="quiet">of {money(limit.money)}</span>
      </span>
      <span class="meter-bar" role="meter" aria-label={said} aria-valuemin={0} aria-valuemax={limit.money} aria-valuenow={spent.money}>
        <span class={used > 0.9 ? 'meter-spent is-high' : 'meter-spent'} style={{ width: `${used * 100}%` }} />
        <span class="meter-reserved" style={{ width: `${held * 100}%` }} />
      </span>
    </button>
  )
}

function Alerts(): JSX.Element | null {
  const state = run.value
  const alerts = state ? told(state, 'alert_raised') : []
  const last = alerts.at(-1)
  if (!last) return null
  return (
    <button type="button" class="plain alerts" title={`${alertCode(last)}: ${last.message}`} onClick={() => go({ view: 'numbers', agent: null })}>
      <Glyph name="alert" label="Alerts" />
      <span class="figures">{alerts.length}</span> <Said text={alertCode(last)} of="mono" />
    </button>
  )
}

function Connection(): JSX.Element | null {
  const { state, since, retryAt } = link.value
  if (state === 'live' || state === 'connecting') return null
  const left = Math.max(0, Math.ceil((retryAt - now.value) / 1000))
  return (
    <p class="connection" role="status">
      <Glyph name="crashed" />
      {state === 'refused' ? (
        <span>
          The daemon wants to know who you are: <code>stafette open</code>
        </span>
      ) : (
        <span>
          No daemon since {clock(since)}
          <span class="quiet figures"> · next try {left > 0 ? `in ${left}s` : 'now'} · </span>
          <code>stafette open</code>
        </span>
      )}
    </p>
  )
}

/** Says that this is the past, and leads back to the present. */
export function Past(): JSX.Element | null {
  const state = run.value
  if (at.value === null || !state) return null
  const pinned = place.value.at !== null
  return (
    <div class="past" role="status">
      <span class="figures">
        {clock(state.updatedAt, true)} · event {at.value} of {events.value.length}
      </span>
      <span class="quiet">{pinned ? 'as it was' : 'let go to be live again'}</span>
      {pinned && forkable.value && (
        <button type="button" class="small" title="Begin a run that goes its own way from this moment" onClick={() => void forkHere()}>
          Fork from here
        </button>
      )}
      {pinned && (
        <button type="button" class="small" onClick={() => go({ at: null })}>
          Live
        </button>
      )}
    </div>
  )
}
