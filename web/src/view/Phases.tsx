// The phases of a run: what each took against what is typical, what it found, and what it handed on.

import type { JSX } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import type { Part } from '../api/team'
import { type Found, MOST_SUMMARY, type Round, type Step, findings, steps, summaryTokens } from '../state/phases'
import type { RunState } from '../state/run'
import { percent, took, tokens } from '../state/words'
import { clock, go, place, run, runId, short } from '../app/store'
import { Empty, Glyph, type GlyphName, Said } from './parts'

const GLYPHS: Record<Step['standing'], GlyphName> = { 'to come': 'idle', now: 'working', passed: 'done', 'sent back': 'waiting', stopped: 'failed' }

export function Phases(): JSX.Element {
  const state = run.value
  const list = state ? steps(state) : []
  if (!state || list.length === 0) {
    return (
      <Empty title="No phases in this run" command="stafette init --template phases">
        Phases cut a task into parts that begin with a summary of at most {MOST_SUMMARY} tokens instead of everything that was read before: research, write, validate. List them under <code>[[phases]]</code> in stafette.toml, or begin with
      </Empty>
    )
  }
  return (
    <div class="numbers phases" tabIndex={0} role="region" aria-label="Phases">
      <ol class="phase-line" aria-label="Phases in order">
        {list.map((step) => (
          <li key={step.place} class={`is-${step.standing.replace(' ', '-')}`}>
            <button type="button" class="plain" onClick={() => go({ topic: step.phase, run: short(runId.value ?? '') })}>
              <Glyph name={GLYPHS[step.standing]} />
              <span class="strong">{step.phase}</span>
              <span class="quiet">{step.standing}</span>
            </button>
          </li>
        ))}
      </ol>
      {list.map((step) => (
        <Section key={step.place} step={step} state={state} />
      ))}
      <Saved state={state} />
    </div>
  )
}

function Section({ step, state }: { step: Step; state: RunState }): JSX.Element {
  const box = useRef<HTMLElement>(null)
  const wanted = place.value.topic === step.phase
  useEffect(() => {
    if (wanted) box.current?.scrollIntoView({ block: 'start' })
  }, [wanted])
  const last = step.rounds.at(-1)
  return (
    <section ref={box} class={`phase is-${step.standing.replace(' ', '-')}`} aria-label={`Phase ${step.phase}`}>
      <header class="phase-head">
        <Glyph name={GLYPHS[step.standing]} label={step.standing} />
        <h2>{step.phase}</h2>
        <span class="phase-word">{step.standing}</span>
        <span class="quiet">
          {step.agents.map((name, index) => (
            <span key={name}>
              {index > 0 && ', '}
              <button type="button" class="link" onClick={() => go({ view: 'terminal', agent: name, run: short(state.id) })}>
                <Said text={name} />
              </button>
            </span>
          ))}
        </span>
        {last && (
          <span class="quiet figures phase-numbers">
            {last.round > 1 && `round ${last.round} of ${step.most} · `}
            {last.beganAt !== null && took((last.endedAt ?? (state.stage === 'finished' ? state.updatedAt : clock.value)) - last.beganAt)}
          </span>
        )}
      </header>
      {last ? (
        <>
          <Taken step={step} />
          <Entered round={last} state={state} />
          {step.rounds
            .slice(0, -1)
            .reverse()
            .map((round) => (
              <details key={round.round} class="phase-before">
                <summary>
                  Round {round.round}: <Said text={round.why || 'not told'} />
                </summary>
                <Entered round={round} state={state} />
              </details>
            ))}
        </>
      ) : (
        <p class="quiet">It begins with the summary of the phase before, and nothing else of it.</p>
      )}
    </section>
  )
}

