// Pictures of every view in both themes at three widths: `npm run shots`, then look into web/shots.

import { join } from 'node:path'
import { Project, closeBrowser, folder, open, root, until } from './world'

const WIDTHS = [1440, 1024, 360] as const
const THEMES = ['light', 'dark'] as const

const only = process.argv[2] ?? ''
const into = folder(join(root, 'shots'))

const project = new Project(join(root, 'e2e/team'))
const empty = new Project(join(root, 'e2e/team'))
try {
  await project.up()
  await empty.up()
  const done = await project.start('Add login with refresh tokens')
  await until('the question', async () => (await project.status(done)).waiting_on === 'human')
  const [question] = (await project.get('/v1/inbox')) as { id: string }[]
  await project.post(`/v1/inbox/${done}:${question!.id}`, { text: 'Signed tokens (JWT)', by: 'test' })
  await until('the end', async () => (await project.status(done)).status === 'succeeded', 60_000)
  const asks = await project.start('Let people sign in with a passkey, and keep passwords for those who have none')
  await until('another question', async () => (await project.status(asks)).waiting_on === 'human')
  const short = (run: string): string => run.slice(-8)
  const views: [string, Project, string][] = [
    ['empty', empty, '/'],
    ['inbox', project, '/inbox'],
    ['asked', project, `/runs/${short(asks)}`],
    ['done', project, `/runs/${short(done)}`],
    ['agent', project, `/runs/${short(done)}/agents/builder`],
    ['graph', project, `/runs/${short(done)}/graph`],
    ['numbers', project, `/runs/${short(done)}/numbers`],
    ['events', project, `/runs/${short(done)}/events`],
    ['legs', project, `/runs/${short(done)}/track`],
    ['handoff', project, `/runs/${short(done)}?handoff=h8`],
    ['refused', project, `/runs/${short(done)}?handoff=h5`],
    ['past', project, `/runs/${short(done)}?at=45`],
    ['lost', project, '/runs/00000000'],
    ['palette', project, `/runs/${short(done)}#palette`],
    ['keys', project, `/runs/${short(done)}#keys`],
  ]
  for (const theme of THEMES) {
    for (const width of WIDTHS) {
      for (const [name, of, path] of views) {
        const file = `${name}-${width}-${theme}`
        if (only && !file.includes(only)) continue
        const [address, over] = path.split('#')
        const sight = await open(of, { width, height: width === 360 ? 740 : width === 1024 ? 768 : 900, theme, path: address! })
        await sight.page.waitForFunction(() => !document.querySelector('.waiting'))
        if (over === 'palette') await sight.page.keyboard.press('Control+k')
        if (over === 'keys') await sight.page.keyboard.press('?')
        await sight.page.evaluate(() => new Promise((next) => requestAnimationFrame(() => requestAnimationFrame(next))))
        await sight.page.screenshot({ path: join(into, `${file}.png`) })
        for (const complaint of sight.complaints) console.error(`${file}: ${complaint}`)
        await sight.close()
      }
    }
  }
  console.log(`Pictures are in ${into}`)
} finally {
  await project.down()
  await empty.down()
  await closeBrowser()
}
