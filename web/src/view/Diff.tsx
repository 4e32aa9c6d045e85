// What a set does to its files, line by line: one under the other or side by side, with what was said about each line.

import type { ComponentChildren, JSX } from 'preact'
import { useMemo, useState } from 'preact/hooks'
import type { Change, Comment, FileDiff } from '../api/types'
import { standing } from '../state/changes'
import { type Row, lineOf, linesOf, pairs, rows } from '../state/diff'
import { isOver } from '../state/run'
import { clock as time } from '../state/words'
import { act, entries } from '../app/store'
import { remark } from '../api/client'
import { Said } from './parts'

/** Longer diffs are folded until somebody wants them. */
const LONG = 600

const WORDS = { create: 'new', modify: 'changed', delete: 'deleted', rename: 'renamed' } as const

export function Diff({ change, diff, split, quiet }: { change: Change; diff: FileDiff[]; split: boolean; quiet?: boolean }): JSX.Element {
  return (
    <div class={`diff${split ? ' is-split' : ''}`}>
      {diff.map((file) => (
        <File key={file.file} change={change} file={file} split={split} quiet={quiet ?? false} />
      ))}
    </div>
  )
}

function File({ change, file, split, quiet }: { change: Change; file: FileDiff; split: boolean; quiet: boolean }): JSX.Element {
  const long = linesOf(file) > LONG
  const [open, setOpen] = useState(!long)
  return (
    <section class="file" aria-label={file.file} id={`file-${file.file}`}>
      <header class="file-head">
        <h3 class="mono">
          {file.from && (
            <>
              <Said text={file.from} of="quiet" /> <span class="quiet">→</span>{' '}
            </>
          )}
          <Said text={file.file} />
        </h3>
        <span class={`file-word is-${file.action}`}>{WORDS[file.action]}</span>
        {file.mode && <span class="quiet mono">{file.mode.map((one) => (one & 0o777).toString(8)).join(' → ')}</span>}
        <span class="file-count figures">
          {file.added > 0 && <span class="is-come">+{file.added}</span>} {file.removed > 0 && <span class="is-gone">−{file.removed}</span>}
        </span>
      </header>
      {file.unshown && <p class="file-none quiet">{file.unshown}</p>}
      {!file.unshown && file.hunks.length === 0 && <p class="file-none quiet">{file.action === 'rename' ? 'Its content stays as it is.' : 'Nothing in it differs line by line.'}</p>}
      {!open ? (
        <p class="file-none">
          <button type="button" class="small" onClick={() => setOpen(true)}>
            Show {linesOf(file)} lines
          </button>
        </p>
      ) : (
        <Lines change={change} file={file} split={split} quiet={quiet} />
      )}
    </section>
  )
}

/** Moves the focus among the places for remarks. */
function walk(event: KeyboardEvent): void {
  const by = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0
  const here = event.target
  if (!by || !(here instanceof HTMLElement) || !here.classList.contains('line-say')) return
  const all = [...document.querySelectorAll<HTMLElement>('.line-say')]
  const next = all[all.indexOf(here) + by]
  if (!next) return
  event.preventDefault()
  next.focus()
}