/** What a phase took, beside what is typical. */
function Taken({ step }: { step: Step }): JSX.Element {
  const { typical, tokens: counted } = step
  const most = Math.max(step.took, typical ?? 0, 1)
  const said = `${tokens(step.took)} tokens${typical ? `, typically ${tokens(typical)}` : ''}`
  return (
    <div class="phase-taken">
      <span class="phase-bar" role="meter" aria-label={said} aria-valuemin={0} aria-valuemax={most} aria-valuenow={step.took}>
        <span class={typical !== null && step.took > typical ? 'phase-fill is-over' : 'phase-fill'} style={{ width: `${(step.took / most) * 100}%` }} />
        {typical !== null && <span class="phase-typical" style={{ left: `${(typical / most) * 100}%` }} />}
      </span>
      <span class="figures">
        {tokens(step.took)} tokens{step.ended > 1 && ` in ${step.ended} rounds`} {typical !== null && <span class="quiet">typically {tokens(typical)}</span>}
        <span class="quiet">
          {' '}
          · given {tokens(counted.request)}, answered {tokens(counted.response)} as counted
        </span>
      </span>
    </div>
  )
}

function Entered({ round, state }: { round: Round; state: RunState }): JSX.Element {
  const count = summaryTokens(round)
  return (
    <>
      {round.decision === 'STOP' && (
        <p class="is-bad">
          <Said text={round.why} />
        </p>
      )}
      {round.parts.map((part) => (
        <Brought key={part.agent} part={part} several={round.parts.length > 1} state={state} />
      ))}
      {round.summary && (
        <figure class="phase-summary">
          <figcaption class="quiet figures">
            Handed on{count !== null && `: ${count} of ${MOST_SUMMARY} tokens`}
            {round.parts.length > 1 && ` · rule: ${round.rule}`}
            {round.parts.filter((part) => state.legs.has(part.handoff)).map((part) => (
              <button type="button" key={part.handoff} class="link mono" title={`What ${part.agent} was asked and answered`} onClick={() => go({ handoff: part.handoff })}>
                {part.handoff}
              </button>
            ))}
          </figcaption>
          <p class="prose">
            <Said text={round.summary} />
          </p>
        </figure>
      )}
    </>
  )
}

function Brought({ part, several, state }: { part: Part; several: boolean; state: RunState }): JSX.Element {
  const leg = state.legs.get(part.handoff)
  const standing = leg?.standing
  const found = standing?.kind === 'closed' ? findings(standing.response.outputs) : []
  const over = part.measured?.summary ?? 0
  const note = standing?.kind === 'out' ? standing.turn.note : ''
  return (
    <div class="phase-part">
      {(several || !part.brought) && (
        <p>
          <Said text={part.agent} of="strong" />{' '}
          <span class={part.brought && !part.brought.passed ? 'is-bad' : 'quiet'}>{part.brought ? (part.brought.passed ? 'passed' : 'did not pass') : standing?.kind === 'asked' || standing?.kind === 'blocked' ? 'waits' : 'is at it'}</span>
          {note && (
            <>
              {': '}
              <Said text={note} of="quiet" />
            </>
          )}
        </p>
      )}
      {over > MOST_SUMMARY && !part.brought?.passed && (
        <p class="is-bad figures">
          Its summary had {over} tokens, {MOST_SUMMARY} are allowed: it was given back.
        </p>
      )}
      {found.map((group) => (
        <Group key={group.title} group={group} />
      ))}
    </div>
  )
}

function Group({ group }: { group: Found }): JSX.Element {
  return (
    <div class="found">
      <h3>{group.title}</h3>
      <ul>
        {group.list.map((one, index) => (
          <li key={index} class={one.tone === 'bad' ? 'is-bad' : ''}>
            {group.title === 'Checks' && <Glyph name={one.tone === 'bad' ? 'failed' : 'done'} />}
            {one.of && <Said text={one.of} of="mono" />}
            <Said text={one.text} />
            {one.word && <span class={one.tone === 'bad' ? '' : 'quiet'}>{one.word}</span>}
          </li>
        ))}
      </ul>
    </div>
  )
}

function Saved({ state }: { state: RunState }): JSX.Element | null {
  const { raw, handed_on: handedOn } = state.phases?.saving ?? { raw: 0, handed_on: 0 }
  if (raw === 0) return null
  const part = Math.max(0, 1 - handedOn / raw)
  return (
    <section class="phase-saving" aria-label="Saving">
      <h2>{state.stage === 'finished' ? 'Saved' : 'Saved so far'}</h2>
      <p class="figures">
        <span class="phase-percent">{percent(part)}</span> Summaries handed on {tokens(handedOn)} tokens instead of {tokens(raw)}.
      </p>
    </section>
  )
}
