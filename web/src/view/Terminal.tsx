// The terminal of one agent: live, or as it was; read-only until control is taken.

import { signal } from '@preact/signals'
import type { JSX } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import * as api from '../api/client'
import type { TerminalView } from '../api/types'
import { told } from '../state/history'
import { turnKey } from '../state/run'
import { laneNames } from '../state/track'
import { agent, at, attempt, cast, following, go, live as present, lookUpTerminals, run, runId, say, short, terminals } from '../app/store'
import { setting, theme } from '../app/theme'
import { Live } from '../terminal/live'
import type { Screen } from '../terminal/screen'
import { Journal } from './Journal'
import { Empty, Glyph, Key, Said } from './parts'
import { agentGlyph } from './Rail'

const size = setting('terminal.size', 13)
let screen: Screen | null = null

/** The terminal's code is large, and read when the first one is looked at. */
async function theScreen(): Promise<Screen> {
  const { Screen: Make } = await import('../terminal/screen')
  screen ??= new Make(theme.peek(), size.get())
  return screen
}

/** Moves the keys into the terminal. */
export function focusTerminal(): void {
  screen?.focus()
  document.querySelector<HTMLElement>('.journal')?.focus()
}

const control = signal(false)
const seeking = signal(false)

export function TerminalStage(): JSX.Element {
  const state = run.value
  const name = agent.value
  if (!state || !name) return <Empty title="Nobody is here yet">Agents appear with the first run.</Empty>
  if (!(name in state.workflow.agents) && name !== 'orchestrator') {
    return (
      <Empty title={`There is no agent ${name} in this run`}>
        <button type="button" class="small" onClick={() => go({ agent: null })}>
          Follow the baton
        </button>
      </Empty>
    )
  }
  const view = terminals.value.get(`${state.id}/${name}`)
  const screened = view !== undefined || recorded(name)
  return (
    <div class="stage" id="panel" role="tabpanel" aria-label={name}>
      <Bar name={name} view={view} screened={screened} />
      {screened ? <Terminal key={`${state.id}/${name}`} run={state.id} name={name} alive={view !== undefined && view.state !== 'ended'} /> : <Journal name={name} />}
    </div>
  )
}

/** Whether an agent worked in a terminal in this run, so that there is a recording of it. */
function recorded(name: string): boolean {
  const state = present.value
  if (state?.workflow.agents[name]?.runner !== 'pty') return false
  return name in state.sessions || told(state, 'receipt_given').some((event) => state.legs.get(turnKey(event.turn).handoff)?.offer.to === name)
}

/** One tab an agent, in the order of the lanes. */
export function Tabs(): JSX.Element | null {
  const state = run.value
  const box = useRef<HTMLDivElement>(null)
  const chosen = agent.value
  useEffect(() => {
    box.current?.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: 'nearest', inline: 'nearest' })
  }, [chosen])
  if (!state) return null
  const views = new Map(cast.value.map((one) => [one.name, one]))
  const names = laneNames(present.value ?? state)
  return (
    <div class="tabs" role="tablist" aria-label="Terminals" ref={box}>
      {names.map((name) => {
        const one = views.get(name)
        return (
          <button
            type="button"
            key={name}
            role="tab"
            aria-selected={chosen === name}
            aria-controls="panel"
            tabIndex={chosen === name ? 0 : -1}
            class={`plain tab${chosen === name ? ' is-here' : ''}`}
            onClick={() => go({ agent: name, view: 'terminal', run: short(runId.value ?? '') })}
            onKeyDown={(event) => {
              const step = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0
              if (step) go({ agent: names[(names.indexOf(name) + step + names.length) % names.length] ?? name }, 'replace')
            }}
          >
            {one && <Glyph name={agentGlyph(one)} label={one.crashed ? 'crashed' : one.group} />}
            <Said text={name} />
          </button>
        )
      })}
    </div>
  )
}

