// Small parts that every view uses.

import type { ComponentChildren, JSX } from 'preact'
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import type { Group } from '../state/agents'
import { clean } from '../state/clean'

/** Something that an agent or a person said: text and nothing but text. */
export function Said({ text, of }: { text: string; of?: string | undefined }): JSX.Element {
  return <bdi class={of ?? ''}>{clean(text)}</bdi>
}

export type GlyphName = Group | 'failed' | 'crashed' | 'paused' | 'refused' | 'succeeded' | 'cancelled' | 'person' | 'alert' | 'changes' | 'knowledge'

const PATHS: Record<GlyphName, JSX.Element> = {
  'needs you': <path d="M7 .8 13.2 7 7 13.2.8 7Z M6.3 3.6v4h1.4v-4Z M6.3 8.7v1.5h1.4V8.7Z" fill="currentColor" fill-rule="evenodd" />,
  alert: <path d="M7 1 13.4 12.6H.6Z M6.3 5v3.6h1.4V5Z M6.3 9.6v1.4h1.4V9.6Z" fill="currentColor" fill-rule="evenodd" />,
  working: <path d="M3.4 2.2 11.6 7l-8.2 4.8Z" fill="currentColor" />,
  waiting: <path d="M4 3v8M10 3v8" stroke="currentColor" stroke-width="2" />,
  paused: <path d="M4 3v8M10 3v8" stroke="currentColor" stroke-width="2" />,
  idle: <circle cx="7" cy="7" r="4" fill="none" stroke="currentColor" stroke-width="1.4" />,
  done: <path d="m2.5 7.4 3 3 6-6.4" fill="none" stroke="currentColor" stroke-width="1.7" />,
  succeeded: <path d="m2.5 7.4 3 3 6-6.4" fill="none" stroke="currentColor" stroke-width="1.7" />,
  failed: <path d="m3 3 8 8m0-8-8 8" stroke="currentColor" stroke-width="1.8" />,
  refused: <path d="m3 3 8 8m0-8-8 8" stroke="currentColor" stroke-width="1.8" />,
  cancelled: <path d="M2.5 7h9" stroke="currentColor" stroke-width="1.8" />,
  crashed: <path d="M8.6.8 3 8h3.2L5 13.2 11 6H7.6Z" fill="currentColor" />,
  changes: <path d="M7 1.5v6M4 4.500h6M4 11.500h6" fill="none" stroke="currentColor" stroke-width="1.4" />,
  knowledge: <path d="M4 4.500 7 9.500 10.500 3M4 4.500 10.500 3M2.500 4.500a1.500 1.500 0 1 0 3 0 1.500 1.500 0 1 0-3 0M5.500 10.500a1.500 1.500 0 1 0 3 0 1.500 1.500 0 1 0-3 0M9 3a1.500 1.500 0 1 0 3 0 1.500 1.500 0 1 0-3 0" fill="none" stroke="currentColor" stroke-width="1.2" />,
  person: <path d="M7 1.2a2.7 2.7 0 1 1 0 5.4 2.7 2.7 0 0 1 0-5.4ZM2 12.8c.3-3.2 2.3-5 5-5s4.7 1.8 5 5Z" fill="currentColor" />,
}

/** A state has a colour, a glyph and, beside it or for those who listen, a word. */
export function Glyph({ name, label }: { name: GlyphName; label?: string }): JSX.Element {
  const said = label === undefined ? { 'aria-hidden': true as const } : { role: 'img' as const, 'aria-label': label }
  return (
    <svg class={`glyph is-${name.replace(' ', '-')}`} width="14" height="14" viewBox="0 0 14 14" {...said}>
      {PATHS[name]}
    </svg>
  )
}

export function runGlyph(word: string): GlyphName {
  if (word === 'running') return 'working'
  if (word === 'waiting' || word === 'paused' || word === 'succeeded' || word === 'failed' || word === 'cancelled') return word
  return 'idle'
}

