// The left rail: what needs you, who does what, and the runs.

import type { JSX } from 'preact'
import { type AgentView, GROUPS, type Group } from '../state/agents'
import { isOver } from '../state/run'
import { cost, span } from '../state/words'
import { agent, cast, clock, entries, following, go, goRun, items, overlay, place, run, runId, short, waiting } from '../app/store'
import { Glyph, type GlyphName, Key, Said, Virtual, runGlyph } from './parts'

export function Rail(): JSX.Element {
  const count = items.value.length
  const here = place.value.view === 'inbox'
  const sets = waiting.value
  return (
    <nav class="rail" aria-label="Agents and runs">
      <button type="button" class={`plain rail-inbox${count ? ' is-yours' : ''}${here ? ' is-here' : ''}`} aria-current={here ? 'page' : undefined} onClick={() => go({ view: 'inbox', question: null, handoff: null })}>
        <Glyph name={count ? 'needs you' : 'done'} />
        <span>{count ? 'Needs you' : 'Nothing needs you'}</span>
        {count > 0 && <span class="count figures">{count}</span>}
        <Key>i</Key>
      </button>
      <button type="button" class={`plain rail-inbox rail-changes${sets ? ' is-yours' : ''}${place.value.view === 'changes' ? ' is-here' : ''}`} aria-current={place.value.view === 'changes' ? 'page' : undefined} onClick={() => go({ view: 'changes', change: null, handoff: null })}>
        <Glyph name={sets ? 'needs you' : 'changes'} />
        <span>Changes</span>
        {sets > 0 && <span class="count figures">{sets}</span>}
        <Key>d</Key>
      </button>
      <button type="button" class={`plain rail-inbox rail-changes${place.value.view === 'knowledge' ? ' is-here' : ''}`} aria-current={place.value.view === 'knowledge' ? 'page' : undefined} onClick={() => go({ view: 'knowledge', about: null, spot: null, handoff: null })}>
        <Glyph name="knowledge" />
        <span>Knowledge</span>
        <Key>w</Key>
      </button>
      <Agents />
      <Runs />
    </nav>
  )
}

const TITLES: Record<Group, string> = { 'needs you': 'Needs you', working: 'Working', waiting: 'Waiting', idle: 'Idle', done: 'Done' }

export function Agents(): JSX.Element | null {
  if (!run.value) return null
  const list = cast.value
  return (
    <div class="rail-agents">
      {GROUPS.map((group) => {
        const some = list.filter((one) => one.group === group)
        return (
          some.length > 0 && (
            <section key={group} aria-label={TITLES[group]}>
              <h2 class="rail-group">
                {TITLES[group]} <span class="quiet figures">{some.length}</span>
              </h2>
              <ul>
                {some.map((one) => (
                  <AgentLine key={one.name} one={one} />
                ))}
              </ul>
            </section>
          )
        )
      })}
    </div>
  )
}

export function agentGlyph(one: AgentView): GlyphName {
  return one.crashed ? 'crashed' : one.group
}

function AgentLine({ one }: { one: AgentView }): JSX.Element {
  const here = place.value.view === 'terminal' && agent.value === one.name
  const over = one.group === 'done'
  return (
    <li>
      <button
        type="button"
        class={`plain agent${here ? ' is-here' : ''}`}
        aria-current={here ? 'true' : undefined}
        onClick={() => go({ view: 'terminal', agent: one.name, run: short(runId.value ?? '') })}
        title={`${one.name}: ${one.doing}`}
      >
        <Glyph name={agentGlyph(one)} label={one.crashed ? 'crashed' : one.group} />
        <Said text={one.name} of="agent-name" />
        <Said text={one.crashed ? 'crashed' : one.doing} of="agent-doing" />
        <span class="agent-age figures">{over || one.group === 'idle' ? '' : span(clock.value - one.since)}</span>
        <span class="agent-cost figures">{one.spent.money || one.spent.unknown?.money ? cost(one.spent) : ''}</span>
        {here && following.value && <span class="agent-follow" title="The page follows the baton" />}
      </button>
    </li>
  )
}

const ROW = 28

export function Runs(): JSX.Element {
  const list = entries.value
  return (
    <section class="rail-runs" aria-label="Runs">
      <h2 class="rail-group">
        Runs <span class="quiet figures">{list.length}</span>
        <button type="button" class="plain rail-new" title="Start a run" aria-label="Start a run" onClick={() => (overlay.value = 'start')}>
          +
        </button>
      </h2>
      <Virtual
        list={list}
        height={ROW}
        label="Runs, newest first"
        render={(one) => (
          <div role="listitem" key={one.id}>
            <button type="button" class={`plain run-line${one.id === runId.value && place.value.view !== 'inbox' ? ' is-here' : ''}`} onClick={() => goRun(one.id)} title={one.request}>
              <Glyph name={one.asked ? 'needs you' : runGlyph(one.word)} label={one.asked ? 'needs you' : one.word} />
              <Said text={one.request} of={isOver(one.word) ? 'run-name quiet' : 'run-name'} />
              <span class="quiet mono run-id">{short(one.id)}</span>
            </button>
          </div>
        )}
      />
    </section>
  )
}
