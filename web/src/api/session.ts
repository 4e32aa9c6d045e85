// The session of this browser with the daemon. It is kept by the page's origin, which includes the
// port: a cookie would be sent to every server on this machine. It ends with the daemon.

const PLACE = 'stafette-session'

/** The name by which the daemon knows a WebSocket of the page. */
const PROTOCOL = 'stafette'

function session(): string | null {
  try {
    return localStorage.getItem(PLACE)
  } catch {
    // A browser that keeps nothing for this page.
    return null
  }
}

/** Takes the key of a launch link out of the address, and exchanges it for a session. */
export async function enter(): Promise<void> {
  const key = new URLSearchParams(location.hash.slice(1)).get('key')
  if (!key) return
  // A key works once; nobody should find it in the history.
  history.replaceState(history.state, '', location.pathname + location.search)
  try {
    const answer = await fetch('/v1/session', {
      method: 'POST',
      credentials: 'omit',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ key }),
      signal: AbortSignal.timeout(20_000),
    })
    if (answer.ok) localStorage.setItem(PLACE, ((await answer.json()) as { session: string }).session)
  } catch {
    // Without a session the first question is refused, and the page says what to do.
  }
}

/** What a request says about who asks. */
export function credentials(): Record<string, string> {
  const known = session()
  return known ? { authorization: `Bearer ${known}` } : {}
}

/** The same for a WebSocket, which can carry no header of ours. */
export function protocols(): string[] {
  const known = session()
  return known ? [PROTOCOL, `session.${known}`] : [PROTOCOL]
}
