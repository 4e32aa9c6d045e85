// What every flow needs: a daemon for the length of a story, eyes, and the checker.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Page } from 'playwright-core'
import { Project, type Sight, open } from './world'

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/** A project with its daemon for the length of a story, which begins at a moment of its own if that matters to it. */
export async function story(from: string | ((folder: string) => void), tell: (project: Project) => Promise<void>, moment?: string): Promise<void> {
  const project = new Project(from, moment)
  try {
    await project.up()
    await tell(project)
  } finally {
    await project.down()
  }
}

export const sees = (page: Page, words: string): Promise<void> => page.getByText(words).first().waitFor()

export function quiet(sight: Sight): void {
  assert.deepEqual(sight.complaints, [], 'the browser has nothing to complain about')
}

export const frames = (page: Page): Promise<void> => page.evaluate(() => new Promise<void>((next) => requestAnimationFrame(() => requestAnimationFrame(() => next()))))

/** Has the checker look at these views, in both themes, on a desk and on a phone. */
export async function checked(project: Project, views: string[]): Promise<void> {
  const sight = await open(project)
  const { page } = sight
  let looks = 0
  for (const view of views) {
    const [path, key] = view.split('#')
    await page.goto(sight.url + path)
    await page.locator('#app > *').first().waitFor()
    await page.waitForFunction(() => !document.querySelector('.waiting'))
    if (key) {
      await page.keyboard.press(key === 'keys' ? '?' : 'Control+k')
      await page.getByRole('dialog').waitFor()
    }
    // The page's own policy forbids injected scripts, so that the checker comes by the debugger.
    await page.evaluate(AXE)
    for (const width of [1440, 360]) {
      await page.setViewportSize({ width, height: 800 })
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme })
        await frames(page)
        const found = await page.evaluate(async () => {
          type Result = { violations: { id: string; impact: string; nodes: { html: string }[] }[] }
          const { axe } = window as unknown as { axe: { run(how: object): Promise<Result> } }
          const result = await axe.run({ resultTypes: ['violations'] })
          return result.violations.filter((one) => one.impact === 'serious' || one.impact === 'critical').map((one) => `${one.id}: ${one.nodes.slice(0, 3).map((node) => node.html.slice(0, 160)).join(' | ')}`)
        })
        assert.deepEqual(found, [], `${view} at ${width}, ${colorScheme}`)
        looks += 1
      }
    }
  }
  console.log(`axe: ${looks} looks at ${views.length} views`)
  quiet(sight)
  await sight.close()
}
