// The agents as a graph: ranks from the entry along the routes, loops drawn back.

import { told } from './history'
import type { RunState } from './run'

export interface Node {
  name: string
  rank: number
  index: number
  x: number
  y: number
}

export interface Edge {
  from: string
  to: string
  /** How often it was used. */
  used: number
  refused: number
  declared: boolean
  back: boolean
  last: string | null
}

export interface Graph {
  nodes: Node[]
  edges: Edge[]
  ranks: number
  most: number
}

/** Where everyone stands: x by rank and y within it, both 0 … 1. */
export function graph(run: RunState): Graph {
  const names = new Set<string>(['human', ...Object.keys(run.workflow.agents)])
  const edges = new Map<string, Edge>()
  const edge = (from: string, to: string): Edge => {
    const key = `${from}→${to}`
    const known = edges.get(key) ?? { from, to, used: 0, refused: 0, declared: false, back: false, last: null }
    edges.set(key, known)
    return known
  }
  for (const route of run.workflow.routes) {
    names.add(route.from).add(route.to)
    edge(route.from, route.to).declared = true
  }
  for (const leg of run.legs.values()) {
    names.add(leg.offer.from).add(leg.offer.to)
    const one = edge(leg.offer.from, leg.offer.to)
    one.used += 1
    one.last = leg.id
  }
  for (const one of told(run, 'handoff_refused')) {
    if (names.has(one.offer.to)) edge(one.offer.from, one.offer.to).refused += 1
  }
  edge('human', run.workflow.workflow.entry).declared = true
  const rank = ranks([...edges.values()], run.workflow.workflow.entry, names)
  const by = new Map<number, string[]>()
  for (const name of names) {
    const at = rank.get(name) ?? 0
    by.set(at, [...(by.get(at) ?? []), name])
  }
  const count = Math.max(...by.keys()) + 1
  const most = Math.max(...[...by.values()].map((list) => list.length))
  const nodes: Node[] = []
  for (const [at, list] of by) {
    list.forEach((name, index) => {
      nodes.push({ name, rank: at, index, x: count > 1 ? at / (count - 1) : 0.5, y: (index + 1) / (list.length + 1) })
    })
  }
  for (const one of edges.values()) one.back = (rank.get(one.to) ?? 0) <= (rank.get(one.from) ?? 0)
  return { nodes, edges: [...edges.values()], ranks: count, most }
}

/** Steps from the entry; who cannot be reached stands at the end. */
function ranks(edges: Edge[], entry: string, names: Set<string>): Map<string, number> {
  const rank = new Map<string, number>([
    ['human', 0],
    [entry, 1],
  ])
  const queue = [entry]
  for (let name = queue.shift(); name !== undefined; name = queue.shift()) {
    for (const one of edges) {
      if (one.from !== name || rank.has(one.to)) continue
      rank.set(one.to, (rank.get(name) ?? 0) + 1)
      queue.push(one.to)
    }
  }
  const last = Math.max(...rank.values())
  for (const name of names) if (!rank.has(name)) rank.set(name, last)
  return rank
}
