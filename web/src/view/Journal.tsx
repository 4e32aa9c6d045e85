// What an agent without a terminal did and said, leg by leg, newest last.

import type { JSX } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'
import { about } from '../state/agents'
import { type Note, notes } from '../state/history'
import { type Leg, type RunState, standingWord } from '../state/run'
import { clock as time, took, used } from '../state/words'
import { agent, clock, go, run } from '../app/store'
import { Empty, Glyph, Said } from './parts'
import { legGlyph } from './Legs'

const WORDS: Record<Note['kind'], string> = {
  said: '',
  result: 'result',
  handed: '→',
  failed: 'failed',
  retry: 'retry',
  parked: 'parked',
  late: 'late',
  recovery: 'recovery',
  answer: 'answer',
  permit: 'permission',
  missing: 'missing',
  redelivered: 'again',
  change: 'change',
}

export function Journal({ name }: { name: string }): JSX.Element {
  const state = run.value
  const box = useRef<HTMLDivElement>(null)
  const sticks = useRef(true)
  const seq = state?.seq
  useLayoutEffect(() => {
    sticks.current = true
  }, [name])
  useLayoutEffect(() => {
    if (sticks.current && box.current) box.current.scrollTop = box.current.scrollHeight
  }, [seq, name])
  if (!state) return <Empty title="No run" />
  const legs = [...state.legs.values()].filter((leg) => leg.offer.to === name)
  const role = state.workflow.agents[name]?.role
  return (
    <div
      class="journal"
      ref={box}
      tabIndex={0}
      aria-label={`Journal of ${agent.value}`}
      role="log"
      onScroll={() => {
        const element = box.current
        if (element) sticks.current = element.scrollTop + element.clientHeight >= element.scrollHeight - 24
      }}
    >
      {role && (
        <p class="journal-role quiet">
          <Said text={role} />
        </p>
      )}
      {legs.length === 0 && <Empty title="Nothing to do yet">{name} has had no work in this run so far. When it gets a handoff, what it says and brings back is told here.</Empty>}
      {legs.map((leg) => (
        <Entry key={leg.id} leg={leg} state={state} />
      ))}
    </div>
  )
}

function Entry({ leg, state }: { leg: Leg; state: RunState }): JSX.Element {
  const { standing } = leg
  const end = standing.kind === 'closed' ? standing.at : clock.value
  const last = standing.kind === 'out' ? standing.turn.note : ''
  const { notes: list, dropped } = notes(state, leg.id)
  return (
    <article class="entry">
      <header class="entry-head">
        <Glyph name={legGlyph(leg)} label={standingWord(standing)} />
        <button type="button" class="plain entry-title" onClick={() => go({ handoff: leg.id })}>
          <span class="mono quiet">{leg.id}</span> <Said text={about(leg)} of="strong" />
        </button>
        <span class="quiet">
          from <Said text={leg.offer.from} />
        </span>
        <span class="entry-numbers quiet figures">
          {took(end - leg.admittedAt)}
          {used(leg.usage) && ` · ${used(leg.usage)}`}
        </span>
      </header>
      {dropped > 0 && <p class="quiet entry-note">{dropped} earlier notes are in the events</p>}
      <ol class="entry-notes">
        {list.map((note) => (
          <li key={note.seq} class={`entry-note is-${note.kind}`}>
            <time class="quiet mono figures">{time(note.at)}</time>
            {WORDS[note.kind] && <span class="entry-kind">{WORDS[note.kind]}</span>}
            <Said text={note.text} of={note.kind === 'said' && note.text === last ? 'is-now' : ''} />
          </li>
        ))}
      </ol>
    </article>
  )
}
