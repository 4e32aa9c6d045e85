import { expect, test } from 'vitest'
import { HOME, type Place, href, parse } from '../src/state/place'

const PLACES: Partial<Place>[] = [
  {},
  { view: 'inbox' },
  { view: 'inbox', question: '01a1:h3' },
  { view: 'changes' },
  { view: 'changes', change: 'c3', run: 'cad11adc', split: true },
  { view: 'knowledge' },
  { view: 'knowledge', part: 'threads', about: '01a1.discuss', spot: '7', words: 'way back' },
  { view: 'knowledge', part: 'graph', about: 'handoff:01a1/h7', run: 'cad11adc' },
  { run: 'cad11adc' },
  { run: 'cad11adc', agent: 'builder' },
  { run: 'cad11adc', agent: 'a b/ü?', handoff: 'h7', at: 41 },
  { run: 'cad11adc', view: 'graph' },
  { run: 'cad11adc', view: 'council' },
  { run: 'cad11adc', view: 'council', topic: 'h5', handoff: 'h7', at: 41 },
  { run: 'cad11adc', view: 'phases', topic: 'validate' },
  { run: 'cad11adc', view: 'relay' },
  { run: 'cad11adc', view: 'track' },
  { run: 'cad11adc', view: 'agents' },
  { run: 'cad11adc', view: 'numbers', at: 3 },
  { run: 'cad11adc', view: 'events', handoff: 'h2' },
]

test.each(PLACES)('%j has an address that leads back to it', (part) => {
  const place = { ...HOME, ...part }
  const url = new URL(href(place), 'http://localhost')
  expect(parse(url.pathname, url.search)).toEqual(place)
})

test.each(['/nowhere', '/runs', '/runs/%E0%A4%A', '/runs/x?at=-3', '/runs/x?at=NaN'])('%s is somewhere all the same', (text) => {
  const url = new URL(text, 'http://localhost')
  expect(parse(url.pathname, url.search).at).toBeNull()
})
