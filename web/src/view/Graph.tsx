// The agents and the routes between them; handoffs move along.

import type { JSX } from 'preact'
import { useEffect, useMemo, useRef } from 'preact/hooks'
import { type Edge, type Node, graph } from '../state/graph'
import { span } from '../state/words'
import { baton, cast, clock, go, items, run } from '../app/store'
import { still } from '../app/theme'
import { Empty, usePhone, useSize } from './parts'

const WIDTH = 132
const HEIGHT = 44

interface Spot {
  x: number
  y: number
}

export function Graph(): JSX.Element {
  const state = run.value
  const [size, measure] = useSize()
  const phone = usePhone()
  const drawn = useMemo(() => state && graph(state), [state])
  if (!state || !drawn) return <Empty title="No agents yet" command="stafette init" />
  const w = phone ? Math.min(112, Math.max(76, size.width / drawn.most - 18)) : Math.min(WIDTH, Math.max(92, size.width / (drawn.ranks * 1.45)))
  const deep = phone ? drawn.ranks * 92 : 0
  const width = Math.max(size.width, phone ? drawn.most * (w + 18) : drawn.ranks * (w + 36))
  const height = Math.max(size.height, deep, phone ? 0 : drawn.most * (HEIGHT + 18) + 60)
  const beside = new Map<number, number>()
  for (const { rank } of drawn.nodes) beside.set(rank, (beside.get(rank) ?? 0) + 1)
  const most = Math.floor(w / 7.5)
  const spot = (node: Node): Spot => {
    const along = phone ? height : width
    const across = phone ? width : height
    const edge = phone ? HEIGHT / 2 + 22 : w / 2 + 22
    const one = edge + node.x * (along - 2 * edge)
    // On a phone there is no room to leave at the sides.
    const two = phone ? ((node.index + 0.5) / (beside.get(node.rank) ?? 1)) * across : node.y * across
    return phone ? { x: two, y: one } : { x: one, y: two }
  }
  const spots = new Map(drawn.nodes.map((node) => [node.name, spot(node)]))
  const views = new Map(cast.value.map((one) => [one.name, one]))
  return (
    <div class="graph" ref={measure} tabIndex={0} role="region" aria-label="Agents and routes">
      <svg width={width} height={height} role="group" aria-label="Graph of agents">
        <defs>
          <marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">
            <path d="M0 .8 7 4 0 7.200z" class="arrow" />
          </marker>
        </defs>
        {drawn.edges.map((edge) => {
          const from = spots.get(edge.from)
          const to = spots.get(edge.to)
          return from && to ? <Way key={`${edge.from}→${edge.to}`} edge={edge} from={from} to={to} phone={phone} half={w / 2} /> : null
        })}
        {drawn.nodes.map((node) => {
          const { x, y } = spots.get(node.name)!
          const view = views.get(node.name)
          const yours = node.name === 'human'
          const group = yours ? (items.value.some((item) => item.run === state.id) ? 'needs you' : 'idle') : (view?.group ?? 'idle')
          const open = (): void => (yours ? go({ view: 'inbox' }) : go({ view: 'terminal', agent: node.name }))
          return (
            <g
              key={node.name}
              class={`node is-${group.replace(' ', '-')}${baton.value === node.name && group === 'working' ? ' has-baton' : ''}`}
              transform={`translate(${x} ${y})`}
              tabindex={0}
              role="button"
              onClick={open}
              onKeyDown={(event) => event.key === 'Enter' && open()}
            >
              <rect x={-w / 2} y={-HEIGHT / 2} width={w} height={HEIGHT} rx={3} />
              <text class="node-name" y={-4}>
                {yours ? 'you' : node.name.length > most ? `${node.name.slice(0, most - 1)}…` : node.name}
              </text>
              <text class="node-word" y={12}>
                {yours && group === 'idle' ? 'nothing to do' : group}
                {view && (group === 'working' || group === 'needs you') ? ` ${span(clock.value - view.since)}` : ''}
              </text>
            </g>
          )
        })}
      </svg>
    </div>
  )
}

