// The one terminal of the page. Tabs share it: what is not looked at is not subscribed to.

import { SearchAddon } from '@xterm/addon-search'
import { Unicode11Addon } from '@xterm/addon-unicode11'
import { WebglAddon } from '@xterm/addon-webgl'
import { type ITheme, Terminal } from '@xterm/xterm'
import '@xterm/xterm/css/xterm.css'
import type { Theme } from '../app/theme'
import { keepPolicy } from './sheet'

const INK: Record<Theme, ITheme> = {
  light: {
    background: '#fdfcfa', foreground: '#24231f', cursor: '#24231f', cursorAccent: '#fdfcfa', selectionBackground: '#d9d5c9',
    black: '#24231f', red: '#b3261e', green: '#2c6e3f', yellow: '#7d5700', blue: '#2a5db0', magenta: '#8a3a8c', cyan: '#0f6b73', white: '#6f6c64',
    brightBlack: '#6f6c64', brightRed: '#c8362d', brightGreen: '#337d49', brightYellow: '#8a6100', brightBlue: '#3568c0', brightMagenta: '#9a489c', brightCyan: '#147880', brightWhite: '#24231f',
  },
  dark: {
    background: '#131311', foreground: '#dcd9d1', cursor: '#dcd9d1', cursorAccent: '#131311', selectionBackground: '#3c3a34',
    black: '#2a2925', red: '#e5766c', green: '#84b88d', yellow: '#d9b56a', blue: '#86aee6', magenta: '#c895c9', cyan: '#79bcc2', white: '#c9c6bd',
    brightBlack: '#7d7a72', brightRed: '#f08d84', brightGreen: '#9acba2', brightYellow: '#e6c684', brightBlue: '#9dc0f0', brightMagenta: '#d8abd9', brightCyan: '#92cfd5', brightWhite: '#f2efe8',
  },
}

const FONT = 'ui-monospace, "SF Mono", "Cascadia Mono", "JetBrains Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace'

export class Screen {
  readonly host = document.createElement('div')
  readonly #term: Terminal
  readonly #search = new SearchAddon()
  #opened = false
  onInput: (data: string) => void = () => undefined
  renderer: 'webgl' | 'dom' = 'dom'

  constructor(theme: Theme, fontSize: number) {
    keepPolicy()
    this.host.className = 'screen'
    this.#term = new Terminal({
      allowProposedApi: true,
      cols: 80,
      rows: 24,
      scrollback: 10_000,
      fontFamily: FONT,
      fontSize,
      lineHeight: 1.15,
      theme: INK[theme],
      minimumContrastRatio: 4.5,
      disableStdin: true,
      cursorBlink: false,
      cursorInactiveStyle: 'outline',
      screenReaderMode: false,
      // What an agent prints must not lead anywhere.
      linkHandler: { activate: () => undefined },
    })
    this.#term.loadAddon(this.#search)
    this.#term.loadAddon(new Unicode11Addon())
    this.#term.unicode.activeVersion = '11'
    silence(this.#term)
    this.#term.onData((data) => this.onInput(data))
  }

  /** Puts the screen into the page; the first time, it is made there. */
  mount(parent: HTMLElement): void {
    parent.append(this.host)
    if (this.#opened) return
    this.#opened = true
    this.#term.open(this.host)
    this.#term.textarea?.setAttribute('aria-label', 'Terminal')
    try {
      const webgl = new WebglAddon()
      webgl.onContextLoss(() => {
        webgl.dispose()
        this.renderer = 'dom'
      })
      this.#term.loadAddon(webgl)
      this.renderer = 'webgl'
    } catch {
      // No WebGL here: the DOM draws it, more slowly.
    }
    this.host.dataset['renderer'] = this.renderer
  }

  draw(cols: number, rows: number, data: string): void {
    this.#term.reset()
    this.#term.resize(cols, rows)
    this.#term.write(data)
  }

  write(data: Uint8Array): void {
    this.#term.write(data)
  }

  resize(cols: number, rows: number): void {
    this.#term.resize(Math.max(2, cols), Math.max(1, rows))
  }

  clear(): void {
    this.#term.reset()
  }

  set theme(theme: Theme) {
    this.#term.options.theme = INK[theme]
  }

  set fontSize(size: number) {
    this.#term.options.fontSize = size
  }

  get fontSize(): number {
    return this.#term.options.fontSize ?? 13
  }

  /** Whether keys reach the agent. */
  set control(on: boolean) {
    this.#term.options.disableStdin = !on
    this.#term.options.cursorBlink = on
  }

  get size(): { cols: number; rows: number } {
    return { cols: this.#term.cols, rows: this.#term.rows }
  }

  /** How many columns and rows fit into a box, by the size of a cell now. */
  fit(width: number, height: number): { cols: number; rows: number } | null {
    const cell = this.cell
    if (!cell) return null
    return { cols: Math.max(20, Math.floor(width / cell.width)), rows: Math.max(5, Math.floor(height / cell.height)) }
  }

  get cell(): { width: number; height: number } | null {
    const screen = this.host.querySelector<HTMLElement>('.xterm-screen')
    if (!screen || screen.offsetWidth === 0) return null
    return { width: screen.offsetWidth / this.#term.cols, height: screen.offsetHeight / this.#term.rows }
  }

  focus(): void {
    this.#term.focus()
  }

  blur(): void {
    this.#term.blur()
  }

  find(text: string, back = false): boolean {
    const how = { incremental: false }
    return back ? this.#search.findPrevious(text, how) : this.#search.findNext(text, how)
  }

  unfind(): void {
    this.#search.clearDecorations()
    this.#term.clearSelection()
  }

  /** What is selected, or all that there is. */
  get text(): string {
    const selected = this.#term.getSelection()
    if (selected) return selected
    const buffer = this.#term.buffer.active
    const lines: string[] = []
    for (let row = 0; row < buffer.length; row += 1) lines.push(buffer.getLine(row)?.translateToString(true) ?? '')
    return lines.join('\n').trimEnd()
  }
}

/** A program's questions to its terminal are answered by the daemon, once; a page that looks on is silent. */
function silence(term: Terminal): void {
  const never = (): boolean => true
  const asks = (data: string): boolean => data.split(';').includes('?')
  for (const id of [{ final: 'c' }, { prefix: '>', final: 'c' }, { prefix: '=', final: 'c' }, { final: 'n' }, { prefix: '?', final: 'n' }, { final: 't' }, { prefix: '>', final: 'q' }, { intermediates: '$', final: 'p' }, { prefix: '?', intermediates: '$', final: 'p' }]) {
    term.parser.registerCsiHandler(id, never)
  }
  for (const id of [{ intermediates: '$', final: 'q' }, { intermediates: '+', final: 'q' }]) term.parser.registerDcsHandler(id, never)
  for (const id of [4, 10, 11, 12]) term.parser.registerOscHandler(id, asks)
  // The clipboard, titles and notifications are the user's.
  for (const id of [0, 1, 2, 9, 52, 777]) term.parser.registerOscHandler(id, never)
}
