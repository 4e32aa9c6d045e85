// A real daemon in a project of its own, and a real browser at the daemon's own door.

import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { type Browser, type BrowserContext, type Page, chromium } from 'playwright-core'

export const root = resolve(import.meta.dirname, '..')
const program = process.env['STAFETTE'] ?? resolve(root, '../target/debug/stafette')

/** Longer than anything takes, however busy the machine is, and though it stands still for a while. */
const PATIENCE = 120_000

/** Waits until something is so. */
export async function until<T>(what: string, is: () => Promise<T | undefined | false> | T | undefined | false, patience = PATIENCE): Promise<T> {
  const end = Date.now() + patience
  for (;;) {
    const found = await is()
    if (found) return found
    if (Date.now() > end) throw new Error(`${what}: not within ${patience / 1000} s`)
    await new Promise((next) => setTimeout(next, 20))
  }
}

async function gone(child: ChildProcess): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) await new Promise((next) => child.once('exit', next))
}

export class Project {
  readonly folder: string
  readonly #home: string
  /** How far the clock of the daemon and of its page is from the system's. */
  readonly #shift: number
  #daemon: ChildProcess | null = null

  /**
   * A project with the files of a folder, or with what is laid out; nothing makes an empty folder. Its clock shows the
   * system's time, or begins at a moment of its own.
   */
  constructor(from: string | ((folder: string) => void) | null, moment?: string) {
    this.#home = mkdtempSync(join(tmpdir(), 'stafette-page-'))
    this.#shift = moment ? Date.parse(moment) - Date.now() : 0
    this.folder = join(this.#home, 'project')
    if (from === null) return
    mkdirSync(this.folder)
    if (typeof from === 'string') cpSync(from, this.folder, { recursive: true })
    else from(this.folder)
    const git = (...words: string[]): void => void execFileSync('git', ['-c', 'user.name=page', '-c', 'user.email=page@localhost', ...words], { cwd: this.folder, stdio: 'ignore' })
    writeFileSync(join(this.folder, '.gitignore'), '/.stafette/\n')
    git('init', '--quiet')
    git('add', '--all')
    git('commit', '--quiet', '--message', 'a project')
    this.stafette('trust', '--yes')
  }

  /** The user's own settings are not these projects'. */
  get #env(): NodeJS.ProcessEnv {
    const env = { ...process.env, HOME: this.#home, XDG_CONFIG_HOME: '', XDG_DATA_HOME: '', XDG_STATE_HOME: '' }
    if (!this.#shift) return env
    const clock = join(this.#home, 'clock')
    writeFileSync(clock, String(this.#shift))
    return { ...env, STAFETTE_CLOCK_SHIFT: clock }
  }

  /** What its clock shows. */
  now(): number {
    return Date.now() + this.#shift
  }

  /** Whether that is another time than everybody else's. */
  get isElsewhen(): boolean {
    return this.#shift !== 0
  }

  stafette(...words: string[]): string {
    return execFileSync(program, words, { cwd: this.folder, env: this.#env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
  }

  /** `stafette demo`, which makes the project by itself; its last words. */
  demo(): { status: string; handoffs: number; lost: number; repeated: number } {
    const words = ['demo', '--headless', '--json', '--dir', this.folder]
    const said = execFileSync(program, words, { cwd: this.#home, env: this.#env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
    this.stafette('trust', '--yes')
    return JSON.parse(said)
  }

  /**
   * `stafette demo --open`: the link that it shows, how to let its agents commit, and how to have enough of it. They
   * are quick: without a word to wait for they would be done before anybody looks.
   */
  async watchedDemo(): Promise<{ link: string; go: () => void; end: () => Promise<number | null> }> {
    const [bin, start] = [folder(join(this.#home, 'bin')), join(this.#home, 'go')]
    const [path, git] = [process.env['PATH'] ?? '', execFileSync('sh', ['-c', 'command -v git'], { encoding: 'utf8' }).trim()]
    const waits = `case "$*" in *"a little program"*) ;; *" commit "* | "commit "*) while [ ! -e '${start}' ]; do sleep 0.05; done ;; esac`
    writeFileSync(join(bin, 'git'), `#!/bin/sh\n${waits}\nexec '${git}' "$@"\n`, { mode: 0o755 })
    const words = ['demo', '--open', '--headless', '--dir', this.folder]
    const demo = spawn(program, words, { cwd: this.#home, env: { ...this.#env, PATH: `${bin}:${path}` }, stdio: ['pipe', 'ignore', 'pipe'] })
    this.#daemon = demo
    let said = ''
    demo.stderr.on('data', (bytes) => (said += String(bytes)))
    const link = await until('the link', () => /Watch it: (\S+)/.exec(said)?.[1])
    const end = async (): Promise<number | null> => {
      demo.stdin.end('\n')
      await gone(demo)
      return demo.exitCode
    }
    return { link, go: () => writeFileSync(start, ''), end }
  }

  get socket(): string {
    const lock = readFileSync(join(this.folder, '.stafette/lock'), 'utf8')
    return (JSON.parse(lock) as { socket: string }).socket
  }

  isUp(): Promise<boolean> {
    return this.get('/healthz').then(Boolean, () => false)
  }

  async up(): Promise<void> {
    this.#daemon = spawn(program, ['up', '--foreground'], { cwd: this.folder, env: this.#env, stdio: 'ignore' })
    await until('the daemon answers', () => this.isUp())
  }

  /** As a power cut would. */
  async kill(): Promise<void> {
    const daemon = this.#daemon
    if (!daemon) return
    daemon.kill('SIGKILL')
    await gone(daemon)
    this.#daemon = null
  }

  async down(): Promise<void> {
    const daemon = this.#daemon
    this.#daemon = null
    if (daemon) {
      daemon.kill('SIGTERM')
      const timer = setTimeout(() => daemon.kill('SIGKILL'), 60_000)
      await gone(daemon)
      clearTimeout(timer)
    }
    rmSync(this.#home, { recursive: true, force: true, maxRetries: 5 })
  }

  get(path: string): Promise<unknown> {
    return this.#ask('GET', path)
  }

  post(path: string, body: object = {}): Promise<unknown> {
    return this.#ask('POST', path, JSON.stringify(body))
  }

  #ask(method: string, path: string, body?: string): Promise<unknown> {
    return new Promise((done, failed) => {
      const headers = body ? { 'content-type': 'application/json' } : {}
      const asked = request({ socketPath: this.socket, path, method, headers }, (answer) => {
        let text = ''
        answer.on('data', (part: Buffer) => (text += part.toString()))
        answer.on('end', () => {
          try {
            done(JSON.parse(text))
          } catch {
            done(text)
          }
        })
      })
      asked.on('error', failed)
      asked.end(body)
    })
  }

  /** A link that lets a browser in. */
  async launch(): Promise<string> {
    return ((await this.post('/v1/launch')) as { url: string }).url
  }

  async start(what: string): Promise<string> {
    const { run } = (await this.post('/v1/runs', { request: what, by: 'test' })) as { run: string }
    return run
  }

  async status(run: string): Promise<{ status: string; waiting_on?: string }> {
    return (await this.get(`/v1/runs/${run}`)) as { status: string; waiting_on?: string }
  }

  async events(run: string): Promise<({ seq: number; event: string } & Record<string, unknown>)[]> {
    const text = await this.get(`/v1/runs/${run}/events`)
    // One line is JSON as a whole.
    if (typeof text !== 'string') return [text as { seq: number; event: string }]
    return text.trim().split('\n').map((line) => JSON.parse(line))
  }

  /** Types a line into an agent's terminal. */
  async type(run: string, agent: string, text: string): Promise<void> {
    const sent = (await this.post(`/v1/runs/${run}/terminals/${agent}/send`, { text, submit: true })) as { submitted?: boolean }
    if (!sent.submitted) throw new Error(`“${text}” did not reach ${agent}: ${JSON.stringify(sent)}`)
  }
}

export interface Sight {
  page: Page
  context: BrowserContext
  url: string
  /** What the browser complained about: errors, and everything that the policy stopped. */
  complaints: string[]
  close(): Promise<void>
}

let browser: Browser | null = null

export async function open(project: Project, how: { width?: number; height?: number; theme?: 'light' | 'dark'; path?: string; launch?: string; zone?: string } = {}): Promise<Sight> {
  browser ??= await chromium.launch({
    executablePath: process.env['STAFETTE_CHROMIUM'] ?? '/usr/bin/chromium',
    args: ['--no-sandbox', '--enable-unsafe-swiftshader', '--ignore-gpu-blocklist'],
  })
  const launch = how.launch ?? (await project.launch())
  const url = new URL(launch).origin
  const context = await browser.newContext({
    viewport: { width: how.width ?? 1440, height: how.height ?? 900 },
    colorScheme: how.theme ?? 'light',
    ...(how.zone ? { timezoneId: how.zone } : {}),
    permissions: ['clipboard-read', 'clipboard-write'],
    hasTouch: (how.width ?? 1440) < 700,
  })
  const page = await context.newPage()
  const complaints: string[] = []
  page.on('pageerror', (error) => complaints.push(`error: ${error.message}`))
  page.on('console', (message) => {
    const text = message.text()
    // A daemon that was killed on purpose is not the page's fault.
    if (message.type() === 'error' && !/Failed to load resource|WebSocket connection|ERR_/.test(text)) complaints.push(text)
  })
  page.on('request', (request) => {
    if (!request.url().startsWith(`${url}/`) && !request.url().startsWith('data:')) complaints.push(`asked outside: ${request.url()}`)
  })
  page.setDefaultTimeout(PATIENCE)
  if (project.isElsewhen) await page.clock.setFixedTime(project.now())
  await page.goto(launch)
  await page.waitForURL(`${url}/`)
  await page.locator('#app > *').first().waitFor()
  if (how.path) await page.goto(url + how.path)
  return { page, context, url, complaints, close: () => context.close() }
}

export async function closeBrowser(): Promise<void> {
  await browser?.close()
  browser = null
}

export function folder(path: string): string {
  mkdirSync(path, { recursive: true })
  return path
}
