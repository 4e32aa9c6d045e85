// Serves the built page and passes the rest on to the daemon's socket, with the policy of the real door.

import { createReadStream, existsSync } from 'node:fs'
import { type IncomingMessage, type Server, createServer, request } from 'node:http'
import { connect } from 'node:net'
import { extname, join } from 'node:path'
import { pipeline } from 'node:stream'

const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

const KINDS: Record<string, string> = { '.html': 'text/html; charset=utf-8', '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml' }

/** A front in front of `socket`; the answer is its address and how to stop it. */
export async function front(dist: string, socket: string): Promise<{ url: string; stop: () => void }> {
  const api = (path: string): boolean => path.startsWith('/v1/') || path.startsWith('/healthz')
  const server: Server = createServer((incoming, outgoing) => {
    const path = (incoming.url ?? '/').split('?')[0] ?? '/'
    if (api(path)) {
      const onward = request({ socketPath: socket, path: incoming.url, method: incoming.method, headers: incoming.headers }, (answer) => {
        outgoing.writeHead(answer.statusCode ?? 502, answer.headers)
        pipeline(answer, outgoing, () => outgoing.destroy())
      })
      onward.on('error', () => outgoing.destroy())
      outgoing.on('close', () => onward.destroy())
      incoming.pipe(onward)
      return
    }
    const file = join(dist, path)
    const found = path !== '/' && !path.includes('..') && existsSync(file) ? file : join(dist, 'index.html')
    outgoing.writeHead(200, { 'content-type': KINDS[extname(found)] ?? 'application/octet-stream', 'content-security-policy': POLICY })
    createReadStream(found).pipe(outgoing)
  })
  server.on('upgrade', (incoming: IncomingMessage, client, head) => {
    const onward = connect(socket, () => {
      const lines = Object.entries(incoming.headers).map(([name, value]) => `${name}: ${String(value)}`)
      onward.write(`${incoming.method} ${incoming.url} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`)
      onward.write(head)
      onward.pipe(client).pipe(onward)
    })
    onward.on('error', () => client.destroy())
    client.on('error', () => onward.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const port = typeof address === 'object' && address ? address.port : 0
  return {
    url: `http://127.0.0.1:${port}`,
    stop: () => {
      server.closeAllConnections()
      server.close()
    },
  }
}
