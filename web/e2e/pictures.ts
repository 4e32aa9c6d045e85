// The pictures of the README and of the docs: `cargo xtask pictures`.

import { join } from 'node:path'
import { login } from './login'
import { Project, closeBrowser, folder, open, root } from './world'

const into = folder(join(root, '../docs/images'))
const team = new Project(join(root, 'e2e/team'))

try {
  await team.up()
  const [done] = await login(team)
  const sight = await open(team, { theme: 'dark' })
  for (const [name, path] of [['handoff', `/runs/${done}?handoff=h8`], ['inbox', '/inbox']] as const) {
    await sight.page.goto(sight.url + path)
    await sight.page.waitForFunction(() => !document.querySelector('.waiting'))
    await sight.page.waitForLoadState('networkidle', { timeout: 800 }).catch(() => undefined)
    await sight.page.screenshot({ path: join(into, `${name}.png`) })
  }
  if (sight.complaints.length) throw new Error(sight.complaints.join('\n'))
  await sight.close()
} finally {
  await team.down()
  await closeBrowser()
}
