// Where the page is. Every state has an address.

export type View = 'terminal' | 'track' | 'graph' | 'numbers' | 'events' | 'agents' | 'council' | 'phases' | 'relay'

/** Views of the whole project, whichever run is looked at. */
export type Wide = 'inbox' | 'changes' | 'knowledge'

/** What is known and planned has several parts. */
export type Part = 'decisions' | 'calendar' | 'threads' | 'graph' | 'constitution' | 'insights'

export const PARTS: readonly Part[] = ['decisions', 'calendar', 'threads', 'graph', 'constitution', 'insights']

export type Place = {
  /** The run, by its id or some of its digits; nothing means the newest. */
  run: string | null
  view: View | Wide
  agent: string | null
  /** The handoff in the drawer. */
  handoff: string | null
  /** The moment that is shown, as the number of an event; nothing means now. */
  at: number | null
  /** The question that has the focus. */
  question: string | null
  /** The set of edits that is looked at. */
  change: string | null
  /** Whether its diffs are side by side. */
  split: boolean
  /** Which part of what is known. */
  part: Part
  /** What of it: a thread, a node, a day, a decision, an insight. */
  about: string | null
  /** What of that: a message, a block of time. */
  spot: string | null
  /** The words that are looked for. */
  words: string
  /** What of the council or the phases: the handoff that is decided on, or a phase. */
  topic: string | null
}

export const HOME: Place = { run: null, view: 'terminal', agent: null, handoff: null, at: null, question: null, change: null, split: false, part: 'decisions', about: null, spot: null, words: '', topic: null }

const VIEWS: readonly string[] = ['track', 'graph', 'numbers', 'events', 'relay']

/** Views that have parts with addresses of their own. */
const PARTED: readonly string[] = ['council', 'phases']

export function parse(path: string, search: string): Place {
  const parts = path.split('/').filter(Boolean).map(decode)
  const query = new URLSearchParams(search)
  const at = Number(query.get('at'))
  const place: Place = {
    ...HOME,
    handoff: query.get('handoff'),
    at: Number.isSafeInteger(at) && at > 0 ? at : null,
    split: query.get('diff') === 'split',
  }
  if (parts[0] === 'changes') return { ...place, view: 'changes', change: parts[1] ?? null, run: query.get('run') }
  if (parts[0] === 'knowledge') {
    const part = PARTS.find((one) => one === parts[1]) ?? HOME.part
    return { ...place, view: 'knowledge', part, about: parts[2] ?? null, spot: query.get('spot'), words: query.get('q') ?? '', run: query.get('run') }
  }
  if (parts[0] === 'inbox') return { ...place, view: 'inbox', question: parts[1] ?? null, run: query.get('run') }
  if (parts[0] !== 'runs' || !parts[1]) return place
  place.run = parts[1]
  const view = parts[2]
  if (view && VIEWS.includes(view)) return { ...place, view: view as View }
  if (view && PARTED.includes(view)) return { ...place, view: view as View, topic: parts[3] ?? null }
  if (view === 'agents') return parts[3] ? { ...place, agent: parts[3] } : { ...place, view: 'agents' }
  return place
}

export function href(place: Place): string {
  const query = new URLSearchParams()
  if (place.handoff) query.set('handoff', place.handoff)
  if (place.at !== null) query.set('at', String(place.at))
  let path = '/'
  if (place.view === 'inbox') {
    path = place.question ? `/inbox/${encodeURIComponent(place.question)}` : '/inbox'
    if (place.run) query.set('run', place.run)
  } else if (place.view === 'changes') {
    path = place.change ? `/changes/${encodeURIComponent(place.change)}` : '/changes'
    if (place.run) query.set('run', place.run)
    if (place.split) query.set('diff', 'split')
  } else if (place.view === 'knowledge') {
    path = `/knowledge/${place.part}`
    if (place.about) path += `/${encodeURIComponent(place.about)}`
    if (place.run) query.set('run', place.run)
    if (place.spot) query.set('spot', place.spot)
    if (place.words) query.set('q', place.words)
  } else if (place.run) {
    path = `/runs/${encodeURIComponent(place.run)}`
    if (place.view !== 'terminal') path += `/${place.view}`
    if (PARTED.includes(place.view) && place.topic) path += `/${encodeURIComponent(place.topic)}`
    if (place.view === 'terminal' && place.agent) path += `/agents/${encodeURIComponent(place.agent)}`
  }
  const text = query.toString()
  return text ? `${path}?${text}` : path
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