function Way({ edge, from, to, phone, half }: { edge: Edge; from: Spot; to: Spot; phone: boolean; half: number }): JSX.Element {
  const path = useRef<SVGPathElement>(null)
  const dot = useRef<SVGCircleElement>(null)
  const known = useRef(edge.used)
  const d = curve(edge, from, to, phone, half)
  useEffect(() => {
    const more = edge.used > known.current
    known.current = edge.used
    if (!more || still.matches || !path.current || !dot.current) return
    return travel(path.current, dot.current)
  }, [edge.used])
  const name = `way${edge.used ? ' is-used' : ''}${edge.refused ? ' is-refused' : ''}${edge.declared ? '' : ' is-undeclared'}`
  const label = `${edge.from} → ${edge.to}: ${edge.used} handoffs${edge.refused ? `, ${edge.refused} refused` : ''}`
  return (
    <g class={name} onClick={() => edge.last && go({ handoff: edge.last })}>
      <title>{label}</title>
      <path class="way-hit" d={d} />
      <path ref={path} class="way-line" d={d} marker-end="url(#arrow)" stroke-width={Math.min(3, 1 + edge.used * 0.4)} />
      {edge.used > 1 && <Count path={d} count={edge.used} />}
      <circle ref={dot} class="way-dot" r={4.5} cx={-20} cy={-20} />
    </g>
  )
}

/** How often, at the middle of the curve. */
function Count({ path, count }: { path: string; count: number }): JSX.Element {
  const text = useRef<SVGTextElement>(null)
  useEffect(() => {
    const line = document.createElementNS('http://www.w3.org/2000/svg', 'path')
    line.setAttribute('d', path)
    const middle = line.getPointAtLength(line.getTotalLength() / 2)
    text.current?.setAttribute('x', String(middle.x))
    text.current?.setAttribute('y', String(middle.y))
  }, [path])
  return (
    <text ref={text} class="way-count">
      {count}×
    </text>
  )
}

function curve(edge: Edge, from: Spot, to: Spot, phone: boolean, half: number): string {
  const gap = HEIGHT / 2
  if (phone) {
    const down = to.y > from.y + 1
    const a = { x: from.x + (down ? 0 : half * 0.6), y: from.y + (down ? gap : -gap) }
    const b = { x: to.x + (down ? 0 : half * 0.6), y: to.y + (down ? -gap : gap) }
    const bend = down ? 0 : 40
    return `M${a.x} ${a.y}C${a.x + bend} ${(a.y + b.y) / 2} ${b.x + bend} ${(a.y + b.y) / 2} ${b.x} ${b.y}`
  }
  if (!edge.back) {
    const a = { x: from.x + half, y: from.y }
    const b = { x: to.x - half - 2, y: to.y }
    const middle = (b.x - a.x) / 2
    return `M${a.x} ${a.y}C${a.x + middle} ${a.y} ${b.x - middle} ${b.y} ${b.x} ${b.y}`
  }
  if (Math.abs(from.x - to.x) < 1) {
    const side = from.y < to.y ? 1 : -1
    return `M${from.x + half * 0.3 * side} ${from.y + gap * side}L${to.x + half * 0.3 * side} ${to.y - (gap + 2) * side}`
  }
  const low = Math.max(from.y, to.y) + gap + 34
  return `M${from.x} ${from.y + gap}C${from.x} ${low} ${to.x} ${low} ${to.x} ${to.y + gap + 2}`
}

/** A dot runs along the route. */
function travel(path: SVGPathElement, dot: SVGCircleElement): () => void {
  const length = path.getTotalLength()
  const began = performance.now()
  let frame = 0
  const step = (now: number): void => {
    const part = Math.min(1, (now - began) / 450)
    const point = path.getPointAtLength(length * (1 - (1 - part) ** 2))
    dot.setAttribute('cx', String(point.x))
    dot.setAttribute('cy', String(point.y))
    if (part < 1) frame = requestAnimationFrame(step)
    else {
      dot.setAttribute('cx', '-20')
      dot.setAttribute('cy', '-20')
    }
  }
  frame = requestAnimationFrame(step)
  return () => cancelAnimationFrame(frame)
}
