// The page: rail, header, track, and one view.

import type { JSX } from 'preact'
import { useEffect } from 'preact/hooks'
import type { View, Wide } from '../state/place'
import { entries, go, items, link, overlay, place, ready, run, runId, short, trouble, waiting } from '../app/store'
import { Changes } from './Changes'
import { Council } from './Council'
import { Drawer } from './Drawer'
import { Events } from './Events'
import { Graph } from './Graph'
import { Header, Past } from './Header'
import { Inbox } from './Inbox'
import { Knowledge } from './Knowledge'
import { Legs } from './Legs'
import { Numbers } from './Numbers'
import { Overlays } from './Overlays'
import { Empty, Said, usePhone } from './parts'
import { Phases } from './Phases'
import { Agents, Rail, Runs } from './Rail'
import { Relay } from './Relay'
import { Follow, Tabs, TerminalStage } from './Terminal'
import { Track } from './Track'

export function App(): JSX.Element {
  const phone = usePhone()
  return (
    <>
      <a class="skip" href="#main">
        To the content
      </a>
      {phone ? <Phone /> : <Desk />}
      <Overlays />
    </>
  )
}

function Desk(): JSX.Element {
  const { view } = place.value
  return (
    <div class="desk">
      <Rail />
      <div class="middle">
        <Header />
        {!ready.value ? (
          <Waiting />
        ) : view === 'changes' ? (
          <Changes />
        ) : view === 'knowledge' ? (
          <Knowledge />
        ) : view === 'inbox' ? (
          <div class="below">
            <Inbox />
            <Drawer />
          </div>
        ) : !runId.value ? (
          <First />
        ) : (
          <>
            <Track />
            <Views />
            <div class="below">
              <main class="content" id="main">
                <Content />
              </main>
              <Drawer />
            </div>
          </>
        )}
      </div>
    </div>
  )
}

const VIEWS: [View, string][] = [
  ['terminal', 'Terminals'],
  ['graph', 'Graph'],
  ['track', 'Legs'],
  ['council', 'Council'],
  ['phases', 'Phases'],
  ['relay', 'Relay'],
  ['numbers', 'Numbers'],
  ['events', 'Events'],
]

/** Whether a view has something to show in this run; the others are found by their keys and in the palette. */
function offered(name: View): boolean {
  const state = run.value
  if (place.value.view === name) return true
  if (name === 'council') return Boolean(state?.workflow.council)
  return name !== 'phases' || Boolean(state?.workflow.phases?.length)
}

/** The ways to the views of a run. */
function Ways({ list, now, label, of }: { list: [View, string][]; now: Tab; label: string; of: string }): JSX.Element {
  const here = { run: short(runId.value ?? ''), topic: null }
  return (
    <nav class={of} aria-label={label}>
      {list
        .filter(([name]) => offered(name))
        .map(([name, title]) => (
          <button type="button" key={name} class={`plain view${now === name ? ' is-here' : ''}`} aria-current={now === name ? 'page' : undefined} onClick={() => go({ view: name, ...here })}>
            {title}
          </button>
        ))}
    </nav>
  )
}

function Views(): JSX.Element {
  const { view } = place.value
  return (
    <div class="views">
      <Ways list={VIEWS} now={view} label="Views" of="views-nav" />
      {view === 'terminal' && (
        <>
          <Tabs />
          <Follow />
        </>
      )}
    </div>
  )
}

function Content(): JSX.Element {
  const phone = usePhone()
  if (!run.value) return place.value.run && !entries.value.some((one) => one.id === runId.value) ? <Lost /> : <Waiting />
  const plain = phone && place.value.run === null && place.value.view === 'terminal'
  switch (plain ? 'track' : place.value.view) {
    case 'track':
      return <Legs />
    case 'agents':
      return (
        <div class="everyone">
          <Agents />
          <Runs />
        </div>
      )
    case 'council':
      return <Council />
    case 'phases':
      return <Phases />
    case 'relay':
      return <Relay />
    case 'graph':
      return <Graph />
    case 'numbers':
      return <Numbers />
    case 'events':
      return <Events />
    default:
      return <TerminalStage />
  }
}

