// The graph of goals, talk, decisions, tasks and insights, from node to neighbour.

import type { JSX } from 'preact'
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { type Label, type Node, type Nodes, type Picture, aroundPath, nodesPath } from '../../api/knowledge'
import { type Placed, ORDER, PLURAL, beside, drawn, keyOf, stateOf, titleOf, ways, wrapped } from '../../state/walk'
import { moment } from '../../state/words'
import { useAnswer, useKeys } from '../../app/knowledge'
import { go, now, place, short } from '../../app/store'
import { Empty, Said, usePhone, useSize } from '../parts'
import { Lack } from './Lack'

const HEIGHT = 60

/** The width of a letter, at most. */
const LETTER = 7.3

const visit = (key: string): void => go({ about: key, spot: null })

export function Walk(): JSX.Element {
  return place.value.about ? <Around key={place.value.about} centre={place.value.about} /> : <Start />
}

/** Everything that one can begin with, by kind. */
function Start(): JSX.Element {
  const goals = useAnswer<Nodes>(nodesPath('Goal'))
  const decisions = useAnswer<Nodes>(nodesPath('Decision'))
  const tasks = useAnswer<Nodes>(nodesPath('Task'))
  const insights = useAnswer<Nodes>(nodesPath('Insight'))
  const talks = useAnswer<Nodes>(nodesPath('Discussion'))
  const kinds: [Label, typeof goals][] = [
    ['Goal', goals],
    ['Decision', decisions],
    ['Task', tasks],
    ['Insight', insights],
    ['Discussion', talks],
  ]
  const box = useRef<HTMLDivElement>(null)
  useKeys((key) => {
    const by = key === 'j' ? 1 : key === 'k' ? -1 : 0
    if (!by) return null
    return () => {
      const list = [...(box.current?.querySelectorAll<HTMLElement>('.start-node') ?? [])]
      const index = list.indexOf(document.activeElement as HTMLElement)
      list[Math.min(list.length - 1, Math.max(0, index + by))]?.focus()
    }
  })
  if (!goals.data) return <Lack problem={goals.problem} />
  if (kinds.every(([, answer]) => answer.data?.nodes.length === 0)) {
    return (
      <Empty title="Nothing is linked yet" command="goals.toml">
        Goals, decisions, tasks and insights are nodes here, each with who made it and why, to be walked through from one to the next. Begin with what you want to reach:
      </Empty>
    )
  }
  return (
    <div class="start" ref={box} tabIndex={0} role="region" aria-label="Where to begin">
      {kinds.map(([label, { data }]) => (
        <section key={label} aria-label={PLURAL[label]}>
          <h2>
            {PLURAL[label]} <span class="quiet figures">{data?.nodes.length ?? ''}</span>
          </h2>
          <ul>
            {((data?.nodes ?? []) as Node[])
              .sort((a, b) => b.made.at - a.made.at)
              .slice(0, 60)
              .map((node) => (
                <li key={node.id}>
                  <button type="button" class={`plain start-node is-${label.toLowerCase()}`} onClick={() => visit(keyOf(node))}>
                    <Said text={titleOf(node)} of="start-title" />
                    <Said text={stateOf(node)} of="quiet" />
                  </button>
                </li>
              ))}
          </ul>
          {data?.nodes.length === 0 && <p class="quiet">none yet</p>}
        </section>
      ))}
    </div>
  )
}

function Around({ centre }: { centre: string }): JSX.Element {
  const phone = usePhone()
  const [reach, setReach] = useState(1)
  const { data, problem } = useAnswer<Picture>(aroundPath(centre, reach))
  const node = data?.nodes.find((one) => keyOf(one) === centre) ?? null
  useKeys((key) => {
    if (key === '+') return () => setReach(Math.min(3, reach + 1))
    if (key === '-') return () => setReach(Math.max(1, reach - 1))
    return null
  })
  if (!data || !node) {
    return problem || data ? (
      <Empty title={`There is no ${centre}`} command="stafette insights">
        It may not have been written yet.{' '}
        <button type="button" class="link" onClick={() => go({ about: null })}>
          Everything that there is
        </button>
        ; what was learned is also in
      </Empty>
    ) : (
      <Lack problem={null} />
    )
  }
  return (
    <div class="walk">
      {!phone && <Drawn picture={data} centre={centre} />}
      <aside class="walk-side" tabIndex={0} aria-label="The node">
        <p class="walk-back">
          <button type="button" class="link" onClick={() => go({ about: null })}>
            Everything
          </button>
          {!phone && (
            <span class="walk-reach" role="group" aria-label="How far to look">
              {[1, 2, 3].map((far) => (
                <button type="button" key={far} class={far === reach ? 'small is-on' : 'small'} aria-pressed={far === reach} onClick={() => setReach(far)} title={`${far} links (+ and −)`}>
                  {far}
                </button>
              ))}
            </span>
          )}
        </p>
        <p class={`walk-kind is-${node.label.toLowerCase()}`}>{node.label}</p>
        <h1>
          <Said text={titleOf(node)} />
        </h1>
        <Facts node={node} />
        {ways(data, centre).map((way) => (
          <section key={way.words}>
            <h2>
              {way.words} <span class="quiet figures">{way.nodes.length}</span>
            </h2>
            <ul>
              {way.nodes.map((one) => (
                <li key={keyOf(one)}>
                  <button type="button" class="plain walk-step" onClick={() => visit(keyOf(one))}>
                    <span class={`walk-kind is-${one.label.toLowerCase()}`}>{one.label}</span>
                    <Said text={titleOf(one)} />
                    <Said text={stateOf(one)} of="quiet" />
                  </button>
                </li>
              ))}
            </ul>
          </section>
        ))}
        {data.cut && <p class="quiet">There is more than is shown.</p>}
      </aside>
    </div>
  )
}

