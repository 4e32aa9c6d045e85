import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { EVENTS } from '../src/api/types'

const description = new URL('../../docs/openapi.json', import.meta.url)

test('the page knows every event that the daemon can tell', () => {
  type Named = { properties?: { event: { const: string } } }
  const document = JSON.parse(readFileSync(description, 'utf8')) as {
    components: { schemas: { EventLine: { anyOf: Named[] }; TeamEvent: { oneOf: Named[] } } }
  }
  const { EventLine, TeamEvent } = document.components.schemas
  const told = [...EventLine.anyOf, ...TeamEvent.oneOf].flatMap((one) => one.properties?.event.const ?? [])
  expect(told.sort()).toEqual([...EVENTS].sort())
})
