// A council: where its members stand, as the daemon says, and what they said, as events tell it.

import type { CouncilEvent, CouncilView, Stance, Verdict, Vote } from '../api/team'
import type { Forked, Recorded } from '../api/types'
import type { Leg, RunState } from './run'

/** Something that a member said in a turn of its own, or a person said to all of them. */
export interface Speech {
  seq: number
  at: number
  by: string
  /** Its own turn, from 1; a person has none. */
  round: number
  said: string
  vote: Vote | null
  /** The handoff in which it was said. */
  handoff: string | null
}

export interface Council {
  /** The handoff that it decides on. */
  handoff: string
  /** How it stands, or stood when the next one met. */
  view: CouncilView
  openedAt: number
  speeches: Speech[]
}

/** The councils of a run when the one that met last stands like this. */
export function convene(councils: readonly Council[], view: CouncilView, at: number): Council[] {
  const last = councils.at(-1)
  const handoff = view.handoff ?? ''
  if (last?.handoff === handoff) return [...councils.slice(0, -1), { ...last, view }]
  return [...councils, { handoff, view, openedAt: at, speeches: [] }]
}

/** The councils of a run after somebody spoke in the last one. */
export function speak(councils: readonly Council[], event: Extract<CouncilEvent, { event: 'council_heard' | 'council_reopened' }> & { seq: number }, at: number): Council[] {
  const now = councils.at(-1)
  if (now?.handoff !== event.handoff) return [...councils]
  const said = { seq: event.seq, at }
  const speech: Speech =
    event.event === 'council_heard'
      ? { ...said, by: event.member, round: event.round, said: event.said ?? '', vote: event.vote ?? null, handoff: event.spoke_in ?? null }
      : { ...said, by: 'human', round: 0, said: event.advice ?? '', vote: null, handoff: null }
  if (speech.by === 'human' && !speech.said) return [...councils]
  return [...councils.slice(0, -1), { ...now, speeches: [...now.speeches, speech] }]
}

/** The councils of a run that was forked in the middle of one: with what was said before. */
export function resumed(councils: readonly Council[], { seq, state }: Extract<Recorded, { event: 'run_forked' }>, at: number): Council[] {
  const speeches = ((state as unknown as Forked).council?.discussion ?? []).map(({ by, round, said, signal }): Speech => ({ seq, at, by, round, said, vote: signal ? { signal } : null, handoff: null }))
  return councils.map((one) => ({ ...one, speeches }))
}

/** A member as it stands now. */
export interface Stand {
  member: string
  weight: number
  /** Its last word; nothing before it has given one, or while nobody may know it. */
  stance: Stance | null
  reason: string
  turns: number
  /** The turn that it has now. */
  speaks: Leg | null
}

export function stands({ view }: Council, run: RunState): Stand[] {
  return view.members.map(({ member, weight, turns, signal, reason, speaks_in }) => {
    const leg = view.verdict ? undefined : run.legs.get(speaks_in ?? '')
    return { member, weight, turns, stance: signal ?? null, reason: reason ?? '', speaks: leg && leg.standing.kind !== 'closed' ? leg : null }
  })
}

/** What is held to be settled, with who said so first. */
export function decided({ view, speeches }: Council): { text: string; by: string }[] {
  const settles = ({ vote }: Speech, text: string): boolean => (vote?.signal === 'agree' || vote?.signal === 'building') && (vote.key_decisions ?? []).includes(text)
  return (view.decisions ?? []).map((text) => ({ text, by: speeches.find((one) => settles(one, text))?.by ?? '' }))
}

export const STANCES: readonly Stance[] = ['agree', 'building', 'abstain', 'disagree']

/** Where somebody stands, in a word. */
export function stanceWord(stance: Stance | null, turns: number, closed: boolean): string {
  if (stance) return { agree: 'agrees', building: 'is building', disagree: 'disagrees', abstain: 'abstains' }[stance]
  if (turns === 0) return 'yet to speak'
  return closed ? 'has voted' : 'did not say'
}

/** How a council came to its end, in a word. */
export function verdictWord(verdict: Verdict): string {
  return { consensus: 'Consensus', exhausted: 'No consensus', accepted: 'Accepted by a person' }[verdict.decision]
}

/** The council that is meant: the one that decides on this handoff, else the last one. */
export function councilOf(run: RunState, handoff: string | null): Council | null {
  return run.councils.find((one) => one.handoff === handoff) ?? run.councils.at(-1) ?? null
}