const NAMES: Record<string, string> = { effortHours: 'effort', estimatedHours: 'estimate', actualHours: 'took', actualReturn: 'came of it', servesGoalType: 'serves' }
const HIDDEN = new Set(['id', 'label', 'made', 'changed', 'breakdown', 'finding', 'title', 'topic', 'pattern', 'option', 'thread', 'event'])

function Facts({ node }: { node: Node }): JSX.Element {
  const facts = Object.entries(node).filter(([name, value]) => !HIDDEN.has(name) && value !== null && typeof value !== 'object')
  const { made } = node
  const link = (text: string, run: () => void): JSX.Element => (
    <button type="button" class="link" onClick={run}>
      {text}
    </button>
  )
  return (
    <dl class="facts">
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{NAMES[name] ?? name}</dt>
          <dd>
            <Said text={String(value)} />
            {/Hours$/.test(name) && ' h'}
          </dd>
        </div>
      ))}
      <div>
        <dt>made by</dt>
        <dd>
          <Said text={String(made.by)} />, {moment(made.at, now.value)}
          {made.run && made.handoff && <> {link(made.handoff, () => go({ view: 'terminal', agent: null, run: short(made.run!), handoff: made.handoff! }))}</>}
        </dd>
      </div>
      {'option' in node && (
        <div>
          <dt>table</dt>
          <dd>{link('what the options return', () => go({ part: 'decisions', about: node.id }))}</dd>
        </div>
      )}
      {'alignment' in node && node.thread && (
        <div>
          <dt>talk</dt>
          <dd>{link('what was said', () => go({ part: 'threads', about: node.thread! }))}</dd>
        </div>
      )}
      {'pattern' in node && (
        <div>
          <dt>insight</dt>
          <dd>{link('accept or roll back', () => go({ part: 'insights', about: node.id }))}</dd>
        </div>
      )}
    </dl>
  )
}

function Drawn({ picture, centre }: { picture: Picture; centre: string }): JSX.Element {
  const [size, measure] = useSize()
  const svg = useRef<SVGSVGElement>(null)
  // Handoffs are how it came about, not what it is about: the list beside has them.
  const shown = useMemo(() => ({ ...picture, nodes: picture.nodes.filter((node) => node.label !== 'Handoff' || keyOf(node) === centre) }), [picture, centre])
  const kinds = new Set(shown.nodes.map((node) => node.label)).size
  const width = Math.min(196, Math.max(112, size.width / kinds - 36))
  const drawing = useMemo(() => drawn(shown, centre, size, { width, height: HEIGHT }), [shown, centre, size, width])
  const focus = (key: string): void => svg.current?.querySelector<SVGGElement>(`[data-key="${CSS.escape(key)}"]`)?.focus()
  // Whoever walks by keys goes on from where they arrive.
  useEffect(() => {
    if (document.activeElement === document.body) focus(centre)
  }, [centre])
  const keys = (event: KeyboardEvent, spot: Placed): void => {
    if (event.key === 'Enter') visit(spot.key)
    else {
      const next = beside(drawing, spot.key, event.key)
      if (!next) return
      focus(next.key)
    }
    event.preventDefault()
    event.stopPropagation()
  }
  const columns = ORDER.filter((label) => drawing.spots.some((spot) => spot.node.label === label))
  return (
    <div class="walk-drawn" ref={measure}>
      <svg ref={svg} width={drawing.width} height={drawing.height} role="group" aria-label="The node and what is around it">
        {columns.map((label, index) => (
          <text key={label} class="walk-column" x={((index + 0.5) / columns.length) * drawing.width} y={16}>
            {PLURAL[label]}
          </text>
        ))}
        {drawing.links.map(({ from, to, link }) => (
          <path key={`${link.from}${link.relation}${link.to}`} class={`walk-link${link.from === centre || link.to === centre ? ' is-near' : ''}`} d={curve(from, to, width / 2)}>
            <title>{`${titleOf(from.node)} ${link.relation.toLowerCase().replace('_', ' ')} ${titleOf(to.node)}`}</title>
          </path>
        ))}
        {drawing.spots.map((spot) => {
          const lines = wrapped(titleOf(spot.node), Math.floor((width - 8) / LETTER))
          const here = spot.key === centre
          return (
            <g
              key={spot.key}
              data-key={spot.key}
              class={`walk-node is-${spot.node.label.toLowerCase()}${here ? ' is-here' : ''}`}
              transform={`translate(${spot.x} ${spot.y})`}
              tabindex={0}
              role="button"
              aria-current={here ? 'true' : undefined}
              onClick={() => visit(spot.key)}
              onKeyDown={(event) => keys(event, spot)}
            >
              <rect x={-width / 2} y={-HEIGHT / 2} width={width} height={HEIGHT} rx={3} />
              {lines.map((line, index) => (
                <text key={index} class="walk-title" y={lines.length === 1 ? -8 : index * 15 - 15}>
                  {line}
                </text>
              ))}
              <text class="walk-word" y={lines.length === 1 ? 10 : 17}>
                {stateOf(spot.node)}
              </text>
            </g>
          )
        })}
      </svg>
    </div>
  )
}

function curve(from: Placed, to: Placed, half: number): string {
  if (from.column === to.column) {
    // Beside the column, so that no box is crossed.
    const side = from.x + half
    return `M${side} ${from.y}C${side + 36} ${from.y} ${side + 36} ${to.y} ${side} ${to.y}`
  }
  const way = to.x > from.x ? 1 : -1
  const a = from.x + half * way
  const b = to.x - half * way
  return `M${a} ${from.y}C${(a + b) / 2} ${from.y} ${(a + b) / 2} ${to.y} ${b} ${to.y}`
}