function Lines({ change, file, split, quiet }: { change: Change; file: FileDiff; split: boolean; quiet: boolean }): JSX.Element {
  const [saying, setSaying] = useState<number | null>(null)
  const hunks = useMemo(() => file.hunks.map((hunk) => rows(file.file, hunk)), [file])
  const said = (line: number | null): Comment[] =>
    line === null ? [] : (change.comments ?? []).filter((one) => one.file === file.file && one.line === line && one.revision === change.revision)
  let first = true
  const below = (row: Row | null): JSX.Element | null => {
    const line = row && lineOf(file, row)
    if (!row || line === null || (row.sign === '-' && file.action !== 'delete')) return null
    const list = said(line)
    if (list.length === 0 && saying !== line) return null
    return (
      <div class="line-below">
        {list.map((one) => (
          <Remark key={one.at + one.text} one={one} />
        ))}
        {saying === line && <Say change={change} file={file.file} line={line} close={() => setSaying(null)} />}
      </div>
    )
  }
  const say = (row: Row | null): JSX.Element => {
    const line = row && lineOf(file, row)
    const number = row?.after ?? row?.before ?? ''
    if (quiet || !row || line === null) return <span class="line-number">{number}</span>
    const stop = first
    first = false
    return (
      <button type="button" class="plain line-number line-say" tabIndex={stop ? 0 : -1} aria-label={`Say something about line ${line}`} aria-expanded={saying === line} onClick={() => setSaying(saying === line ? null : line)}>
        {number}
      </button>
    )
  }
  return (
    <div class="lines mono" onKeyDown={walk} role="group" aria-label={`Lines of ${file.file}`}>
      {hunks.map((list, index) => (
        <div class="hunk" key={index}>
          {index > 0 && <div class="hunk-gap" aria-hidden="true" />}
          {split
            ? pairs(list).map(([before, after], at) => (
                <div class="pair-row" key={at}>
                  <div class={`line is-${tone(before, '-')}`}>
                    {file.action === 'delete' ? say(before) : <span class="line-number">{before?.before ?? ''}</span>}
                    <Code row={before} sign={before?.sign === '-'} />
                  </div>
                  <div class={`line is-${tone(after, '+')}`}>
                    {file.action === 'delete' ? <span class="line-number" /> : say(after)}
                    <Code row={after} sign={after?.sign === '+'} />
                  </div>
                  {below(file.action === 'delete' ? before : after)}
                </div>
              ))
            : list.map((row, at) => (
                <div key={at}>
                  <div class={`line is-${row.sign === '+' ? 'come' : row.sign === '-' ? 'gone' : 'same'}`}>
                    <span class="line-number line-before">{row.before ?? ''}</span>
                    {row.sign === '-' && file.action !== 'delete' ? <span class="line-number" /> : say(row)}
                    <Code row={row} sign={row.sign !== ' '} />
                  </div>
                  {below(row)}
                </div>
              ))}
        </div>
      ))}
    </div>
  )
}

function tone(row: Row | null, sign: '+' | '-'): string {
  if (!row) return 'none'
  return row.sign === sign ? (sign === '+' ? 'come' : 'gone') : 'same'
}

function Code({ row, sign }: { row: Row | null; sign: boolean }): JSX.Element {
  if (!row) return <code class="line-code" />
  return (
    <code class="line-code">
      <span class="line-sign">{sign ? row.sign : ' '}</span>
      {row.pieces.map((piece, index) => (
        <Said key={index} text={piece.text} of={piece.tone ? `tone-${piece.tone}` : undefined} />
      ))}
      {row.unended && <span class="quiet"> (no end of line)</span>}
    </code>
  )
}

export function Remark({ one, children }: { one: Comment; children?: ComponentChildren }): JSX.Element {
  return (
    <article class="remark">
      <p class="quiet">
        <Said text={one.by} of="strong" /> <time class="figures">{time(Date.parse(one.at))}</time> {children}
      </p>
      <p class="prose">
        <Said text={one.text} />
      </p>
    </article>
  )
}

/** The agent that gets to hear a remark: only while its run goes on, and the project does not have the set. */
function heardBy(change: Change): string | null {
  const run = entries.value.find((one) => one.id === change.author.run)
  return run && !isOver(run.word) && standing(change) !== 'in' ? (change.author.agent ?? null) : null
}

export function Say({ change, file, line, close }: { change: Change; file: string | null; line: number | null; close: () => void }): JSX.Element {
  const [text, setText] = useState('')
  const who = heardBy(change)
  const send = (): void => {
    const said = text.trim()
    if (!said) return
    void act(change.id, 'commenting', () => remark(change.id, said, file, line), who ? `${who} hears it` : 'Kept with the change; no agent is there to hear it').then((taken) => {
      if (taken) close()
    })
  }
  return (
    <form
      class="say"
      onSubmit={(event) => {
        event.preventDefault()
        send()
      }}
    >
      <textarea
        rows={2}
        // The form is there because somebody asked for it.
        ref={(box) => box?.focus()}
        value={text}
        aria-label={line === null ? 'Say something about the change' : `About line ${line}`}
        placeholder={who ? `What should ${who} do differently?` : 'What do you think of it?'}
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
            event.preventDefault()
            send()
          }
          if (event.key === 'Escape') {
            event.stopPropagation()
            close()
          }
        }}
      />
      <div class="say-acts">
        <button type="submit" class="small" disabled={!text.trim()}>
          Comment
        </button>
        <button type="button" class="plain small" onClick={close}>
          Cancel
        </button>
      </div>
    </form>
  )
}
