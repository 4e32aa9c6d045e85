// A real daemon in a project of its own, and a real browser.

import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { type Browser, type BrowserContext, type Page, chromium } from 'playwright-core'
import { front } from './front'

export const root = resolve(import.meta.dirname, '..')
const program = process.env['STAFETTE'] ?? resolve(root, '../target/debug/stafette')

const PATIENCE = 30_000

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

export class Project {
  readonly folder: string
  #daemon: ChildProcess | null = null

  constructor(from: string | ((folder: string) => void)) {
    this.folder = mkdtempSync(join(tmpdir(), 'stafette-page-'))
    if (typeof from === 'string') cpSync(from, this.folder, { recursive: true })
    else from(this.folder)
    const git = (...words: string[]): void => void execFileSync('git', ['-c', 'user.name=page', '-c', 'user.email=page@localhost', ...words], { cwd: this.folder, stdio: 'ignore' })
    if (!existsSync(join(this.folder, '.git'))) {
      writeFileSync(join(this.folder, '.gitignore'), '/.stafette/\n')
      git('init', '--quiet')
      git('add', '--all')
      git('commit', '--quiet', '--message', 'a project')
    }
    this.stafette('trust', '--yes')
  }

  stafette(...words: string[]): string {
    return execFileSync(program, words, { cwd: this.folder, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
  }

  get socket(): string {
    return join(this.folder, '.stafette/daemon.sock')
  }

  async up(): Promise<void> {
    this.#daemon = spawn(program, ['up', '--foreground'], { cwd: this.folder, stdio: 'ignore' })
    await until('the daemon answers', () => this.get('/healthz').then(Boolean, () => false))
  }

  /** As a power cut would. */
  async kill(): Promise<void> {
    const daemon = this.#daemon
    if (!daemon) return
    const gone = new Promise((next) => daemon.once('exit', next))
    daemon.kill('SIGKILL')
    await gone
    this.#daemon = null
  }

  async down(): Promise<void> {
    const daemon = this.#daemon
    this.#daemon = null
    if (daemon && daemon.exitCode === null) {
      const gone = new Promise((next) => daemon.once('exit', next))
      daemon.kill('SIGTERM')
      const timer = setTimeout(() => daemon.kill('SIGKILL'), 5000)
      await gone
      clearTimeout(timer)
    }
    rmSync(this.folder, { recursive: true, force: true })
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

  /** A link that lets a browser in, from a daemon that has a door and a page. */
  async launch(): Promise<string | null> {
    const made = (await this.post('/v1/launch')) as { url?: string }
    return made.url ?? null
  }

  async start(what: string): Promise<string> {
    const { run } = (await this.post('/v1/runs', { request: what, by: 'test' })) as { run: string }
    return run
  }

  async status(run: string): Promise<{ status: string; waiting_on?: string }> {
    return (await this.get(`/v1/runs/${run}`)) as { status: string; waiting_on?: string }
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

export async function open(project: Project, how: { width?: number; height?: number; theme?: 'light' | 'dark'; path?: string; door?: 'front' } = {}): Promise<Sight> {
  browser ??= await chromium.launch({
    executablePath: process.env['STAFETTE_CHROMIUM'] ?? '/usr/bin/chromium',
    args: ['--no-sandbox', '--enable-unsafe-swiftshader', '--ignore-gpu-blocklist'],
  })
  // The daemon's own door with its own page, unless a story has to outlive the daemon: its port and its
  // visitors are forgotten when it ends.
  const launch = how.door ? null : await project.launch()
  const door = launch ? { url: new URL(launch).origin, stop: () => undefined } : await front(join(root, 'dist'), project.socket)
  const context = await browser.newContext({
    viewport: { width: how.width ?? 1440, height: how.height ?? 900 },
    colorScheme: how.theme ?? 'light',
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
    if (!request.url().startsWith(door.url) && !request.url().startsWith('data:')) complaints.push(`asked outside: ${request.url()}`)
  })
  page.setDefaultTimeout(PATIENCE)
  if (launch) {
    await page.goto(launch)
    await page.waitForURL(`${door.url}/`)
  }
  if (!launch || how.path) await page.goto(door.url + (how.path ?? '/'))
  return {
    page,
    context,
    url: door.url,
    complaints,
    async close() {
      await context.close()
      door.stop()
    },
  }
}

export async function closeBrowser(): Promise<void> {
  await browser?.close()
  browser = null
}

export function folder(path: string): string {
  mkdirSync(path, { recursive: true })
  return path
}
