// What a council has said and where its members stand, as its events tell it.

import type { CouncilEvent, CouncilRules, CouncilView, Seat, Stance, Verdict, Vote } from '../api/team'
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

export interface Decided {
  text: string
  by: string
}

export interface Council {
  /** The handoff that it decides on. */
  handoff: string
  topic: string
  seats: Seat[]
  mode: 'in_turn' | 'parallel'
  blind: boolean
  quorum: string
  /** How often each may speak, and how often that was before a person allowed more. */
  turns: number
  turnsAtFirst: number
  openedAt: number
  speeches: Speech[]
  decisions: Decided[]
  nextTopic: string | null
  verdict: Verdict | null
}

/** The councils of a run after an event; one that is over stays as it was. */
export function convene(councils: readonly Council[], event: CouncilEvent & { seq: number }, at: number): Council[] {
  if (event.event === 'council_opened') {
    const { handoff, topic, members, mode, blind, quorum, turns } = event
    const decisions = councils.at(-1)?.decisions ?? []
    return [...councils, { handoff, topic, seats: members, mode, blind, quorum, turns, turnsAtFirst: turns, openedAt: at, speeches: [], decisions, nextTopic: null, verdict: null }]
  }
  const now = councils.at(-1)
  if (!now || now.handoff !== event.handoff) return [...councils]
  return [...councils.slice(0, -1), { ...now, ...heard(now, event, at) }]
}

function heard(now: Council, event: Exclude<CouncilEvent, { event: 'council_opened' }> & { seq: number }, at: number): Partial<Council> {
  switch (event.event) {
    case 'council_heard': {
      const vote = event.vote ?? null
      const speech: Speech = { seq: event.seq, at, by: event.member, round: event.round, said: event.said ?? '', vote, handoff: event.spoke_in ?? null }
      const speeches = [...now.speeches, speech]
      // Who is against it, or wants no part in it, settles nothing.
      if (!vote || (vote.signal !== 'agree' && vote.signal !== 'building')) return { speeches }
      const fresh = (vote.key_decisions ?? []).filter((text) => now.decisions.every((known) => known.text !== text))
      const decisions = [...now.decisions, ...fresh.map((text) => ({ text, by: event.member }))]
      return { speeches, decisions, nextTopic: vote.next_topic ?? now.nextTopic }
    }
    case 'council_reopened': {
      const turns = now.turns + now.turnsAtFirst
      if (!event.advice) return { turns }
      return { turns, speeches: [...now.speeches, { seq: event.seq, at, by: 'human', round: 0, said: event.advice, vote: null, handoff: null }] }
    }
    case 'council_concluded':
      return { verdict: event.verdict }
  }
}

/** A council as the daemon tells it, in a run that was forked in the middle of one. */
export function resumed(old: CouncilView, rules: CouncilRules, seq: number, at: number): Council {
  const speeches = old.discussion.map(({ by, round, said, signal }): Speech => ({ seq, at, by, round, said, vote: signal ? { signal } : null, handoff: null }))
  // Not all that was said is kept, but that they spoke, and where they stand.
  for (const [by, { turns, signal, reason }] of Object.entries(old.positions)) {
    const last = speeches.findLast((one) => one.by === by && one.vote)
    const vote = signal ? { signal, reason: reason ?? '' } : null
    if (last) last.vote = vote
    else if (turns > 0) speeches.unshift({ seq, at, by, round: turns, said: '', vote, handoff: null })
  }
  return {
    handoff: old.handoff,
    topic: old.topic,
    seats: rules.members.map((member) => ({ member, weight: rules.weights?.[member] ?? 1 })),
    mode: rules.mode,
    blind: rules.blind_first_vote,
    quorum: rules.quorum,
    turns: old.limit,
    turnsAtFirst: rules.turns_per_agent,
    openedAt: at,
    speeches,
    decisions: old.decisions.map((text) => ({ text, by: '' })),
    nextTopic: old.next_topic ?? null,
    verdict: old.verdict ?? null,
  }
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

/** Whether the first votes are still closed: they are opened when everyone has given theirs. */
export function sealed(council: Council): boolean {
  return council.blind && council.verdict === null && council.seats.some(({ member }) => !council.speeches.some((one) => one.by === member))
}

export function stands(council: Council, run: RunState): Stand[] {
  const closed = sealed(council)
  const sits = sitting(council, run)
  return council.seats.map(({ member, weight }) => {
    const spoken = council.speeches.filter((one) => one.by === member)
    // Who lets a turn pass stands where it stood.
    const vote = closed ? null : (spoken.findLast((one) => one.vote)?.vote ?? null)
    return { member, weight, stance: vote?.signal ?? null, reason: vote?.reason ?? '', turns: spoken.length, speaks: sits.get(member) ?? null }
  })
}

/** Who has the word, and the handoff in which they have it. */
function sitting(council: Council, run: RunState): Map<string, Leg> {
  const sits = new Map<string, Leg>()
  if (council.verdict) return sits
  for (const leg of run.legs.values()) {
    const invited = leg.offer.from === 'council' && leg.offer.reason === 'council' && leg.cause === council.handoff
    if (invited && leg.standing.kind !== 'closed' && !council.speeches.some((one) => one.handoff === leg.id)) sits.set(leg.offer.to, leg)
  }
  return sits
}

export interface Quorum {
  agreed: number
  needed: number
  total: number
}

/** How much agrees, by weight, and how much has to. */
export function quorum(council: Council, members: readonly Stand[]): Quorum {
  const sum = (list: readonly { weight: number }[]): number => list.reduce((weight, one) => weight + one.weight, 0)
  const [votes = 1, of = 1] = council.quorum.split(/ of |\//).map(Number)
  const total = sum(members)
  return { agreed: sum(members.filter((one) => one.stance === 'agree')), needed: Math.ceil((total * votes) / of), total }
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
