// What is known and planned. Its code is read when it is first looked at.

import type { FunctionComponent, JSX } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { PARTS, type Part } from '../state/place'
import { TITLES } from '../app/knowledge'
import { go, place } from '../app/store'

type Parts = Record<Part, FunctionComponent>

let parts: Parts | null = null

/** How the parts are called where there is little room. */
const SHORT: Record<Part, string> = { ...TITLES, graph: 'Graph' }

export function Knowledge(): JSX.Element {
  const [, here] = useState(parts !== null)
  useEffect(() => {
    if (parts) return
    void import('./knowledge/parts').then((read) => {
      parts = read.PARTS
      here(true)
    })
  }, [])
  const { part } = place.value
  const nav = useRef<HTMLElement>(null)
  const Shown = parts?.[part]
  useEffect(() => nav.current?.querySelector('.is-here')?.scrollIntoView({ block: 'nearest', inline: 'center' }), [part])
  return (
    <main class="knowledge" id="main">
      <nav class="knowledge-nav" ref={nav} aria-label="Knowledge">
        {PARTS.map((name) => (
          <button type="button" key={name} class={`plain view${part === name ? ' is-here' : ''}`} aria-current={part === name ? 'page' : undefined} onClick={() => go({ part: name, about: null, spot: null, words: '' })}>
            {SHORT[name]}
          </button>
        ))}
      </nav>
      {Shown ? <Shown key={part} /> : <div class="waiting" role="status" aria-label="Reading" />}
    </main>
  )
}
