// Sets of edits: what waits, what they do line by line, and a person's word about them.

import type { JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import * as api from '../api/client'
import type { Change, Report } from '../api/types'
import { STANDINGS, acts, author, gateWords, standing, waits } from '../state/changes'
import { moment } from '../state/words'
import { act, acting, change, changes, diffOf, go, goRun, lookUpDiff, now, place, say, short } from '../app/store'
import { Diff, Remark, Say } from './Diff'
import { Empty, Glyph, type GlyphName, Key, Said, usePhone } from './parts'

export function changeGlyph(one: Change): GlyphName {
  if (waits(one)) return 'needs you'
  const glyphs = { pending: 'idle', approved: 'working', refused: 'refused', applied: 'done', validated: 'succeeded', failed: 'failed', undone: 'cancelled' } as const
  return glyphs[one.status]
}

export function Changes(): JSX.Element {
  const phone = usePhone()
  const list = changes.value
  if (list.length === 0) {
    return (
      <main class="changes is-empty" id="main">
        <Empty title="Nothing was proposed" command="stafette changes propose FILE">
          What agents want to change in your files is here before it happens: line by line, to be talked about, allowed, applied and undone. In a terminal it is
        </Empty>
      </main>
    )
  }
  const lost = place.value.change !== null && !list.some((one) => one.id === place.value.change)
  const one = phone && place.value.change === null ? null : change.value
  return (
    <main class="changes" id="main">
      {(!phone || !one) && <Sets list={list} here={one?.id ?? ''} />}
      {lost ? (
        <Empty title={`There is no change ${place.value.change}`} command="stafette changes">
          The list of all of them is also in
        </Empty>
      ) : (
        one && <Whole key={one.id} one={one} phone={phone} />
      )}
    </main>
  )
}

function Sets({ list, here }: { list: Change[]; here: string }): JSX.Element {
  return (
    <nav class="sets" aria-label="Changes">
      <h1>Changes</h1>
      {STANDINGS.map(([name, title]) => {
        const group = list.filter((one) => standing(one) === name)
        if (group.length === 0) return null
        return (
          <section key={name}>
            <h2 class={name === 'needs you' ? 'is-yours' : ''}>
              {title} <span class="quiet figures">{group.length}</span>
            </h2>
            <ul>
              {group.map((one) => (
                <li key={one.id}>
                  <button type="button" class={`plain set${one.id === here ? ' is-here' : ''}`} aria-current={one.id === here ? 'true' : undefined} onClick={() => go({ change: one.id })}>
                    <Glyph name={changeGlyph(one)} label={one.status} />
                    <span class="mono quiet">{one.id}</span>
                    <Said text={one.reason.split('\n')[0] || 'No reason given'} of="set-reason" />
                    <span class="set-more quiet">
                      <Said text={author(one)} /> · {one.edits.length === 1 ? '1 file' : `${one.edits.length} files`}
                      {one.revision > 1 && ` · revision ${one.revision}`}
                    </span>
                  </button>
                </li>
              ))}
            </ul>
          </section>
        )
      })}
    </nav>
  )
}

/** Tells what came of an attempt. */
function told(report: Report | null, done: string): void {
  if (!report) return
  const back = report.rolled_back[0]
  const left = report.left[0]
  if (back) say(`${back.id} was taken back: ${back.why}`, true)
  else if (left) say(`${left.id} was left: ${left.why}`, true)
  else say(done)
}

/** What the reader has in front of them: a set that was revised since is not what they mean. */
const seen = (one: Change): string => `${one.id}@${one.revision}`
export const approve = (one: Change): Promise<unknown> => act(one.id, 'approving', () => api.approve(seen(one)), `${one.id} may be applied`)
export const refuse = (one: Change): Promise<unknown> => act(one.id, 'refusing', () => api.refuse(seen(one)), `${one.id} is refused`)
export const apply = (one: Change): Promise<void> => act(one.id, 'applying', () => api.apply(seen(one))).then((report) => told(report, `${one.id} is in the project`))
export const undo = (one: Change, withLater = false): Promise<void> =>
  act(one.id, 'undoing', () => api.undo(one.id, withLater)).then((report) => told(report, `${one.id} is out of the project again`))

/** The next set, by the keys. */
export function stepChange(by: number): void {
  const list = changes.value
  const index = list.findIndex((one) => one.id === change.value?.id)
  const next = list[Math.min(list.length - 1, Math.max(0, index + by))]
  if (next) go({ change: next.id }, 'replace')
}

/** Does what a key asks for, if it can be done now. */
export function actByKey(what: 'approve' | 'refuse' | 'apply' | 'undo'): void {
  const one = change.value
  if (!one || !acts(one)[what]) return
  void { approve, refuse, apply, undo: (it: Change) => undo(it) }[what](one)
}

function Whole({ one, phone }: { one: Change; phone: boolean }): JSX.Element {
  const [saying, setSaying] = useState(false)
  const split = place.value.split && !phone
  const diff = diffOf(one)
  const can = acts(one)
  const busy = acting.value.get(one.id)
  useEffect(() => void lookUpDiff(one), [one.id, one.revision])
  // What is about a line of this revision stands at that line.
  const general = (one.comments ?? []).filter((it) => it.revision !== one.revision || it.file === undefined || it.line === undefined)
  const button = (name: keyof typeof can, title: string, key: string, run: () => void, mine = false): JSX.Element | null =>
    can[name] ? (
      <button type="button" class={`act${mine ? ' is-yours' : ''}`} disabled={busy !== undefined} onClick={run} title={`${title} (${key})`}>
        {title} <Key>{key}</Key>
      </button>
    ) : null
  return (
    <article class="change" aria-label={`Change ${one.id}`}>
      <header class="change-head">
        {phone && (
          <button type="button" class="plain link" onClick={() => go({ change: null })}>
            All changes
          </button>
        )}
        <h1>
          <span class="mono quiet">{one.id}</span> <Said text={one.reason.split('\n')[0] || 'No reason given'} />
        </h1>
        <p class={`change-state is-${standing(one).replace(' ', '-')}`} aria-live="polite">
          <Glyph name={changeGlyph(one)} />
          <strong>{busy ? `${busy} …` : waits(one) ? 'needs your yes' : one.status}</strong>
          <span class="quiet">
            by <Said text={author(one)} />
            {one.author.run && (
              <>
                {' '}
                in{' '}
                <button type="button" class="link mono" onClick={() => (one.author.handoff ? go({ view: 'terminal', agent: null, run: short(one.author.run!), handoff: one.author.handoff, change: null }) : goRun(one.author.run!))}>
                  {one.author.handoff ?? short(one.author.run)}
                </button>
              </>
            )}
            , <time class="figures">{moment(Date.parse(one.proposed_at), now.value)}</time>
            {one.revision > 1 && `, revision ${one.revision}`}
            {one.approved_by && (
              <>
                , allowed by <Said text={one.approved_by} />
              </>
            )}
            {one.commit && (
              <>
                , commit <span class="mono">{one.commit.slice(0, 8)}</span>
              </>
            )}
          </span>
        </p>
        {one.gates.length > 0 && (one.status === 'pending' || one.status === 'approved') && (
          <ul class="gates">
            {one.gates.slice(0, 12).map((gate) => (
              <li key={gate.kind + gate.file}>
                It <Said text={gateWords(gate)} />
              </li>
            ))}
            {one.gates.length > 12 && <li>and {one.gates.length - 12} more</li>}
          </ul>
        )}
        {one.failure && one.status === 'failed' && (
          <pre class="change-failure">
            <Said text={one.failure} />
          </pre>
        )}
        <div class="change-acts" role="group" aria-label="What to do about it">
          {button('approve', 'Approve', 'y', () => void approve(one), waits(one))}
          {button('apply', 'Apply', 'p', () => void apply(one))}
          {button('refuse', 'Refuse', 'x', () => void refuse(one))}
          {button('undo', 'Undo', 'u', () => void undo(one))}
          <button type="button" class="act say-all" aria-expanded={saying} onClick={() => setSaying(!saying)}>
            Comment <Key>m</Key>
          </button>
          {!phone && (
            <button type="button" class="act act-split" aria-pressed={split} onClick={() => go({ split: !split, change: one.id }, 'replace')}>
              Side by side <Key>s</Key>
            </button>
          )}
        </div>
        {saying && <Say change={one} file={null} line={null} close={() => setSaying(false)} />}
      </header>
      {general.length > 0 && (
        <section class="talk" aria-label="What was said">
          {general.map((it) => (
            <Remark key={it.at + it.text} one={it}>
              {it.file && (
                <span class="mono">
                  {it.file}
                  {it.line ? `:${it.line}` : ''}
                </span>
              )}
              {it.revision !== one.revision && <span>, on revision {it.revision}</span>}
            </Remark>
          ))}
        </section>
      )}
      {diff ? <Diff change={one} diff={diff} split={split} /> : <div class="waiting" role="status" aria-label="Reading the change" />}
    </article>
  )
}
