// The track on a phone: upright, newest first.

import type { JSX } from 'preact'
import { about, number } from '../state/agents'
import { type Refused, told } from '../state/history'
import { type Leg, standingWord } from '../state/run'
import { rule } from '../state/track'
import { cost, took } from '../state/words'
import { clock, go, run } from '../app/store'
import { Empty, Glyph, type GlyphName, Said } from './parts'

export function legGlyph(leg: Leg): GlyphName {
  const { standing } = leg
  switch (standing.kind) {
    case 'out':
      return 'working'
    case 'asked':
      return 'needs you'
    case 'closed':
      return standing.way !== 'answered' ? 'cancelled' : standing.response.outcome === 'failed' ? 'failed' : 'done'
    default:
      return 'waiting'
  }
}

export function Legs(): JSX.Element {
  const state = run.value
  if (!state) return <Empty title="No run yet" command={'stafette run "Add JWT login"'} />
  const rows: (Leg | Refused)[] = [...state.legs.values(), ...told(state, 'handoff_refused')]
  rows.sort((a, b) => number(b.id) - number(a.id))
  return (
    <ol class="legs" aria-label="Legs, newest first">
      {rows.map((row) => {
        const refused = 'refusal' in row
        const end = refused ? 0 : row.standing.kind === 'closed' ? row.standing.at : clock.value
        const word = refused ? 'refused' : standingWord(row.standing)
        const glyph = refused ? 'refused' : legGlyph(row)
        return (
          <li key={row.id}>
            <button type="button" class={`plain legs-row is-${glyph.replace(' ', '-')}`} onClick={() => go({ handoff: row.id })}>
              <Glyph name={glyph} label={word} />
              <span class="legs-path">
                <Said text={row.offer.from} /> → <Said text={row.offer.to} of="strong" />
              </span>
              <span class="legs-word">{word}</span>
              <Said text={refused ? rule(row.refusal) : row.offer.question?.details || about(row)} of="legs-about" />
              <span class="quiet figures legs-numbers">
                {refused ? '' : took(end - row.admittedAt)}
                {!refused && (row.usage.money > 0 || row.usage.unknown?.money) ? ` · ${cost(row.usage)}` : ''}
              </span>
            </button>
          </li>
        )
      })}
    </ol>
  )
}
