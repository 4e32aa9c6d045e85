// Events as they happen, from a position on. When the connection breaks it is made again from the
// last event that was heard, so that nothing is lost and nothing is doubled.
//
// A WebSocket is tried first: browsers allow only six other streams to one place, over all tabs. Where
// there is none, the same events come as lines.

import { lines } from './client'
import { credentials, protocols } from './session'
import type { Recorded } from './types'

export interface Listener {
  heard(events: Recorded[]): void
  state(state: 'live' | 'lost' | 'refused', retryAt: number): void
  cursor(): number
}

const FIRST_WAIT = 250
const LONGEST_WAIT = 8000

/** Follows until `signal` is aborted. */
export async function follow(listener: Listener, signal: AbortSignal): Promise<void> {
  let wait = FIRST_WAIT
  let sockets = true
  while (!signal.aborted) {
    const since = Date.now()
    let ended: Ended = sockets ? await bySocket(listener, signal) : 'unsupported'
    if (ended === 'unsupported') {
      ended = await byLines(listener, signal)
      // Lines that flow where a socket would not: this is not a daemon that is merely gone.
      if (ended === 'broke') sockets = false
    }
    if (signal.aborted) return
    if (Date.now() - since > LONGEST_WAIT) wait = FIRST_WAIT
    listener.state(ended === 'refused' ? 'refused' : 'lost', Date.now() + wait)
    await pause(wait, signal)
    wait = Math.min(LONGEST_WAIT, wait * 2)
  }
}

type Ended = 'broke' | 'unsupported' | 'refused' | 'unreachable'

function bySocket(listener: Listener, signal: AbortSignal): Promise<Ended> {
  return new Promise((resolve) => {
    const base = location.origin.replace(/^http/, 'ws')
    const socket = new WebSocket(`${base}/v1/events/live?after=${listener.cursor()}&state=true`, protocols())
    let opened = false
    const stop = (): void => socket.close()
    signal.addEventListener('abort', stop)
    socket.onopen = () => {
      opened = true
      listener.state('live', 0)
    }
    socket.onmessage = ({ data }: MessageEvent<string>) => listener.heard([JSON.parse(data) as Recorded])
    socket.onclose = () => {
      signal.removeEventListener('abort', stop)
      resolve(opened ? 'broke' : 'unsupported')
    }
  })
}

async function byLines(listener: Listener, signal: AbortSignal): Promise<Ended> {
  try {
    const answer = await fetch(`/v1/events?follow=true&state=true&after=${listener.cursor()}`, { signal, credentials: 'omit', headers: credentials() })
    if (answer.status === 401 || answer.status === 403) return 'refused'
    if (!answer.ok || !answer.body) return 'unreachable'
    listener.state('live', 0)
    await read(answer.body, listener)
    return 'broke'
  } catch {
    // The daemon is gone or going; the reason is the same for the reader.
    return 'unreachable'
  }
}

async function read(body: ReadableStream<Uint8Array>, listener: Listener): Promise<void> {
  const reader = body.getReader()
  const decoder = new TextDecoder()
  let rest = ''
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return
    rest += decoder.decode(value, { stream: true })
    const end = rest.lastIndexOf('\n')
    if (end < 0) continue
    const whole = rest.slice(0, end)
    rest = rest.slice(end + 1)
    const events = lines(whole)
    if (events.length > 0) listener.heard(events)
  }
}

/** Waits, but not longer than until somebody looks at the page again or the network is back. */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer)
      removeEventListener('online', end)
      document.removeEventListener('visibilitychange', end)
      signal.removeEventListener('abort', end)
      resolve()
    }
    const timer = setTimeout(end, ms)
    addEventListener('online', end)
    document.addEventListener('visibilitychange', end)
    signal.addEventListener('abort', end)
  })
}
