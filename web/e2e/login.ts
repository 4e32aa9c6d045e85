// The story of the pictures: a team adds a login, and asks before it goes on.

import { type Project, until } from './world'

const short = (run: string): string => run.slice(-8)

/** Two runs of the team: one that is over, one that asks. */
export async function login(team: Project): Promise<[string, string]> {
  const done = await team.start('Add login with refresh tokens')
  await until('the question', async () => (await team.status(done)).waiting_on === 'human')
  const [question] = (await team.get('/v1/inbox')) as { id: string }[]
  await team.post(`/v1/inbox/${done}:${question!.id}`, { text: 'Signed tokens (JWT)', by: 'test' })
  await until('the end', async () => (await team.status(done)).status === 'succeeded', 60_000)
  const asks = await team.start('Let people sign in with a passkey, and keep passwords for those who have none')
  await until('another question', async () => (await team.status(asks)).waiting_on === 'human')
  return [short(done), short(asks)]
}
