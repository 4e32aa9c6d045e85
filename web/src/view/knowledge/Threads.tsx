// Talk: threads, their messages, and every message that has certain words.

import type { JSX } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { type Hits, THREADS, type ThreadView, type Threads as List, searchPath, threadPath } from '../../api/knowledge'
import { moment } from '../../state/words'
import { useAnswer, useKeys } from '../../app/knowledge'
import { go, now, place } from '../../app/store'
import { Empty, Key, Said, usePhone } from '../parts'
import { Lack } from './Lack'

/** Typing is over for now after so many milliseconds. */
const PAUSE = 250

export function Threads(): JSX.Element {
  const { about, words } = place.value
  const phone = usePhone()
  const { data, problem } = useAnswer<List>(THREADS)
  const found = useAnswer<Hits>(words.trim() ? searchPath(words.trim()) : null)
  const field = useRef<HTMLInputElement>(null)
  const list = data?.threads ?? []
  const hits = found.data?.hits ?? []
  const here = about ?? (phone || words ? null : (list[0]?.id ?? null))
  const step = (by: number): void => {
    if (words) {
      const index = hits.findIndex((hit) => hit.thread_id === about && String(hit.seq) === place.value.spot)
      const next = hits[Math.min(hits.length - 1, Math.max(0, index + by))]
      if (next) go({ about: next.thread_id, spot: String(next.seq) }, 'replace')
      return
    }
    const index = list.findIndex((one) => one.id === here)
    const next = list[Math.min(list.length - 1, Math.max(0, index + by))]
    if (next) go({ about: next.id, spot: null }, 'replace')
  }
  useKeys((key) => {
    if (key === 'j') return () => step(1)
    if (key === 'k') return () => step(-1)
    if (key === '/') return () => field.current?.focus()
    return null
  })
  if (!data) return <Lack problem={problem} />
  if (list.length === 0) {
    return (
      <Empty title="Nothing was said yet" command={'stafette run "Should we move to weekly releases?"'}>
        What agents, people and terminals say to each other in a run is kept as threads that can be searched. They begin with a run:
      </Empty>
    )
  }
  return (
    <div class="sides">
      {(!phone || !about) && (
        <section class="side" aria-label="Threads">
          <Search field={field} />
          {words.trim() ? (
            <ol class="side-list" aria-label="Messages that were found">
              {hits.map((hit) => (
                <li key={hit.message}>
                  <button type="button" class={`plain side-line${about === hit.thread_id && place.value.spot === String(hit.seq) ? ' is-here' : ''}`} onClick={() => go({ about: hit.thread_id, spot: String(hit.seq) })}>
                    <span class="side-words">
                      {hit.snippet.map((piece, index) => (piece.hit ? <mark key={index}>{piece.text}</mark> : <Said key={index} text={piece.text} />))}
                    </span>
                    <span class="quiet side-more">
                      <Said text={hit.role} /> in <Said text={hit.title} />
                    </span>
                  </button>
                </li>
              ))}
              {found.data && hits.length === 0 && <li class="quiet side-none">No message has all of these words.</li>}
              {found.problem && <li class="quiet side-none">{found.problem.title}</li>}
            </ol>
          ) : (
            <ol class="side-list" aria-label="All threads, newest first">
              {list.map((one) => (
                <li key={one.id}>
                  <button type="button" class={`plain side-line${here === one.id ? ' is-here' : ''}`} aria-current={here === one.id ? 'true' : undefined} onClick={() => go({ about: one.id, spot: null })}>
                    <Said text={one.title} of="side-title" />
                    <span class="quiet side-more">
                      <Said text={one.module} /> · <time class="figures">{moment(one.created_at, now.value)}</time>
                    </span>
                  </button>
                </li>
              ))}
            </ol>
          )}
        </section>
      )}
      {here ? <Talk key={here} id={here} phone={phone} /> : !phone && <p class="quiet side-hint">Choose a message to read what was said around it.</p>}
    </div>
  )
}

function Search({ field }: { field: { current: HTMLInputElement | null } }): JSX.Element {
  const [text, setText] = useState(place.value.words)
  useEffect(() => setText(place.peek().words), [place.value.words])
  useEffect(() => {
    if (text === place.peek().words) return
    const timer = setTimeout(() => go({ words: text, spot: null, about: null }, 'replace'), PAUSE)
    return () => clearTimeout(timer)
  }, [text])
  return (
    <div class="side-search">
      <input type="search" ref={field} value={text} aria-label="Search what was said" placeholder="Search what was said" onInput={(event) => setText(event.currentTarget.value)} />
      <Key>/</Key>
    </div>
  )
}

function Talk({ id, phone }: { id: string; phone: boolean }): JSX.Element {
  const { data, problem } = useAnswer<ThreadView>(threadPath(id))
  const { spot } = place.value
  const box = useRef<HTMLOListElement>(null)
  useEffect(() => {
    box.current?.querySelector('.is-here')?.scrollIntoView({ block: 'center' })
  }, [spot, data !== null])
  if (!data) return <Lack problem={problem} />
  return (
    <article class="talk-page" tabIndex={0} aria-label={`Thread ${data.thread.title}`}>
      {phone && (
        <button type="button" class="plain link" onClick={() => go({ about: null, spot: null })}>
          All threads
        </button>
      )}
      <h1>
        <Said text={data.thread.title} />
      </h1>
      <p class="quiet">
        <Said text={data.thread.module} /> · <span class="mono">{data.thread.id}</span>
      </p>
      <ol class="messages" ref={box}>
        {data.messages.map((one) => (
          <li key={one.id} class={spot === String(one.seq) ? 'message is-here' : 'message'}>
            <p class="message-who">
              <Said text={one.role} of="strong" /> <time class="quiet figures">{moment(one.created_at, now.value)}</time>
            </p>
            <p class="prose">
              <Said text={one.body} />
            </p>
          </li>
        ))}
      </ol>
    </article>
  )
}
