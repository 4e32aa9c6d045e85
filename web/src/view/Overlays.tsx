// What lies over the page: the palette, the keys, the start of a run, and short notices.

import type { JSX } from 'preact'
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { start } from '../api/client'
import { commands, fitting } from '../app/commands'
import { KEYS } from '../app/keys'
import { attempt, goRun, notice, overlay } from '../app/store'
import { Dialog, Key, Said } from './parts'

const MOST = 60

export function Overlays(): JSX.Element {
  const close = (): void => {
    overlay.value = ''
  }
  return (
    <>
      {overlay.value === 'palette' && <Palette close={close} />}
      {overlay.value === 'keys' && <Keys close={close} />}
      {overlay.value === 'start' && <Start close={close} />}
      <Notice />
    </>
  )
}

function Palette({ close }: { close: () => void }): JSX.Element {
  const [wanted, setWanted] = useState('')
  const [index, setIndex] = useState(0)
  const all = useMemo(commands, [])
  const list = useMemo(() => fitting(all, wanted).slice(0, MOST), [all, wanted])
  const box = useRef<HTMLUListElement>(null)
  useEffect(() => {
    box.current?.children[index]?.scrollIntoView({ block: 'nearest' })
  }, [index, list])
  const act = (at: number): void => {
    const command = list[at]
    if (!command) return
    close()
    command.run()
  }
  return (
    <Dialog label="Commands" of="palette" close={close}>
      <input
        type="text"
        autofocus
        role="combobox"
        aria-expanded="true"
        aria-controls="palette-list"
        aria-activedescendant={list.length ? `command-${index}` : undefined}
        aria-label="What do you want to do or see?"
        placeholder="A command, an agent, a handoff, a run"
        value={wanted}
        onInput={(event) => {
          setWanted(event.currentTarget.value)
          setIndex(0)
        }}
        onKeyDown={(event) => {
          if (event.key === 'ArrowDown') setIndex(Math.min(list.length - 1, index + 1))
          else if (event.key === 'ArrowUp') setIndex(Math.max(0, index - 1))
          else if (event.key === 'Enter') act(index)
          else return
          event.preventDefault()
        }}
      />
      <ul id="palette-list" role="listbox" aria-label="Commands" ref={box}>
        {list.map((command, at) => (
          <li key={`${command.kind}${command.name}${at}`} id={`command-${at}`} role="option" aria-selected={at === index} class={at === index ? 'is-here' : ''} onPointerMove={() => setIndex(at)} onClick={() => act(at)}>
            <Said text={command.name} of="palette-name" />
            <Said text={command.kind} of="quiet palette-kind" />
            {command.keys && <Key>{command.keys}</Key>}
          </li>
        ))}
      </ul>
      {list.length === 0 && <p class="quiet palette-none">Nothing is called that. Try an agent’s name, or h and a number.</p>}
    </Dialog>
  )
}

function Keys({ close }: { close: () => void }): JSX.Element {
  return (
    <Dialog label="Keys" of="keys" close={close}>
      <header class="dialog-head">
        <h2>Keys</h2>
        <button type="button" class="small" onClick={close} autofocus>
          Close
        </button>
      </header>
      <dl>
        {KEYS.map(([keys, what]) => (
          <div key={keys}>
            <dt>
              {keys.split(' ').map((key, index) => (key === '…' ? <span key={index}>…</span> : <Key key={index}>{key}</Key>))}
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  )
}

function Start({ close }: { close: () => void }): JSX.Element {
  const [text, setText] = useState('')
  const [busy, setBusy] = useState(false)
  const submit = async (): Promise<void> => {
    if (!text.trim() || busy) return
    setBusy(true)
    const begun = await attempt(() => start(text.trim()))
    setBusy(false)
    if (!begun) return
    close()
    goRun(begun.run)
  }
  return (
    <Dialog label="Start a run" of="start" close={close}>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          void submit()
        }}
      >
        <label for="request">What should the agents do?</label>
        <textarea
          id="request"
          rows={4}
          autofocus
          value={text}
          placeholder="Add JWT login"
          onInput={(event) => setText(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) void submit()
          }}
        />
        <footer>
          <span class="quiet">
            The same as <code>stafette run</code>; budget and agents are those of stafette.toml.
          </span>
          <button type="button" class="small" onClick={close}>
            Not now
          </button>
          <button type="submit" class="small is-main" disabled={busy || !text.trim()}>
            {busy ? 'Starting …' : 'Start'}
          </button>
        </footer>
      </form>
    </Dialog>
  )
}

function Notice(): JSX.Element {
  const shown = notice.value
  useEffect(() => {
    if (!shown || shown.bad) return
    const timer = setTimeout(() => (notice.value = null), 4000)
    return () => clearTimeout(timer)
  }, [shown])
  return (
    <div class="notices" role="status" aria-live="polite">
      {shown && (
        <p class={shown.bad ? 'notice is-bad' : 'notice'}>
          <Said text={shown.text} />
          <button type="button" class="plain tool" aria-label="Close" onClick={() => (notice.value = null)}>
            ×
          </button>
        </p>
      )}
    </div>
  )
}
