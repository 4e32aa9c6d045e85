// The relay as a whole: which generation this run is, what it may spend and has spent, and a word for the next one.

import type { JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import * as api from '../api/client'
import type { Lineage } from '../api/team'
import type { Account } from '../api/types'
import { type Generation, count, generations, neighbours } from '../state/lineage'
import { type RunState, words } from '../state/run'
import { clock as time, cost, counted, money, span, took, tokens } from '../state/words'
import { at, attempt, clock, go, known, load, now, run, runId, say, short } from '../app/store'
import { Line } from './Numbers'
import { Empty, Glyph, Said } from './parts'

export function Relay(): JSX.Element {
  const state = run.value
  if (!state) return <Empty title="No run yet" command={'stafette run "Add JWT login"'} />
  return (
    <div class="numbers relay" tabIndex={0} role="region" aria-label="Relay">
      <Generations state={state} />
      <Budgets state={state} />
      <Notes state={state} />
    </div>
  )
}

const goTo = (id: string): void => go({ run: short(id), handoff: null, at: null, agent: null, topic: null })

/** To the generation before or after the one that is shown. */
export function stepGeneration(by: -1 | 1): void {
  const state = run.value
  if (!state) return
  const { before, after } = neighbours(state, known.value)
  const there = by < 0 ? before : after
  if (there) goTo(there)
  else say(by < 0 ? 'There is no generation before this one' : 'No generation has followed this one')
}

function Generations({ state }: { state: RunState }): JSX.Element {
  const { lineage } = state
  const line = generations(state, known.value)
  const last = line.at(-1)?.run
  // Those that are over are not read before somebody looks at them.
  useEffect(() => {
    if (last && !known.peek().has(last)) void load(last).catch(() => undefined)
  }, [last])
  if (!lineage) {
    return (
      <section>
        <h2>Generations</h2>
        <p class="quiet">This run stands alone. A team that goes on by itself hands over from run to run, with a briefing, for as long as money, limits and people allow:</p>
        <p class="relay-command">
          <code class="command">stafette run "…" --continuous --max-runs 10 --max-cost 5usd</code>
        </p>
      </section>
    )
  }
  const series = count(lineage)
  const { before, after } = neighbours(state, known.value)
  return (
    <section>
      <div class="relay-head">
        <h2>
          Generation {lineage.number} <span class="quiet">{[series && (series.now === lineage.number ? `of at most ${series.most}` : `${series.now} of at most ${series.most} in this series`), words(lineage.phase), lineage.plan?.check_in_every ? `you are asked every ${lineage.plan.check_in_every}` : ''].filter(Boolean).join(' · ')}</span>
        </h2>
        {before && (
          <button type="button" class="small" title="The generation before (<)" onClick={() => goTo(before)}>
            ← Generation {lineage.number - 1}
          </button>
        )}
        {after && (
          <button type="button" class="small" title="The generation after (>)" onClick={() => goTo(after)}>
            Generation {lineage.number + 1} →
          </button>
        )}
      </div>
      <ol class="generations">
        {line.map((one) => (
          <Row key={one.number} one={one} />
        ))}
      </ol>
      <HandedOver lineage={lineage} />
    </section>
  )
}

function Row({ one }: { one: Generation }): JSX.Element {
  const content = (
    <>
      <span class="figures strong">{one.number}</span>
      <Said text={one.about} of="generation-about" />
      <span class="quiet">{words(one.phase)}</span>
      <span class="figures generation-cost">{one.cost === null ? '–' : money(one.cost)}</span>
    </>
  )
  const there = one.run
  return (
    <li class={`is-${one.place}`} aria-current={one.place === 'here' ? 'true' : undefined}>
      {there && one.place !== 'here' ? (
        <button type="button" class="plain generation" onClick={() => goTo(there)}>
          {content}
        </button>
      ) : (
        <div class="generation">{content}</div>
      )}
    </li>
  )
}

function HandedOver({ lineage }: { lineage: Lineage }): JSX.Element {
  const over = lineage.handed_over
  if (!over) return <p class="quiet">What comes next is decided by rule when this generation is over, and told here with its reason.</p>
  const wait = (over.next?.not_before ?? 0) - now.value
  return (
    <dl class="facts relay-over">
      <div>
        <dt>Handed over</dt>
        <dd>
          <Said text={over.reason} />
        </dd>
      </div>
      <div>
        <dt>Next action</dt>
        <dd>
          <span class="strong">{words(over.action)}</span>
          {over.target_agent && (
            <>
              {', with '}
              <Said text={over.target_agent} />
            </>
          )}
          {over.phase !== lineage.phase && <span class="quiet"> · {words(over.phase)}</span>}
        </dd>
      </div>
      {over.topic && (
        <div>
          <dt>Topic</dt>
          <dd>
            <Said text={over.topic} />
          </dd>
        </div>
      )}
      <div>
        <dt>{over.next ? 'Follows' : 'None follows'}</dt>
        <dd>
          <Said text={over.why} />
          {over.next?.check_in && ', after you have said yes'}
          {wait > 0 && <span class="quiet figures"> · in {span(wait + 999)}</span>}
        </dd>
      </div>
    </dl>
  )
}

function Budgets({ state }: { state: RunState }): JSX.Element {
  const { purse, lineage } = state
  const { limit, spent, reserved, reached } = purse
  const end = state.stage === 'finished' ? state.updatedAt : Math.max(clock.value, state.updatedAt)
  const series = lineage && count(lineage)
  const names = Object.keys(state.workflow.agents).sort((a, b) => (purse.agents[b]?.spent.money ?? 0) - (purse.agents[a]?.spent.money ?? 0) || a.localeCompare(b))
  const earlier = Object.keys(lineage?.agents ?? {}).length > 0
  return (
    <>
      <section class="budget" aria-label="Budget">
        <h2>Budget</h2>
        <Line name="Money" used={spent.money} held={reserved.money} limit={limit.money} say={money} known={cost(spent)} />
        <Line name="Tokens" used={spent.tokens} held={reserved.tokens} limit={limit.tokens} say={tokens} known={counted(spent)} />
        <Line name="Handoffs" used={purse.handoffs} held={0} limit={limit.handoffs} say={String} />
        <Line name="Time" used={end - state.createdAt} held={0} limit={limit.time} say={span} />
        {lineage?.plan && <h3 class="quiet">All generations up to this one</h3>}
        {lineage?.plan && <Line name="Cost" used={lineage.spent + spent.money - lineage.plan.spent} held={reserved.money} limit={lineage.plan.max_cost} say={money} />}
        {series && <Line name="Runs" used={series.now} held={0} limit={series.most} say={String} />}
        {reached && (
          <p class="relay-reached">
            <Glyph name="alert" label="The budget is reached" /> <Said text={reached.why} />
          </p>
        )}
      </section>
      <section>
        <h2>By agent</h2>
        <div class="table-scroll" tabIndex={0} role="region" aria-label="Budget of each agent">
          <table class="shares">
            <thead>
              <tr>
                <th scope="col">Agent</th>
                <th scope="col">Money</th>
                <th scope="col">Tokens</th>
                <th scope="col">Handoffs</th>
                <th scope="col">At work</th>
                {earlier && <th scope="col">Earlier</th>}
              </tr>
            </thead>
            <tbody>
              {names.map((name) => (
                <AgentRow key={name} name={name} state={state} account={purse.agents[name]} earlier={earlier} />
              ))}
            </tbody>
          </table>
        </div>
        {!Object.values(state.workflow.agents).some((one) => one.budget) && (
          <p class="quiet">
            No agent has a budget of its own. <code>budget = {'{ money = "1usd" }'}</code> under an agent in stafette.toml gives it one.
          </p>
        )}
      </section>
    </>
  )
}

function AgentRow({ name, state, account, earlier }: { name: string; state: RunState; account: Account | undefined; earlier: boolean }): JSX.Element {
  const own = state.workflow.agents[name]?.budget
  const times = (account?.raised ?? 0) + 1
  const before = state.lineage?.agents[name]
  return (
    <tr>
      <th scope="row">
        <button type="button" class="link" onClick={() => go({ view: 'terminal', agent: name, run: short(state.id) })}>
          <Said text={name} />
        </button>
      </th>
      <Cell name={`Money of ${name}`} used={account?.spent.money ?? 0} limit={own?.money} times={times} say={money} known={account && cost(account.spent)} />
      <Cell name={`Tokens of ${name}`} used={account?.spent.tokens ?? 0} limit={own?.tokens} times={times} say={tokens} known={account && counted(account.spent)} />
      <Cell name={`Handoffs of ${name}`} used={account?.handoffs ?? 0} limit={own?.handoffs} times={times} say={String} />
      <Cell name={`Time of ${name}`} used={account?.time ?? 0} limit={own?.time} times={times} say={took} />
      {earlier && <td title={before ? `${before.turns} turns in earlier generations` : undefined}>{before ? money(before.cost) : '–'}</td>}
    </tr>
  )
}

/** What was used, against what the agent may use where it has a budget of its own. */
function Cell({ name, used, limit, times, say, known }: { name: string; used: number; limit: number | null | undefined; times: number; say: (value: number) => string; known?: string | undefined }): JSX.Element {
  const said = known ?? say(used)
  if (limit === null || limit === undefined) return <td>{said}</td>
  const most = limit * times
  const part = most ? Math.min(1, used / most) : 1
  return (
    <td>
      {said} <span class="quiet">of {say(most)}</span>
      <span class="meter-bar" role="meter" aria-label={`${name}: ${said} of ${say(most)}`} aria-valuemin={0} aria-valuemax={100} aria-valuenow={Math.round(part * 100)}>
        <span class={part > 0.9 ? 'meter-spent is-high' : 'meter-spent'} style={{ width: `${part * 100}%` }} />
      </span>
    </td>
  )
}

function Notes({ state }: { state: RunState }): JSX.Element {
  const notes = state.lineage?.notes ?? []
  return (
    <section>
      <h2>Notes for the next generation</h2>
      {notes.length === 0 ? (
        <p class="quiet">
          What you write here is in the briefing of the next generation, also when this one is over. In a terminal: <code>stafette note "Mind the tests"</code>
        </p>
      ) : (
        <ul class="notes">
          {notes.map((note, index) => (
            <li key={index}>
              <Said text={note.text} of="prose" />
              <span class="quiet figures">
                <Said text={note.by || 'somebody'} /> · <time>{time(note.at)}</time>
              </span>
            </li>
          ))}
        </ul>
      )}
      {at.value === null && <NoteForm state={state} />}
    </section>
  )
}

function NoteForm({ state }: { state: RunState }): JSX.Element {
  const [text, setText] = useState('')
  const [busy, setBusy] = useState(false)
  const leave = async (): Promise<void> => {
    if (!text.trim() || busy) return
    setBusy(true)
    const taken = await attempt(() => api.note(state.id, text.trim()))
    setBusy(false)
    if (!taken) return
    setText('')
    const with_ = known.value.get(taken.run)?.lineage?.number
    say(taken.run === runId.value ? 'The next generation will read it' : `It is left with generation ${with_ ?? short(taken.run)}, the last one there is`)
  }
  return (
    <form
      class="note-form"
      onSubmit={(event) => {
        event.preventDefault()
        void leave()
      }}
    >
      <textarea
        class="note-text"
        rows={2}
        maxLength={2000}
        aria-label="A note for the next generation"
        placeholder="Mind the tests"
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) void leave()
        }}
      />
      <button type="submit" class="small is-main" disabled={busy || !text.trim()}>
        Leave note
      </button>
    </form>
  )
}
