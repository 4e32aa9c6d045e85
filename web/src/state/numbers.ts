// What a run costs and how it goes.

import type { Usage } from '../api/types'
import type { RunState } from './run'

export interface AgentNumbers {
  name: string
  turns: number
  failed: number
  spent: Usage
  /** Time with a turn in hand, together and for the longest. */
  busy: number
  longest: number
  /** Time that it waited: for its turn, for others, for people. */
  waited: number
}

export interface Numbers {
  elapsed: number
  working: number
  waitedForPeople: number
  agents: AgentNumbers[]
  handoffs: number
  refused: number
  retries: number
  redelivered: number
  late: number
  questions: number
  /** Questions for each handoff. */
  escalationRate: number
  /** The most rounds of each loop. */
  rounds: { name: string; round: number; max: number }[]
  spent: Usage
  reserved: Usage
  limit: Usage & { time: number }
}

export function numbers(run: RunState, now: number): Numbers {
  const end = run.stage === 'finished' ? run.updatedAt : Math.max(now, run.updatedAt)
  const by = new Map<string, AgentNumbers>()
  for (const name of Object.keys(run.workflow.agents)) {
    const account = run.purse.agents[name]
    const spent = account?.spent ?? { tokens: 0, money: 0 }
    by.set(name, { name, turns: account?.turns ?? 0, failed: 0, spent, busy: 0, longest: 0, waited: 0 })
  }
  let waitedForPeople = 0
  const rounds = new Map<string, number>()
  for (const leg of run.legs.values()) {
    for (const [name, lap] of Object.entries(leg.trail.laps ?? {})) rounds.set(name, Math.max(rounds.get(name) ?? 0, lap.round))
    const agent = by.get(leg.offer.to)
    for (const one of leg.spans) {
      const length = (one.to ?? end) - one.from
      if (one.kind === 'asked') waitedForPeople += length
      if (!agent) continue
      if (one.kind === 'work') {
        agent.busy += length
        agent.longest = Math.max(agent.longest, length)
        if (one.end === 'failed') agent.failed += 1
      } else agent.waited += length
    }
  }
  const agents = [...by.values()].sort((a, b) => b.spent.money - a.spent.money || b.busy - a.busy || a.name.localeCompare(b.name))
  return {
    elapsed: end - run.createdAt,
    working: agents.reduce((sum, one) => sum + one.busy, 0),
    waitedForPeople,
    agents,
    handoffs: run.tally.handoffs,
    refused: run.tally.refused,
    retries: run.tally.retries,
    redelivered: run.tally.redelivered,
    late: run.tally.late,
    questions: run.tally.escalated,
    escalationRate: run.tally.handoffs ? run.tally.escalated / run.tally.handoffs : 0,
    rounds: run.workflow.loops.map((loop) => ({ name: loop.name, round: rounds.get(loop.name) ?? 0, max: loop.max_rounds })),
    spent: run.purse.spent,
    reserved: run.purse.reserved,
    limit: run.purse.limit,
  }
}
