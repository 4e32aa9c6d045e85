// The inbox: one question at a time has the keys; the answer leads to the next one.

import type { JSX } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { type Item, batches, fallback } from '../state/inbox'
import { words } from '../state/run'
import { moment, span } from '../state/words'
import { allow, permission } from '../app/notify'
import { at, clock, go, goRun, items, place, respond, sending, short } from '../app/store'
import { Empty, Glyph, Key, Said } from './parts'

/** The question that has the keys. */
export function chosen(): Item | null {
  const list = items.value
  return list.find((item) => item.id === place.value.question) ?? list[0] ?? null
}

/** Moves to another question. */
export function choose(by: number): void {
  const list = items.value
  const index = list.findIndex((item) => item.id === chosen()?.id)
  const next = list[Math.min(list.length - 1, Math.max(0, index + by))]
  if (next) go({ question: next.id }, 'replace')
}

/** Answers with option number `index`, and goes on to the next question. */
export async function pick(index: number): Promise<void> {
  const item = chosen()
  const option = item?.question.options[index]
  if (item && option !== undefined) await give(item, option)
}

async function give(item: Item, text: string, values: Record<string, unknown> = {}): Promise<void> {
  if (at.value !== null) return
  const list = items.value
  const after = list[list.findIndex((one) => one.id === item.id) + 1] ?? list.find((one) => one.id !== item.id)
  if ((await respond(item, text, values)) && place.value.view === 'inbox') go({ question: after?.id ?? null }, 'replace')
}

export function Inbox(): JSX.Element {
  const list = items.value
  const current = chosen()
  const together = batches(list).filter((group) => group.length > 1)
  return (
    <main class="inbox" id="main">
      <header class="inbox-head">
        <h1>Needs you</h1>
        <span class="quiet figures">{list.length === 0 ? '' : list.length === 1 ? 'one question' : `${list.length} questions`}</span>
        {permission.value === 'default' && (
          <button type="button" class="small" onClick={() => void allow()}>
            Tell me in the background
          </button>
        )}
      </header>
      {at.value !== null && <p class="inbox-past">This is how it was at the moment that you look at; it cannot be answered there.</p>}
      {list.length === 0 && (
        <Empty title="Nothing needs you" command="stafette inbox">
          When an agent has to ask, the question is here, and the browser can tell you. In a terminal the same list is
        </Empty>
      )}
      {together.map((group) => (
        <Together key={group[0]!.batch} group={group} />
      ))}
      <ol class="inbox-list">
        {list.map((item) => (
          <Row key={item.id} item={item} open={item.id === current?.id} />
        ))}
      </ol>
    </main>
  )
}

/** The same question of several runs, answered at once. */
function Together({ group }: { group: Item[] }): JSX.Element {
  const [first] = group
  return (
    <section class="together" aria-label="The same question several times">
      <p>
        {group.length} runs ask the same: <Said text={first!.title} of="strong" />
      </p>
      <div class="options">
        {first!.question.options.map((option) => (
          <button type="button" class="option" key={option} onClick={() => void Promise.all(group.map((item) => respond(item, option)))}>
            <Said text={option} /> <span class="quiet">for all {group.length}</span>
          </button>
        ))}
      </div>
    </section>
  )
}

