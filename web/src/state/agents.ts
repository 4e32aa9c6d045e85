// Who does what, and which of them need a person: the left rail.

import type { SessionState, Usage } from '../api/types'
import { type Leg, type RunState, isOver, openLegs, standingWord } from './run'

/** What an agent means to the person who looks, in the order of urgency. */
export type Group = 'needs you' | 'working' | 'waiting' | 'idle' | 'done'

export const GROUPS: readonly Group[] = ['needs you', 'working', 'waiting', 'idle', 'done']

export interface AgentView {
  run: string
  name: string
  group: Group
  session: SessionState | null
  crashed: boolean
  doing: string
  since: number
  until: number | null
  leg: string | null
  question: string | null
  spent: Usage
}

/** Everyone in a run: those of the workflow, and the orchestrator when it asks something itself. */
export function agents(run: RunState): AgentView[] {
  const names = Object.keys(run.workflow.agents)
  const questions = asked(run)
  if (questions.some((leg) => asker(run, leg) === 'orchestrator')) names.push('orchestrator')
  const views = names.map((name) => look(run, name, questions))
  const place = (view: AgentView): number => GROUPS.indexOf(view.group)
  return views.sort((a, b) => place(a) - place(b) || a.name.localeCompare(b.name))
}

/** The questions that are open, oldest first. */
export function asked(run: RunState): Leg[] {
  if (run.stage === 'finished') return []
  return openLegs(run).filter((leg) => leg.standing.kind === 'asked')
}

/** On whose behalf a question is asked: the orchestrator passes on what agents ask it for. */
export function asker(run: RunState, question: Leg): string {
  let leg = question
  while (leg.offer.from === 'orchestrator') {
    const earlier = leg.returnsTo && number(leg.returnsTo) < number(leg.id) ? run.legs.get(leg.returnsTo) : undefined
    if (!earlier) {
      // What a failed or looping handoff needs is asked about whoever had it.
      const about = leg.offer.question?.about
      const of = typeof about === 'object' ? ('recovery' in about ? about.recovery : 'loop' in about ? about.loop : '') : ''
      return run.legs.get(of)?.offer.to ?? 'orchestrator'
    }
    leg = earlier
  }
  return leg.offer.from
}

/** The number in `h12`. */
export function number(id: string): number {
  return Number(id.slice(1))
}

function look(run: RunState, name: string, questions: Leg[]): AgentView {
  const mine = openLegs(run).filter((leg) => leg.offer.to === name)
  const session = run.sessions[name] ?? null
  const question = questions.find(
    (leg) =>
      asker(run, leg) === name ||
      mine.some((held) => held.standing.kind === 'blocked' && held.standing.on.includes(leg.id)),
  )
  const leg = mine.find((held) => held.standing.kind === 'out') ?? mine[0] ?? null
  const seen = run.stage === 'finished' ? over(run, name) : question ? needs(question) : leg ? atWork(run, leg) : idle(run, name)
  return {
    run: run.id,
    name,
    session,
    crashed: session === 'crashed' && run.stage !== 'finished',
    leg: leg?.id ?? null,
    question: question?.id ?? null,
    spent: run.purse.agents[name]?.spent ?? { tokens: 0, money: 0 },
    ...seen,
  }
}

type Seen = Pick<AgentView, 'group' | 'doing' | 'since' | 'until'>

function needs(question: Leg): Seen {
  const until = question.standing.kind === 'asked' ? question.standing.until : null
  return { group: 'needs you', doing: title(question), since: question.admittedAt, until }
}

function atWork(run: RunState, leg: Leg): Seen {
  const { standing } = leg
  if (standing.kind === 'out') {
    const doing = standing.turn.note || about(leg)
    return { group: 'working', doing, since: standing.turn.orderedAt, until: standing.turn.finishBy }
  }
  const waiting = (doing: string, until: number | null = null): Seen => ({
    group: 'waiting',
    doing,
    since: leg.spans[leg.spans.length - 1]?.from ?? leg.admittedAt,
    until,
  })
  if (standing.kind === 'blocked') {
    if (standing.on.length === 0) return waiting('hands on')
    const names = standing.on.map((id) => {
      const to = run.legs.get(id)?.offer.to
      return to ? `${to} (${id})` : id
    })
    return waiting(`waits for ${names.join(', ')}`)
  }
  if (run.stage === 'paused') return waiting('the run is paused')
  if (standing.kind === 'parked') return waiting(standing.why || 'its quota is used up', standing.until)
  if (leg.attempt > 1) return waiting(`attempt ${leg.attempt} follows`, standing.kind === 'pending' ? standing.notBefore : null)
  return waiting('waits for its turn')
}

function idle(run: RunState, name: string): Seen {
  const last = [...run.legs.values()].reverse().find((leg) => leg.offer.to === name && leg.standing.kind === 'closed')
  if (!last || last.standing.kind !== 'closed') return { group: 'idle', doing: 'nothing to do yet', since: run.createdAt, until: null }
  return { group: 'idle', doing: `${last.id} is ${standingWord(last.standing)}`, since: last.standing.at, until: null }
}

function over(run: RunState, name: string): Seen {
  const { doing } = idle(run, name)
  return { group: 'done', doing: run.purse.agents[name] ? doing : 'had nothing to do', since: run.updatedAt, until: null }
}

/** What a handoff is about, by the first who said something. */
export function about(leg: { offer: Leg['offer'] }): string {
  const { offer } = leg
  return offer.summary || offer.detail || offer.instructions || offer.reason.replaceAll('_', ' ')
}

/** The question of a handoff to a person, as its title. */
export function title(leg: Leg): string {
  return leg.offer.question?.details || about(leg)
}

/** The run's state as a sentence. */
export function sentence(run: RunState): string {
  const { status: word, waitingOn } = run
  const questions = asked(run)
  const working = agents(run).filter((agent) => agent.group === 'working')
  const names = working.map((agent) => agent.name)
  if (word === 'running' && names.length === 1) return `${names[0]} has the baton`
  if (word === 'running' && names.length > 1) return `${names.length} at work: ${names.slice(0, 3).join(', ')}${names.length > 3 ? ' …' : ''}`
  if (waitingOn === 'human') return questions.length === 1 ? 'Waits for your answer' : `Waits for ${questions.length} answers of yours`
  if (waitingOn === 'budget') return 'Waits for more budget'
  if (waitingOn === 'cooldown') return 'Waits a moment before the next turn'
  if (waitingOn === 'quota') return 'Waits until a quota is there again'
  if (isOver(word)) {
    return `${word[0]!.toUpperCase()}${word.slice(1)}${run.why ? `: ${run.why}` : ''}`
  }
  return `${word[0]!.toUpperCase()}${word.slice(1)}`
}