/** Whether the tabs follow the baton; touching a tab turns it off, and this shows it. */
export function Follow(): JSX.Element {
  const on = following.value
  return (
    <button type="button" role="switch" aria-checked={on} class={`plain follow${on ? ' is-on' : ''}`} title="Follow the baton (f)" onClick={() => go({ agent: on ? agent.value : null, run: short(runId.value ?? '') }, 'replace')}>
      <span class="switch" aria-hidden="true" />
      Follow
    </button>
  )
}

/** What became of a program, without the screen that is told with it. */
const firstLine = (note: string): string => (note.split('\n')[0] ?? '').replace(/[;,]? last screen:$/, '')

function Bar({ name, view, screened }: { name: string; view: TerminalView | undefined; screened: boolean }): JSX.Element {
  const one = cast.value.find((known) => known.name === name)
  const past = at.value !== null
  const lives = view !== undefined && !past && view.state !== 'ended'
  const last = run.value && told(run.value, 'session_changed').findLast((event) => event.agent === name)
  // How it died, until it works again.
  const died = view && !past && one && one.session !== 'working' ? firstLine(view.note ?? '') : ''
  const resize = (by: number): void => {
    const next = Math.min(28, Math.max(7, size.get() + by))
    size.set(next)
    if (screen) screen.fontSize = next
    dispatchEvent(new Event('resize'))
  }
  const copy = async (): Promise<void> => {
    const text = screen?.text ?? ''
    await attempt(() => navigator.clipboard.writeText(text), 'Copied')
  }
  const restart = async (): Promise<void> => {
    const id = runId.value
    if (id) await attempt(() => api.restart(id, name), `${name} is started again`)
  }
  return (
    <div class="stage-bar">
      {one && (
        <p class={`stage-state${one.crashed || died ? ' is-crashed' : ''}`}>
          <strong>
            <Said text={name} />
          </strong>
          <span class="quiet">
            <Said text={(screened && one.session ? one.session : one.crashed ? 'crashed' : one.group).replaceAll('_', ' ')} />
          </span>
          <Said text={died || (one.crashed ? firstLine(last?.note ?? '') : one.doing)} of="stage-doing" />
        </p>
      )}
      {screened && (
        <div class="tools" role="toolbar" aria-label="Terminal">
          {lives && one?.crashed && (
            <button type="button" class="small" onClick={() => void restart()}>
              Restart
            </button>
          )}
          {lives && <button type="button" role="switch" aria-checked={control.value} class={`small${control.value ? ' is-on' : ''}`} onClick={() => (control.value = !control.value)} title="Your keys reach the agent">
            {control.value ? 'Give back' : 'Take control'}
          </button>}
          <button type="button" class="plain tool" title="Search (Ctrl Shift F)" aria-label="Search" onClick={() => (seeking.value = !seeking.value)}>
            <svg width="14" height="14" viewBox="0 0 14 14" aria-hidden="true">
              <path d="M6 1.500a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9Zm3.3 7.8 3.4 3.4" fill="none" stroke="currentColor" stroke-width="1.4" />
            </svg>
          </button>
          <button type="button" class="plain tool" title="Copy the selection, or everything" aria-label="Copy" onClick={() => void copy()}>
            <svg width="14" height="14" viewBox="0 0 14 14" aria-hidden="true">
              <path d="M4.5 4.500v-3h8v8h-3m-8-5h8v8h-8Z" fill="none" stroke="currentColor" stroke-width="1.3" />
            </svg>
          </button>
          <button type="button" class="plain tool" title="Smaller" aria-label="Smaller text" onClick={() => resize(-1)}>
            A−
          </button>
          <button type="button" class="plain tool" title="Larger" aria-label="Larger text" onClick={() => resize(1)}>
            A+
          </button>
          {lives && !one?.crashed && (
            <button type="button" class="plain tool tool-wide" title="End the program and start it again" onClick={() => void restart()}>
              Restart
            </button>
          )}
        </div>
      )}
    </div>
  )
}

