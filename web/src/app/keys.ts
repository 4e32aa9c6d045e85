// The keyboard. Nothing here acts while somebody types or a dialog is open.

import { actByKey, stepChange } from '../view/Changes'
import { choose, pick } from '../view/Inbox'
import { stepGeneration } from '../view/Relay'
import { focusTerminal, toggleSeek } from '../view/Terminal'
import { ownKeys } from './knowledge'
import { agent, at, cast, following, go, items, notice, overlay, place, run, runId, short, stepTime } from './store'

export const KEYS: [string, string][] = [
  ['i', 'inbox'],
  ['n', 'the next that needs you'],
  ['1 … 9', 'answer with an option'],
  ['a', 'answer in words'],
  ['j k', 'next and previous agent, question or change'],
  ['Enter', 'into the terminal'],
  ['f', 'follow the baton'],
  ['t g c e d', 'terminals, graph, numbers, events, changes'],
  ['w', 'what is known and planned; there ← → ↑ ↓ move a block, Enter accepts it'],
  ['v h r', 'council, phases, relay'],
  ['< >', 'the generation before and after'],
  ['y x p u', 'approve, refuse, apply or undo the change'],
  ['m s', 'comment on the change or leave a note; side by side'],
  ['↑ ↓', 'from line to line of a diff'],
  ['[ ]', 'back and forth in time'],
  ['{ }', 'ten events at once'],
  ['l', 'live again'],
  ['Ctrl Shift F', 'search the terminal'],
  ['Ctrl K', 'every command'],
  ['Esc', 'close, or back to the present'],
  ['?', 'these keys'],
]

export function listen(): void {
  addEventListener('keydown', (event) => {
    if ((event.metaKey || event.ctrlKey) && event.key.toLowerCase() === 'k' && !event.shiftKey) {
      event.preventDefault()
      overlay.value = overlay.value === 'palette' ? '' : 'palette'
      return
    }
    if (event.ctrlKey && event.shiftKey && event.key.toLowerCase() === 'f') {
      event.preventDefault()
      toggleSeek()
      return
    }
    if (overlay.value || event.metaKey || event.ctrlKey || event.altKey) return
    if (event.key === 'Escape') {
      escape(event)
      return
    }
    if (typing(event.target)) return
    const act = action(event.key)
    if (!act) return
    event.preventDefault()
    act()
  })
}

function escape(event: KeyboardEvent): void {
  if (typing(event.target)) {
    // Inside a terminal, Escape belongs to the program.
    if (!(event.target as Element).closest('.terminal-box')) (event.target as HTMLElement).blur()
    return
  }
  if (notice.value) notice.value = null
  else if (place.value.handoff) go({ handoff: null })
  else if (at.value !== null) go({ at: null })
}

function typing(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName)) && !(target instanceof HTMLInputElement && target.type === 'range')
}

function action(key: string): (() => void) | null {
  const inbox = place.value.view === 'inbox'
  const changes = place.value.view === 'changes'
  const own = place.value.view === 'knowledge' ? ownKeys.current?.(key) : null
  if (own) return own
  // Before the run is read, the address still says which one it is.
  const here = { run: short(runId.value ?? '') || place.value.run }
  if (/^[1-9]$/.test(key)) return inbox ? () => void pick(Number(key) - 1) : null
  switch (key) {
    case 'i':
      return () => go({ view: 'inbox', question: null, handoff: null })
    case 'n':
      return next
    case 'a':
      return inbox ? () => document.querySelector<HTMLTextAreaElement>('.question.is-open textarea')?.focus() : null
    case 'j':
      return () => (inbox ? choose(1) : changes ? stepChange(1) : step(1))
    case 'k':
      return () => (inbox ? choose(-1) : changes ? stepChange(-1) : step(-1))
    case 'Enter':
      return document.activeElement === document.body ? focusTerminal : null
    case 'f':
      return () => go({ agent: following.value ? agent.value : null, ...here }, 'replace')
    case 't':
      return () => go({ view: 'terminal', ...here })
    case 'g':
      return () => go({ view: 'graph', ...here })
    case 'c':
      return () => go({ view: 'numbers', ...here })
    case 'e':
      return () => go({ view: 'events', ...here })
    case 'd':
      return () => go({ view: 'changes', change: null, handoff: null })
    case 'w':
      return () => go({ view: 'knowledge', about: null, spot: null, handoff: null })
    case 'v':
      return () => go({ view: 'council', topic: null, ...here })
    case 'h':
      return () => go({ view: 'phases', topic: null, ...here })
    case 'r':
      return () => go({ view: 'relay', ...here })
    case '<':
      return () => stepGeneration(-1)
    case '>':
      return () => stepGeneration(1)
    case 'y':
      return changes ? () => actByKey('approve') : null
    case 'x':
      return changes ? () => actByKey('refuse') : null
    case 'p':
      return changes ? () => actByKey('apply') : null
    case 'u':
      return changes ? () => actByKey('undo') : null
    case 'm':
      if (place.value.view === 'relay') return () => document.querySelector<HTMLElement>('.note-text')?.focus()
      return changes ? () => document.querySelector<HTMLElement>('.say-all')?.click() : null
    case 's':
      return changes ? () => go({ split: !place.value.split }, 'replace') : null
    case '[':
      return () => stepTime(-1)
    case ']':
      return () => stepTime(1)
    case '{':
      return () => stepTime(-10)
    case '}':
      return () => stepTime(10)
    case 'l':
      return () => go({ at: null })
    case '?':
      return () => (overlay.value = 'keys')
    default:
      return null
  }
}

/** The next agent in the order of the rail. */
function step(by: number): void {
  const names = cast.value.map((one) => one.name)
  if (names.length === 0 || !run.value) return
  const index = names.indexOf(agent.value ?? '')
  go({ view: 'terminal', agent: names[(index + by + names.length) % names.length] ?? null, run: short(runId.value ?? '') }, 'replace')
}

/** The question after the one that is looked at. */
function next(): void {
  const list = items.value
  const index = list.findIndex((item) => item.id === place.value.question)
  const item = list[(index + 1) % Math.max(1, list.length)]
  go({ view: 'inbox', question: item?.id ?? null, handoff: null })
}
