// What the palette offers: every place and every act, by name.

import * as api from '../api/client'
import { PARTS } from '../state/place'
import { isOver } from '../state/run'
import { TITLES } from './knowledge'
import { allow, permission } from './notify'
import { stepGeneration } from '../view/Relay'
import { agent, at, attempt, cast, changes, entries, following, forkHere, forkable, go, goRun, items, overlay, run, runId, say, short } from './store'
import { theme, toggleTheme } from './theme'

export interface Command {
  name: string
  kind: string
  keys?: string
  run: () => void
}

export function commands(): Command[] {
  const state = run.value
  const id = runId.value ?? ''
  const here = { run: short(id) || null, agent: null, topic: null }
  const list: Command[] = [
    { name: 'Inbox', kind: 'go', keys: 'i', run: () => go({ view: 'inbox', question: null, handoff: null }) },
    { name: 'Terminals', kind: 'go', keys: 't', run: () => go({ view: 'terminal', handoff: null }) },
    { name: 'Graph of agents', kind: 'go', keys: 'g', run: () => go({ view: 'graph', agent: null }) },
    { name: 'Numbers', kind: 'go', keys: 'c', run: () => go({ view: 'numbers', agent: null }) },
    { name: 'Events', kind: 'go', keys: 'e', run: () => go({ view: 'events', agent: null }) },
    { name: 'Changes', kind: 'go', keys: 'd', run: () => go({ view: 'changes', change: null, handoff: null }) },
    ...PARTS.map((part) => ({ name: TITLES[part], kind: 'knowledge', run: () => go({ view: 'knowledge', part, about: null, spot: null, handoff: null }) })),
    { name: 'Council: discussion and votes', kind: 'go', keys: 'v', run: () => go({ ...here, view: 'council' }) },
    { name: 'Phases', kind: 'go', keys: 'h', run: () => go({ ...here, view: 'phases' }) },
    { name: 'Relay: generations, budgets, notes', kind: 'go', keys: 'r', run: () => go({ ...here, view: 'relay' }) },
    { name: 'Start a run', kind: 'do', run: () => (overlay.value = 'start') },
  ]
  for (const item of items.value) list.push({ name: `Answer: ${item.title}`, kind: 'needs you', run: () => go({ view: 'inbox', question: item.id }) })
  for (const one of changes.value) list.push({ name: `${one.id} ${one.reason.split('\n')[0]}`, kind: `change · ${one.status}`, run: () => go({ view: 'changes', change: one.id, handoff: null }) })
  if (state) {
    list.push({ name: following.value ? 'Stop following the baton' : 'Follow the baton', kind: 'do', keys: 'f', run: () => go({ agent: following.value ? agent.value : null }) })
    if (forkable.value) list.push({ name: at.value === null ? 'Fork the run as it is now' : 'Fork the run from the moment that is shown', kind: 'do', run: () => void forkHere() })
    if (at.value !== null) list.push({ name: 'Back to the present', kind: 'do', run: () => go({ at: null }) })
    const { status: word } = state
    if (!isOver(word)) {
      if (word === 'paused') list.push({ name: 'Let the run go on', kind: 'do', run: () => void attempt(() => api.steer(id, 'unpause'), 'The run goes on') })
      else list.push({ name: 'Pause the run', kind: 'do', run: () => void attempt(() => api.steer(id, 'pause'), 'Nothing new is given out') })
      list.push({ name: 'Call the run off', kind: 'do', run: () => void attempt(() => api.steer(id, 'cancel', 'called off on the page'), 'The run is called off') })
      list.push({ name: 'Raise the budget by $1', kind: 'do', run: () => void attempt(() => api.raise(id, state.purse.limit.money + 1), 'The run may spend more') })
    }
    if (state.lineage) {
      list.push({ name: 'The generation before', kind: 'go', keys: '<', run: () => stepGeneration(-1) })
      list.push({ name: 'The generation after', kind: 'go', keys: '>', run: () => stepGeneration(1) })
    }
    list.push({ name: 'Copy a link to what is shown', kind: 'do', run: () => void navigator.clipboard.writeText(location.href).then(() => say('Link copied')) })
    for (const one of cast.value) list.push({ name: one.name, kind: one.group, run: () => go({ view: 'terminal', agent: one.name, run: short(id) }) })
    for (const leg of state.legs.values()) list.push({ name: `${leg.id} ${leg.offer.from} → ${leg.offer.to}  ${leg.offer.summary}`, kind: 'handoff', run: () => go({ handoff: leg.id, run: short(id) }) })
  }
  list.push({ name: theme.value === 'dark' ? 'Light theme' : 'Dark theme', kind: 'do', run: toggleTheme })
  if (permission.value === 'default') list.push({ name: 'Tell me in the background when something needs me', kind: 'do', run: () => void allow() })
  list.push({ name: 'All keys', kind: 'do', keys: '?', run: () => (overlay.value = 'keys') })
  for (const one of entries.value) list.push({ name: one.request, kind: `run · ${one.word} · ${short(one.id)}`, run: () => goRun(one.id) })
  return list
}

/** The commands that fit, best first: every letter in order, and the nearer together the better. */
export function fitting<T extends { name: string; kind: string }>(list: T[], wanted: string): T[] {
  const word = wanted.trim().toLowerCase()
  if (!word) return list
  const scored: { one: T; score: number }[] = []
  for (const one of list) {
    const score = fit(`${one.name} ${one.kind}`.toLowerCase(), word)
    if (score !== null) scored.push({ one, score })
  }
  return scored.sort((a, b) => a.score - b.score).map(({ one }) => one)
}

function fit(text: string, word: string): number | null {
  const whole = text.indexOf(word)
  if (whole >= 0) return whole === 0 || text[whole - 1] === ' ' ? whole / 1000 : 1 + whole / 1000
  let from = 0
  let spread = 0
  for (const letter of word) {
    const found = text.indexOf(letter, from)
    if (found < 0) return null
    spread += found - from
    from = found + 1
  }
  return 10 + spread
}
