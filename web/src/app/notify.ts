// Tells people outside the page that something needs them: the title, and the browser's notifications.

import { effect, signal } from '@preact/signals'
import type { Item } from '../state/inbox'
import { at, go, items, link, ready } from './store'

export const permission = signal<NotificationPermission | 'unsupported'>(
  'Notification' in window ? Notification.permission : 'unsupported',
)

export async function allow(): Promise<void> {
  if (permission.value !== 'default') return
  permission.value = await Notification.requestPermission()
}

/** Questions that come close together are told together. */
const TOGETHER = 1500

export function watch(): void {
  let known: Set<string> | null = null
  let waiting: Item[] = []
  let timer = 0
  const tell = (): void => {
    timer = 0
    const open = new Set(items.peek().map((item) => item.id))
    const list = waiting.filter((item) => open.has(item.id))
    waiting = []
    const [first] = list
    if (!first || document.visibilityState === 'visible' || permission.peek() !== 'granted') return
    const title = list.length === 1 ? `${first.asker} needs you` : `${list.length} questions need you`
    const body = list.length === 1 ? first.title : list.map((item) => `${item.asker}: ${item.title}`).join('\n')
    const shown = new Notification(title, { body, tag: list.length === 1 ? first.id : 'stafette' })
    shown.onclick = () => {
      window.focus()
      go({ view: 'inbox', question: first.id, handoff: null, at: null })
      shown.close()
    }
  }
  effect(() => {
    const list = items.value
    const count = list.length
    const lost = link.value.state === 'lost'
    document.title = `${lost ? '⚠ ' : count ? `(${count}) ` : ''}Stafette`
    if (!ready.value || at.value !== null) return
    const before = known
    known = new Set(list.map((item) => item.id))
    if (!before) return
    const fresh = list.filter((item) => !before.has(item.id))
    if (fresh.length === 0) return
    waiting.push(...fresh)
    if (!timer) timer = window.setTimeout(tell, TOGETHER)
  })
}
