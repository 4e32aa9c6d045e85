// A council: where its members stand, as the daemon says, and what they said, as events tell it.

import type { CouncilView, Stance, Verdict, Vote } from '../api/team'
import type { Forked } from '../api/types'
import { told } from './history'
import type { Leg, RunState } from './run'

/** Something that a member said in a turn of its own, or a person said to all of them. */
export interface Speech {
  at: number
  by: string
  /** Its own turn, from 1; a person has none. */
  round: number
  said: string
  vote: Vote | null
  /** The handoff in which it was said. */
  handoff: string | null
}

/** What was said in a council. Of what was said before a run was forked, its first event has the end. */
export function speeches(run: RunState, { handoff }: CouncilView): Speech[] {
  const forked = told(run, 'run_forked').map((event) => (event.state as unknown as Forked).council)
  const before = forked.filter((council) => council?.handoff === handoff).flatMap((council) => council?.discussion ?? [])
  const spoke = [...told(run, 'council_heard'), ...told(run, 'council_reopened')].filter((event) => event.handoff === handoff).sort((a, b) => a.seq - b.seq)
  return [
    ...before.map(({ by, round, said, signal }): Speech => ({ at: run.createdAt, by, round, said, vote: signal ? { signal } : null, handoff: null })),
    ...spoke.flatMap((event): Speech[] => {
      const at = Date.parse(event.at)
      if (event.event === 'council_heard') return [{ at, by: event.member, round: event.round, said: event.said ?? '', vote: event.vote ?? null, handoff: event.spoke_in ?? null }]
      return event.advice ? [{ at, by: 'human', round: 0, said: event.advice, vote: null, handoff: null }] : []
    }),
  ]
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

export function stands(view: CouncilView, run: RunState): Stand[] {
  return view.members.map(({ member, weight, turns, signal, reason, speaks_in }) => {
    const leg = view.verdict ? undefined : run.legs.get(speaks_in ?? '')
    return { member, weight, turns, stance: signal ?? null, reason: reason ?? '', speaks: leg && leg.standing.kind !== 'closed' ? leg : null }
  })
}

/** What is held to be settled, with who said so first. */
export function decided({ decisions, decided_by: by }: CouncilView): { text: string; by: string }[] {
  return (decisions ?? []).map((text) => ({ text, by: by?.[text] ?? '' }))
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
export function councilOf({ councils }: RunState, handoff: string | null): CouncilView | null {
  return councils.get(handoff ?? '') ?? [...councils.values()].at(-1) ?? null
}
