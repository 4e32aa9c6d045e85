// One live terminal: a snapshot first, then the bytes since. Read-only unless control was taken.

import { liveAddress } from '../api/client'
import { protocols } from '../api/session'

export interface Ears {
  snapshot(cols: number, rows: number, data: string): void
  bytes(data: Uint8Array): void
  resize(cols: number, rows: number): void
  state(state: string, note: string): void
  closed(note: string, final: boolean): void
}

interface Told {
  type: string
  cols?: number
  rows?: number
  state?: string
  data?: string
  note?: string | null
}

const FIRST_WAIT = 300
const LONGEST_WAIT = 5000

export class Live {
  readonly #run: string
  readonly #agent: string
  readonly #write: boolean
  readonly #ears: Ears
  #socket: WebSocket | null = null
  #wait = FIRST_WAIT
  #timer = 0
  #over = false

  constructor(run: string, agent: string, write: boolean, ears: Ears) {
    this.#run = run
    this.#agent = agent
    this.#write = write
    this.#ears = ears
    this.#open()
  }

  #open(): void {
    const socket = new WebSocket(liveAddress(this.#run, this.#agent, this.#write), protocols())
    socket.binaryType = 'arraybuffer'
    this.#socket = socket
    socket.onmessage = ({ data }: MessageEvent<string | ArrayBuffer>) => {
      this.#wait = FIRST_WAIT
      if (typeof data === 'string') this.#told(JSON.parse(data) as Told)
      else this.#ears.bytes(new Uint8Array(data))
    }
    socket.onclose = () => {
      if (this.#over) return
      this.#ears.closed('The connection broke; it is made again', false)
      this.#timer = window.setTimeout(() => this.#open(), this.#wait)
      this.#wait = Math.min(LONGEST_WAIT, this.#wait * 2)
    }
  }

  #told(told: Told): void {
    switch (told.type) {
      case 'snapshot':
        this.#ears.snapshot(told.cols ?? 80, told.rows ?? 24, told.data ?? '')
        this.#ears.state(told.state ?? '', '')
        break
      case 'state':
        this.#ears.state(told.state ?? '', told.note ?? '')
        break
      case 'resize':
        this.#ears.resize(told.cols ?? 80, told.rows ?? 24)
        break
      case 'end':
        this.#over = true
        this.#ears.closed(told.note ?? 'The session is over', true)
        break
    }
  }

  input(data: string): void {
    this.#send({ type: 'input', data })
  }

  resize(cols: number, rows: number): void {
    this.#send({ type: 'resize', cols, rows })
  }

  #send(wish: object): void {
    if (this.#write && this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify(wish))
  }

  close(): void {
    this.#over = true
    clearTimeout(this.#timer)
    this.#socket?.close()
  }
}