function Terminal({ run: id, name, alive }: { run: string; name: string; alive: boolean }): JSX.Element {
  const box = useRef<HTMLDivElement>(null)
  const live = useRef<Live | null>(null)
  const [note, setNote] = useState('')
  // Keys are said to reach the agent when they do, not when that was asked for.
  const [reached, setReached] = useState(false)
  const writing = control.value
  // A terminal that is gone shows its last screen.
  const past = at.value !== null ? (run.value?.updatedAt ?? null) : alive ? null : Number.MAX_SAFE_INTEGER
  const [shown, setShown] = useState<Screen | null>(null)
  useEffect(() => {
    let gone = false
    void theScreen().then((made) => {
      if (gone || !box.current) return
      made.mount(box.current)
      made.clear()
      setShown(made)
    })
    return () => {
      gone = true
      control.value = false
      seeking.value = false
      screen?.host.remove()
    }
  }, [])
  useEffect(() => theme.subscribe((value) => screen && (screen.theme = value)), [])
  useEffect(() => {
    if (!shown) return
    if (past !== null) {
      shown.control = false
      let stale = false
      api.screenAt(id, name, past).then(
        (moment) => {
          if (stale) return
          shown.draw(moment.cols, moment.rows, moment.data)
          const empty = moment.text.length === 0 ? 'Nothing was to be seen here yet' : ''
          setNote(at.value === null ? 'The session is over; this is its last screen' : empty)
        },
        () => {
          if (!stale) setNote('Nothing was recorded at this moment')
        },
      )
      return () => {
        stale = true
      }
    }
    const fitted = (): void => {
      if (!writing || !box.current) return
      const fits = shown.fit(box.current.clientWidth - 24, box.current.clientHeight - 16)
      if (fits) live.current?.resize(fits.cols, fits.rows)
    }
    const session = new Live(id, name, writing, {
      snapshot(cols, rows, data) {
        shown.draw(cols, rows, data)
        setNote('')
        setReached(writing)
        fitted()
      },
      bytes: (data) => shown.write(data),
      resize: (cols, rows) => shown.resize(cols, rows),
      state: (state, said) => {
        // Its last screen, which is told as well, is the one above.
        const first = firstLine(said)
        setNote(state === 'working' || state === 'ready' ? '' : first || (state === 'crashed' ? 'The program died' : ''))
        void lookUpTerminals()
      },
      closed: (said) => {
        setReached(false)
        setNote(said)
      },
    })
    live.current = session
    shown.control = writing
    shown.onInput = (data) => session.input(data)
    if (writing) shown.focus()
    addEventListener('resize', fitted)
    return () => {
      removeEventListener('resize', fitted)
      session.close()
      setReached(false)
      live.current = null
    }
  }, [shown, writing, past, id, name])
  return (
    <div class={`terminal${writing ? ' is-yours' : ''}`}>
      {seeking.value && <Seek />}
      {reached && (
        <p class="terminal-control" role="status">
          Your keys reach {name}. <Key>Ctrl</Key> <Key>Esc</Key> gives control back.
        </p>
      )}
      <div
        class="terminal-box"
        ref={box}
        onKeyDownCapture={(event) => {
          if (event.key === 'Escape' && event.ctrlKey) {
            event.stopPropagation()
            control.value = false
            screen?.blur()
          }
        }}
      />
      {note && (
        <p class="terminal-note" role="status">
          <Said text={note} />
        </p>
      )}
    </div>
  )
}

function Seek(): JSX.Element {
  const field = useRef<HTMLInputElement>(null)
  useEffect(() => {
    field.current?.focus()
    return () => screen?.unfind()
  }, [])
  const seek = (back: boolean): void => {
    const text = field.current?.value ?? ''
    if (text && !screen?.find(text, back)) say(`“${text}” is not in this terminal`)
  }
  return (
    <form
      class="seek"
      role="search"
      onSubmit={(event) => {
        event.preventDefault()
        seek(false)
      }}
      onKeyDown={(event) => {
        if (event.key === 'Escape') seeking.value = false
        if (event.key === 'Enter' && event.shiftKey) {
          event.preventDefault()
          seek(true)
        }
      }}
    >
      <input ref={field} type="search" placeholder="Search the terminal" aria-label="Search the terminal" />
      <Key>Enter</Key> <span class="quiet">next</span>
    </form>
  )
}

export function toggleSeek(): void {
  if (screen) seeking.value = !seeking.value
}
