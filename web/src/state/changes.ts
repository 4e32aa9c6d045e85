// The sets of edits, grouped by what is to be done about them.

import type { Change } from '../api/types'

export type Standing = 'needs you' | 'ready' | 'in' | 'over'

export const STANDINGS: [Standing, string][] = [
  ['needs you', 'Needs you'],
  ['ready', 'Ready'],
  ['in', 'In the project'],
  ['over', 'Over'],
]

/** Whether a person has to say yes before it can be applied. */
export const waits = (change: Change): boolean => change.status === 'pending' && change.gates.length > 0

export function standing(change: Change): Standing {
  switch (change.status) {
    case 'applied':
    case 'validated':
      return 'in'
    case 'failed':
    case 'refused':
    case 'undone':
      return 'over'
    default:
      return waits(change) ? 'needs you' : 'ready'
  }
}

/** What can be done to a set now. */
export function acts(change: Change): { approve: boolean; refuse: boolean; apply: boolean; undo: boolean } {
  const open = change.status === 'pending' || change.status === 'approved' || change.status === 'failed'
  const allowed = change.gates.length === 0 || change.approved_by !== undefined
  return {
    approve: change.status === 'pending' || change.status === 'refused' || (change.status === 'failed' && !allowed),
    refuse: open,
    apply: open && allowed,
    undo: change.status === 'applied' || change.status === 'validated',
  }
}

/** All sets in the order in which they are listed: by standing, the newest first. */
export function listed(changes: Change[]): Change[] {
  const order = (change: Change): number => STANDINGS.findIndex(([name]) => name === standing(change))
  const number = (change: Change): number => Number(change.id.slice(1))
  return [...changes].sort((a, b) => order(a) - order(b) || number(b) - number(a))
}

/** What a gate is about, in words. */
export function gateWords(gate: Change['gates'][number]): string {
  const what = {
    deletion: 'deletes',
    own_logic: 'steers the team by',
    dependencies: 'changes dependencies in',
    validation: 'changes by what changes are validated:',
    steering: 'changes what agents and tools obey:',
    printed: 'was only printed, and changes',
    foreign: 'was left by another orchestrator:',
  }[gate.kind]
  return `${what} ${gate.file}`
}

export function author(change: Change): string {
  return change.author.agent ?? (change.author.person || 'somebody')
}
