// What the run costs and how it goes.

import type { JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { Trouble, get } from '../api/client'
import type { Problem } from '../api/types'
import { alertCode, told } from '../state/history'
import { numbers } from '../state/numbers'
import { type RunState, turnKey, words } from '../state/run'
import { clock as time, cost, counted, money, percent, span, took, tokens } from '../state/words'
import { at, cast, clock, go, link, now, run } from '../app/store'
import { Empty, Glyph, Said } from './parts'

export function Numbers(): JSX.Element {
  const state = run.value
  if (!state) return <Empty title="No numbers yet" command={'stafette run "Add JWT login" --budget 5usd'} />
  const sums = numbers(state, clock.value)
  const alerts = told(state, 'alert_raised')
  const most = Math.max(0.000001, ...sums.agents.map((one) => one.spent.money))
  const longest = Math.max(1, ...sums.agents.map((one) => one.busy))
  return (
    <div class="numbers" tabIndex={0} role="region" aria-label="Numbers">
      <section class="budget" aria-label="Budget">
        <Line name="Money" used={sums.spent.money} held={sums.reserved.money} limit={sums.limit.money} say={money} known={cost(sums.spent)} />
        <Line name="Tokens" used={sums.spent.tokens} held={sums.reserved.tokens} limit={sums.limit.tokens} say={tokens} known={counted(sums.spent)} />
        <Line name="Time" used={sums.elapsed} held={0} limit={sums.limit.time} say={span} />
      </section>
      <section>
        <h2>Agents</h2>
        <div class="table-scroll" tabIndex={0} role="region" aria-label="Numbers of each agent">
          <table>
            <thead>
              <tr>
                <th scope="col">Agent</th>
                <th scope="col" class="wide">Cost</th>
                <th scope="col">Tokens</th>
                <th scope="col" class="wide">At work</th>
                <th scope="col">Longest turn</th>
                <th scope="col">Waited</th>
                <th scope="col">Turns</th>
                <th scope="col">Failed</th>
              </tr>
            </thead>
            <tbody>
              {sums.agents.map((one) => (
                <tr key={one.name}>
                  <th scope="row">
                    <button type="button" class="link" onClick={() => go({ view: 'terminal', agent: one.name })}>
                      <Said text={one.name} />
                    </button>
                  </th>
                  <td>
                    <Share part={one.spent.money / most} text={cost(one.spent)} />
                  </td>
                  <td>{counted(one.spent)}</td>
                  <td>
                    <Share part={one.busy / longest} text={took(one.busy)} />
                  </td>
                  <td>{one.longest ? took(one.longest) : '–'}</td>
                  <td>{one.waited ? took(one.waited) : '–'}</td>
                  <td>{one.turns}</td>
                  <td class={one.failed ? 'is-bad' : ''}>{one.failed || '–'}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </section>
      <section>
        <h2>Relay</h2>
        <dl class="figures-row">
          <Figure name="Handoffs" value={String(sums.handoffs)} />
          <Figure name="Refused" value={String(sums.refused)} bad={sums.refused > 0} />
          <Figure name="Retries" value={String(sums.retries)} />
          <Figure name="Questions" value={String(sums.questions)} />
          <Figure name="Escalation rate" value={percent(sums.escalationRate)} />
          <Figure name="Waited for you" value={took(sums.waitedForPeople)} />
          <Figure name="Delivered again" value={String(sums.redelivered)} />
          <Figure name="Too late" value={String(sums.late)} />
          {sums.rounds.map((loop) => (
            <Figure key={loop.name} name={`Rounds of ${loop.name}`} value={`${loop.round} of ${loop.max}`} />
          ))}
        </dl>
      </section>
      <section>
        <h2>Alerts</h2>
        {alerts.length === 0 ? (
          <p class="quiet">Nothing went wrong that you would have to see.</p>
        ) : (
          <ul class="alert-list">
            {alerts
              .slice(-50)
              .reverse()
              .map((alert) => (
                <li key={alert.seq}>
                  <Glyph name="alert" />
                  <time class="quiet figures mono">{time(Date.parse(alert.at))}</time>
                  <Said text={alertCode(alert)} of="mono" />
                  <Said text={alert.message} />
                </li>
              ))}
          </ul>
        )}
      </section>
      {at.value === null && <Health />}
    </div>
  )
}

/** What is spent and set aside of something, against what may be. */
export function Line({ name, used, held, limit, say, known }: { name: string; used: number; held: number; limit: number; say: (value: number) => string; known?: string }): JSX.Element {
  const said = known ?? say(used)
  const part = limit ? Math.min(1, used / limit) : 0
  const more = limit ? Math.min(1 - part, held / limit) : 0
  return (
    <div class="budget-line">
      <span>{name}</span>
      <span class="meter-bar" role="meter" aria-label={`${name}: ${said} of ${say(limit)}`} aria-valuemin={0} aria-valuemax={100} aria-valuenow={Math.round(part * 100)}>
        <span class={part > 0.9 ? 'meter-spent is-high' : 'meter-spent'} style={{ width: `${part * 100}%` }} />
        <span class="meter-reserved" style={{ width: `${more * 100}%` }} />
      </span>
      <span class="figures">
        {said} <span class="quiet">of {say(limit)}</span>
        {held > 0 && <span class="quiet"> · {say(held)} set aside</span>}
      </span>
    </div>
  )
}

function Share({ part, text }: { part: number; text: string }): JSX.Element {
  return (
    <span class="share">
      <span class="share-bar" style={{ width: `${Math.max(part > 0 ? 2 : 0, part * 100)}%` }} />
      <span class="share-text">{text}</span>
    </span>
  )
}

function Figure({ name, value, bad }: { name: string; value: string; bad?: boolean }): JSX.Element {
  return (
    <div>
      <dt>{name}</dt>
      <dd class={bad ? 'is-bad' : ''}>{value}</dd>
    </div>
  )
}

/** How often the daemon is asked how it is, in milliseconds. */
const LOOK = 15_000

interface Daemon {
  version?: string
  pid?: number
  mcp_sessions?: number
}

const sessionsOf = (count: number): string => (count === 0 ? 'no client is connected' : count === 1 ? 'one client is connected' : `${count} clients are connected`)

/** What the daemon says about itself and about what it depends on. */
function Health(): JSX.Element {
  const [daemon, setDaemon] = useState<Daemon | null>(null)
  const [store, setStore] = useState<Problem | null>(null)
  const state = link.value.state
  const tick = Math.floor(now.value / LOOK)
  useEffect(() => {
    let over = false
    get<Daemon>('/healthz').then(
      (said) => over || setDaemon(said),
      () => over || setDaemon(null),
    )
    get('/readyz').then(
      () => over || setStore(null),
      (cause: unknown) => over || setStore(cause instanceof Trouble ? cause.problem : null),
    )
    return () => {
      over = true
    }
  }, [state, tick])
  const troubles = run.value ? failures(run.value) : []
  const sessions = cast.value.filter((one) => one.session && one.session !== 'ended')
  const crashed = cast.value.filter((one) => one.crashed)
  return (
    <section>
      <h2>Health</h2>
      <ul class="health">
        <Part name="Daemon" good={daemon !== null}>
          {daemon ? `version ${daemon.version ?? 'unknown'}, process ${daemon.pid ?? 'unknown'}` : 'does not answer; `stafette doctor` says why'}
        </Part>
        <Part name="Store" good={daemon !== null && store === null}>
          {store ? [store.title, store.detail].filter(Boolean).join('. ') : daemon ? 'takes what is written' : 'not known without the daemon'}
        </Part>
        <Part name="Sessions" good={crashed.length === 0}>
          {crashed.length > 0 ? `${crashed.map((one) => one.name).join(', ')} crashed` : sessions.length === 0 ? 'no agent runs now' : `${sessions.length} run, none crashed`}
        </Part>
        <Part name="MCP" good={daemon !== null}>
          {daemon ? sessionsOf(daemon.mcp_sessions ?? 0) : 'not known without the daemon'}
        </Part>
        <Part name="Models and tools" good={troubles.length === 0}>
          {troubles.length === 0 ? 'no turn of this run failed' : troubles.map((one) => `${one.agent}: ${one.kind} ${one.count}×, last “${one.message}”`).join(' · ')}
        </Part>
      </ul>
    </section>
  )
}

function Part({ name, good, children }: { name: string; good: boolean; children: string }): JSX.Element {
  return (
    <li>
      <Glyph name={good ? 'done' : 'failed'} label={good ? 'good' : 'trouble'} />
      <span>{name}</span>
      <Said text={children} of={good ? 'quiet' : ''} />
    </li>
  )
}

/** The turns of the run that failed, by who and how. */
function failures(state: RunState): { agent: string; kind: string; count: number; message: string }[] {
  const by = new Map<string, { agent: string; kind: string; count: number; message: string }>()
  for (const event of told(state, 'turn_failed')) {
    const agent = state.legs.get(turnKey(event.turn).handoff)?.offer.to ?? 'somebody'
    const { kind, message } = event.failure
    const key = `${agent} ${kind}`
    by.set(key, { agent, kind: words(kind), count: (by.get(key)?.count ?? 0) + 1, message: message.split('\n')[0] ?? '' })
  }
  return [...by.values()]
}