export function Key({ children }: { children: ComponentChildren }): JSX.Element {
  return <kbd>{children}</kbd>
}

/** An empty state teaches: what would be here, and the command that makes it so. */
export function Empty({ title, children, command }: { title: string; children?: ComponentChildren; command?: string }): JSX.Element {
  return (
    <div class="empty">
      <h2>{title}</h2>
      {children && <p>{children}</p>}
      {command && (
        <p>
          <code class="command">{command}</code>
        </p>
      )}
    </div>
  )
}

/** A long list of which only what can be seen is there. */
export function Virtual<T>({
  list,
  height,
  render,
  tail,
  label,
}: {
  list: readonly T[]
  height: number
  render: (one: T, index: number) => JSX.Element
  /** Whether the end stays in sight while the list grows. */
  tail?: boolean
  label: string
}): JSX.Element {
  const box = useRef<HTMLDivElement>(null)
  const [top, setTop] = useState(0)
  const [room, setRoom] = useState(600)
  const sticks = useRef(tail ?? false)
  useLayoutEffect(() => {
    const element = box.current
    if (!element) return
    const watch = new ResizeObserver(() => setRoom(element.clientHeight))
    watch.observe(element)
    return () => watch.disconnect()
  }, [])
  useLayoutEffect(() => {
    if (sticks.current && box.current) box.current.scrollTop = box.current.scrollHeight
  }, [list.length, room])
  const first = Math.max(0, Math.floor(top / height) - 8)
  const last = Math.min(list.length, Math.ceil((top + room) / height) + 8)
  const scrolled = (): void => {
    const element = box.current
    if (!element) return
    setTop(element.scrollTop)
    if (tail) sticks.current = element.scrollTop + element.clientHeight >= element.scrollHeight - height
  }
  return (
    <div class="virtual" ref={box} onScroll={scrolled} tabIndex={0} role="list" aria-label={label}>
      <div class="virtual-pad" style={{ height: `${list.length * height}px` }}>
        <div style={{ transform: `translateY(${first * height}px)` }}>
          {list.slice(first, last).map((one, index) => render(one, first + index))}
        </div>
      </div>
    </div>
  )
}

/** The size of an element, kept up to date. */
export function useSize(): [{ width: number; height: number }, (element: HTMLElement | null) => void] {
  const [size, setSize] = useState({ width: 0, height: 0 })
  const [element, setElement] = useState<HTMLElement | null>(null)
  useLayoutEffect(() => {
    if (!element) return
    const measure = (): void => {
      const next = { width: element.clientWidth, height: element.clientHeight }
      setSize((known) => (known.width === next.width && known.height === next.height ? known : next))
    }
    measure()
    const watch = new ResizeObserver(measure)
    watch.observe(element)
    return () => watch.disconnect()
  }, [element])
  return [size, setElement]
}

const narrow = matchMedia('(max-width: 700px)')

/** Whether the page is as wide as a phone. */
export function usePhone(): boolean {
  const [is, set] = useState(narrow.matches)
  useEffect(() => {
    const change = (): void => set(narrow.matches)
    narrow.addEventListener('change', change)
    return () => narrow.removeEventListener('change', change)
  }, [])
  return is
}

/** A dialog that keeps the focus and gives it back. */
export function Dialog({ label, close, children, of }: { label: string; close: () => void; children: ComponentChildren; of: string }): JSX.Element {
  const box = useRef<HTMLDialogElement>(null)
  // Before the next key arrives: whoever types on at once must not lose a letter.
  useLayoutEffect(() => {
    const element = box.current
    element?.showModal()
    return () => element?.close()
  }, [])
  return (
    <dialog
      ref={box}
      class={of}
      aria-label={label}
      onCancel={(event) => {
        event.preventDefault()
        close()
      }}
      onClick={(event) => {
        if (event.target === box.current) close()
      }}
    >
      {children}
    </dialog>
  )
}