function Row({ item, open }: { item: Item; open: boolean }): JSX.Element {
  const box = useRef<HTMLLIElement>(null)
  const [text, setText] = useState('')
  const busy = sending.value.has(item.id)
  const past = at.value !== null
  const left = item.until - clock.value
  const { question } = item
  useEffect(() => {
    if (!open) return
    box.current?.scrollIntoView({ block: 'nearest' })
  }, [open])
  const submit = (): void => {
    const said = text.trim()
    if (said) void give(item, said)
  }
  return (
    <li ref={box} class={`question${open ? ' is-open' : ''}`} aria-current={open ? 'true' : undefined}>
      <button type="button" class="plain question-title" aria-expanded={open} onClick={() => go({ question: item.id }, 'replace')}>
        <Glyph name="needs you" />
        <Said text={item.title} of="question-text" />
      </button>
      <p class="question-from quiet">
        <Said text={item.asker} of="strong" />
        <button type="button" class="link" onClick={() => goRun(item.run)} title={item.request}>
          <Said text={item.request} />
        </button>
        <span class="figures">{span(clock.value - item.since)} ago</span>
        {item.priority !== 'medium' && <span class={`priority is-${item.priority}`}>{item.priority}</span>}
        {!question.blocking && <span>nobody waits for it</span>}
      </p>
      {open && (
        <div class="question-body">
          {typeof question.about === 'object' && 'change' in question.about && (
            <p class="question-look">
              <button type="button" class="small" onClick={() => go({ view: 'changes', change: (question.about as { change: string }).change, handoff: null })}>
                Look at {question.about.change}
              </button>
            </p>
          )}
          {(question.reason === 'decision_approval' || question.reason === 'plan_approval') && (
            <p class="question-look">
              <button type="button" class="small" onClick={() => go({ view: 'knowledge', handoff: null, spot: null, ...(question.reason === 'plan_approval' ? { part: 'calendar', about: null } : { part: 'decisions', about: `${item.run}.${item.handoff}` }) })}>
                {question.reason === 'plan_approval' ? 'Look at the week' : 'Look at the table'}
              </button>
            </p>
          )}
          {question.options.length > 0 && (
            <div class="options" role="group" aria-label="Answers">
              {question.options.map((option, index) => (
                <button type="button" class="option" key={option} disabled={busy || past} onClick={() => void give(item, option)}>
                  {index < 9 && <Key>{index + 1}</Key>}
                  <Said text={option} />
                  {option === question.default && <span class="option-default">default</span>}
                </button>
              ))}
            </div>
          )}
          <form
            class="answer"
            onSubmit={(event) => {
              event.preventDefault()
              submit()
            }}
          >
            <textarea
              rows={1}
              value={text}
              disabled={busy || past}
              aria-label="Answer in your own words"
              placeholder={item.missing.length === 1 ? `${item.missing[0]!.key}: ${item.missing[0]!.description || 'your answer'}` : 'Answer in your own words'}
              onInput={(event) => setText(event.currentTarget.value)}
              onKeyDown={(event) => {
                if (event.key === 'Enter' && !event.shiftKey) {
                  event.preventDefault()
                  submit()
                }
              }}
            />
            <button type="submit" class="small" disabled={busy || past || !text.trim()}>
              {busy ? 'Sending …' : 'Answer'}
            </button>
          </form>
          <p class="question-deadline quiet">
            {left > 0 ? (
              <>
                By <time class="figures">{moment(item.until, clock.value)}</time>, in <span class="figures">{span(left)}</span>; then {fallback(item)}
              </>
            ) : (
              <>Its time is up: {fallback(item)}</>
            )}
          </p>
          {(question.context || item.missing.length > 1) && (
            <details class="question-context" open={question.context.length < 400}>
              <summary>Context</summary>
              {question.context && (
                <p class="prose">
                  <Said text={question.context} />
                </p>
              )}
              {item.missing.length > 1 && (
                <ul class="prose">
                  {item.missing.map((one) => (
                    <li key={one.key}>
                      <code>
                        <Said text={one.key} />
                      </code>{' '}
                      <Said text={one.description} />
                    </li>
                  ))}
                </ul>
              )}
            </details>
          )}
          <p class="question-more quiet">
            {question.reason && <span>{words(question.reason)}</span>}
            <button type="button" class="link" onClick={() => go({ handoff: item.handoff, run: short(item.run), view: 'terminal', agent: null })}>
              {item.handoff} in its run
            </button>
            <code class="mono">
              stafette answer {short(item.run)}:{item.handoff} …
            </code>
          </p>
        </div>
      )}
    </li>
  )
}