/** Nothing is shown before there is something to show, unless it takes long. */
function Waiting(): JSX.Element {
  const problem = trouble.value
  if (link.value.state === 'refused') {
    return (
      <Empty title="This page does not know you" command="stafette open">
        <Said text={problem?.detail ?? 'A link of the daemon lets this browser in. Each works once and for two minutes; a new one comes from'} />
      </Empty>
    )
  }
  if (problem) {
    return (
      <Empty title={problem.title} command="stafette open">
        <Said text={problem.detail || 'The next daemon has its page at another address, unless that is fixed. It is opened with'} />
      </Empty>
    )
  }
  return <div class="waiting" role="status" aria-label="Reading the runs" />
}

function First(): JSX.Element {
  if (place.value.run) return <Lost />
  return (
    <Empty title="No run yet" command={'stafette run "Add JWT login"'}>
      A run passes a request from agent to agent and shows up here: its track, its terminals, its cost, and what it needs from you.{' '}
      <button type="button" class="link" onClick={() => (overlay.value = 'start')}>
        Start one here
      </button>{' '}
      or with
    </Empty>
  )
}

function Lost(): JSX.Element {
  return (
    <Empty title={`There is no run ${place.value.run}`} command="stafette status">
      It may have been tidied away, or the address is not complete. The list of runs is on the left, and in
    </Empty>
  )
}

type Tab = View | Wide

/** What a phone shows of the relay as a whole. */
const WHOLE = VIEWS.filter(([name]) => name === 'track' || name === 'council' || name === 'phases' || name === 'relay')

/** A phone shows one thing at a time, and what needs its owner first. */
function Phone(): JSX.Element {
  const { view } = place.value
  const count = items.value.length
  const sets = waiting.value
  // The plain address leads to whatever matters most.
  const plain = place.value.run === null && view === 'terminal'
  const now: Tab = plain ? (count > 0 || !runId.value ? 'inbox' : 'track') : view
  // Whoever came for the question stays with the inbox after the answer.
  useEffect(() => {
    if (plain && count > 0) go({ view: 'inbox' }, 'replace')
  }, [plain, count > 0])
  const here = { run: short(runId.value ?? '') || null, agent: null, handoff: null }
  const whole = WHOLE.some(([name]) => name === now)
  const isHere = (name: Tab): boolean => now === name || (name === 'track' && whole)
  const tab = (name: Tab, title: string): JSX.Element => (
    <button type="button" class={`plain${isHere(name) ? ' is-here' : ''}`} aria-current={isHere(name) ? 'page' : undefined} onClick={() => go({ ...here, view: name, question: null, change: null, about: null, spot: null })}>
      {title}
      {name === 'inbox' && count > 0 && <span class="count figures">{count}</span>}
      {name === 'changes' && sets > 0 && <span class="count figures">{sets}</span>}
    </button>
  )
  return (
    <div class="phone">
      {now !== 'inbox' && now !== 'changes' && now !== 'knowledge' && <Header />}
      <Past />
      {!ready.value ? (
        <Waiting />
      ) : now === 'inbox' ? (
        <Inbox />
      ) : now === 'changes' ? (
        <Changes />
      ) : now === 'knowledge' ? (
        <Knowledge />
      ) : (
        <main class="content" id="main">
          {whole && run.value && <Ways list={WHOLE} now={now} label="The relay" of="views views-nav" />}
          {now === 'terminal' && run.value && (
            <div class="views">
              <Tabs />
              <Follow />
            </div>
          )}
          {runId.value ? <Content /> : <First />}
        </main>
      )}
      <Drawer />
      <nav class="phone-nav" aria-label="Views">
        {tab('inbox', 'Inbox')}
        {tab('track', 'Track')}
        {tab('terminal', 'Terminals')}
        {tab('changes', 'Changes')}
        {tab('agents', 'Agents')}
        {tab('numbers', 'Numbers')}
        {tab('knowledge', 'Known')}
      </nav>
    </div>
  )
}
