// Every event of the run. A click shows the run as it was then.

import type { JSX } from 'preact'
import { useMemo, useState } from 'preact/hooks'
import { line } from '../state/line'
import { clock } from '../state/words'
import { at, events, go, runId, short } from '../app/store'
import { Empty, Said, Virtual } from './parts'

const ROW = 24

export function Events(): JSX.Element {
  const [wanted, setWanted] = useState('')
  const all = events.value
  const list = useMemo(() => {
    const word = wanted.trim().toLowerCase()
    if (!word) return all
    return all.filter((event) => {
      const { about, text } = line(event)
      return `${event.event} ${about} ${text}`.toLowerCase().includes(word)
    })
  }, [all, wanted])
  if (all.length === 0) return <Empty title="No events yet" command="stafette log --follow" />
  return (
    <div class="events">
      <div class="events-bar">
        <input type="search" placeholder="Filter: h7, failed, reviewer …" aria-label="Filter events" value={wanted} onInput={(event) => setWanted(event.currentTarget.value)} />
        <span class="quiet figures">
          {list.length === all.length ? all.length : `${list.length} of ${all.length}`} events
        </span>
      </div>
      <Virtual
        list={list}
        height={ROW}
        tail={at.value === null && !wanted}
        label="Events, oldest first"
        render={(event) => {
          const said = line(event)
          const future = at.value !== null && event.seq > at.value
          return (
            <div role="listitem" key={event.seq}>
              <button type="button" class={`plain event is-${said.tone || 'plain'}${event.seq === at.value ? ' is-here' : ''}${future ? ' is-future' : ''}`} onClick={() => go({ at: event.seq, run: short(runId.value ?? ''), handoff: said.about || null })}>
                <span class="event-seq figures">{event.seq}</span>
                <time class="event-time figures">{clock(Date.parse(event.at), true)}</time>
                <span class="event-name">{event.event}</span>
                <span class="event-about">{said.about}</span>
                <Said text={said.text} of="event-text" />
              </button>
            </div>
          )
        }}
      />
    </div>
  )
}
