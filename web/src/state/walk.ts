// A node and what is around it, in columns from what is wanted to what was learned.

import type { Label, Link, Node, Picture } from '../api/knowledge'

export const ORDER: readonly Label[] = ['Goal', 'Discussion', 'Decision', 'Task', 'Insight', 'Handoff']

export const PLURAL: Record<Label, string> = { Goal: 'Goals', Discussion: 'Discussions', Decision: 'Decisions', Task: 'Tasks', Insight: 'Insights', Handoff: 'Handoffs' }

export const keyOf = (node: Node): string => `${node.label.toLowerCase()}:${node.id}`

/** What a node is called. */
export function titleOf(node: Node): string {
  if ('pattern' in node) return node.pattern
  if ('option' in node) return node.option
  if ('topic' in node) return node.topic
  if ('title' in node) return node.title
  return node.summary || `${node.from} → ${node.to}`
}

/** A title in two lines at most; what does not fit is cut. */
export function wrapped(title: string, letters: number): string[] {
  if (title.length <= letters) return [title]
  const space = title.lastIndexOf(' ', letters)
  const at = space > 0 ? space : letters
  const rest = title.slice(at).trim()
  return [title.slice(0, at), rest.length > letters ? `${rest.slice(0, letters - 1)}…` : rest]
}

/** How far it has come, in a word. */
export function stateOf(node: Node): string {
  if ('option' in node) return node.status
  if ('effortHours' in node) return node.status
  if ('alignment' in node) return node.recommendation.toLowerCase()
  if ('horizon' in node) return node.horizon
  if ('pattern' in node) return `${Math.round(node.confidence * 100)}% sure`
  return node.state
}

/** How a link reads from the node that is looked at. */
const WORDS: Record<Link['relation'], [string, string]> = {
  SERVES: ['serves', 'is served by'],
  DECIDED_IN: ['was decided in', 'led to'],
  PART_OF: ['is part of', 'consists of'],
  DEPENDS_ON: ['waits for', 'comes before'],
  LEARNED_FROM: ['was learned from', 'taught'],
  INFORMS: ['informs', 'is informed by'],
  PRODUCED: ['brought about', 'came from'],
  FOLLOWED_BY: ['is followed by', 'follows'],
}

export interface Way {
  words: string
  nodes: Node[]
}

/** The neighbours of a node by how they belong to it. */
export function ways(picture: Picture, centre: string): Way[] {
  const nodes = new Map(picture.nodes.map((node) => [keyOf(node), node]))
  const found = new Map<string, Node[]>()
  for (const link of picture.links) {
    const out = link.from === centre
    if (!out && link.to !== centre) continue
    const other = nodes.get(out ? link.to : link.from)
    if (!other) continue
    const words = WORDS[link.relation][out ? 0 : 1]
    found.set(words, [...(found.get(words) ?? []), other])
  }
  return [...found].map(([words, list]) => ({ words, nodes: list }))
}

export interface Placed {
  key: string
  node: Node
  column: number
  row: number
  x: number
  y: number
}

export interface Drawing {
  spots: Placed[]
  links: { from: Placed; to: Placed; link: Link }[]
  width: number
  height: number
}

/** The most that one column shows; the list beside it has all. */
export const TALLEST = 14

/** Where everything stands: a column for each kind that is there, the node in the middle of its own. */
export function drawn(picture: Picture, centre: string, room: { width: number; height: number }, box: { width: number; height: number }): Drawing {
  const columns = ORDER.map((label) => picture.nodes.filter((node) => node.label === label)).filter((list) => list.length > 0)
  const near = new Set(picture.links.flatMap((link) => (link.from === centre ? [link.to] : link.to === centre ? [link.from] : [])))
  const weight = (node: Node): number => (keyOf(node) === centre ? 0 : near.has(keyOf(node)) ? 1 : 2)
  const gap = 32
  const most = Math.min(TALLEST, Math.max(1, ...columns.map((list) => list.length)))
  const width = Math.max(room.width, columns.length * (box.width + gap))
  const height = Math.max(room.height, most * (box.height + 14) + 40)
  const spots: Placed[] = []
  columns.forEach((list, column) => {
    const kept = [...list].sort((a, b) => weight(a) - weight(b) || (keyOf(a) < keyOf(b) ? -1 : 1)).slice(0, TALLEST)
    // The nearest stand in the middle.
    const middle: Node[] = []
    kept.forEach((node, index) => (index % 2 ? middle.unshift(node) : middle.push(node)))
    middle.forEach((node, row) => {
      spots.push({ key: keyOf(node), node, column, row, x: ((column + 0.5) / columns.length) * width, y: ((row + 0.5) / middle.length) * height })
    })
  })
  const by = new Map(spots.map((spot) => [spot.key, spot]))
  const links = picture.links.flatMap((link) => {
    const from = by.get(link.from)
    const to = by.get(link.to)
    return from && to ? [{ from, to, link }] : []
  })
  return { spots, links, width, height }
}

/** The spot next to one in a direction, by the arrow keys. */
export function beside(drawing: Drawing, key: string, arrow: string): Placed | null {
  const here = drawing.spots.find((spot) => spot.key === key)
  if (!here) return drawing.spots[0] ?? null
  const column = (step: number): Placed | null => {
    const list = drawing.spots.filter((spot) => spot.column === here.column + step)
    return list.reduce<Placed | null>((best, spot) => (!best || Math.abs(spot.y - here.y) < Math.abs(best.y - here.y) ? spot : best), null)
  }
  const row = (step: number): Placed | null => drawing.spots.find((spot) => spot.column === here.column && spot.row === here.row + step) ?? null
  if (arrow === 'ArrowLeft') return column(-1)
  if (arrow === 'ArrowRight') return column(1)
  if (arrow === 'ArrowUp') return row(-1)
  if (arrow === 'ArrowDown') return row(1)
  return null
}
