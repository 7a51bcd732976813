/** Pools of every kind, and clients that fit them. */
import { setTimeout as pass } from 'node:timers/promises'
import { Random } from '../../model/random.js'
import { Client, Http2Client } from '../haproxy-lab.js'
import { type Backend, Tunnel } from '../haproxy-traffic.js'

/** All that a server holds is let go of after so long at most, ms, again and again: long enough to outlive every quiet time. */
const WORK = 4_000
/** A connection that is no request lives so long at most, ms. */
const TUNNEL = 1_500

export type Servers = Readonly<Record<'s1' | 's2', Backend>>

/** What a pool looks like; the n-th has the n-th kind, and so on round. */
const KINDS = ['cookie', 'queue', 'stick', 'http2', 'tunnel'] as const
export type Kind = (typeof KINDS)[number]

export function kindOf(lane: number): Kind {
  return KINDS[lane % KINDS.length]!
}

/** A frontend and a backend of that kind. */
export function poolOf(kind: Kind, pool: string, port: (name: string) => number): string {
  const cookie = kind === 'stick' ? '' : '  cookie SRV insert\n'
  const stick = kind === 'stick' ? '  stick-table type ip size 10\n  stick on src\n' : ''
  const more = kind === 'queue' ? '  option redispatch\n' : '  no option redispatch\n'
  const server = (name: string): string =>
    `  server ${name} 127.0.0.1:${port(`${pool}_${name}`)}${cookie === '' ? '' : ` cookie ${name}`}${kind === 'queue' ? ' maxconn 2' : ''}`
  return `
frontend f_${pool}
  bind 127.0.0.1:${port(pool)}${kind === 'http2' ? ' proto h2' : ''}
  default_backend ${pool}
backend ${pool}
${cookie}${stick}${more}${server('s1')}
${server('s2')}`
}

/** Clients of one pool: with a cookie and without, each on a connection that it keeps. */
export class Traffic {
  requests = 0
  readonly #port: number
  readonly #kind: Kind
  readonly #stop = new AbortController()
  readonly #clients: Promise<void>[]
  readonly #work: Promise<void>[]
  #over = false

  constructor(kind: Kind, port: number, { s1, s2 }: Servers) {
    this.#kind = kind
    this.#port = port
    const cookies = ['s1', 's2', 's1', 's2', undefined]
    this.#clients = cookies.map((cookie, index) => this.#play(new Random(index), cookie))
    this.#work = [s1, s2].map((server, index) => this.#release(new Random(10 + index), server))
  }

  async end(): Promise<void> {
    this.#stop.abort()
    await Promise.all(this.#clients)
    this.#over = true
    await Promise.all(this.#work)
  }

  async #release(random: Random, server: Backend): Promise<void> {
    while (!this.#over) {
      await pass(random.int(20, this.#stop.signal.aborted ? 40 : WORK))
      server.release()
    }
  }

  #play(random: Random, cookie: string | undefined): Promise<void> {
    if (this.#kind === 'http2') return this.#multiplex(random, cookie)
    if (this.#kind === 'tunnel' && cookie !== undefined) return this.#talk(random, cookie)
    return this.#ask(random, cookie)
  }

  async #ask(random: Random, cookie: string | undefined): Promise<void> {
    using client = new Client(this.#port, cookie)
    await this.#again(random, cookie, async () => {
      await client.ask(random.pick(['/', '/hold', '/stream']))
    })
  }

  /** Several streams on one connection; a new one where HAProxy has ended it. */
  async #multiplex(random: Random, cookie: string | undefined): Promise<void> {
    let client = new Http2Client(this.#port)
    await this.#again(random, cookie, async () => {
      const paths = Array.from({ length: random.int(1, 3) }, () =>
        random.pick(['/', '/hold', '/stream']),
      )
      const answers = await Promise.all(paths.map((path) => client.ask(path, cookie)))
      if (answers.every((body) => body !== undefined)) return
      client[Symbol.dispose]()
      client = new Http2Client(this.#port)
    })
    client[Symbol.dispose]()
  }

  /** A WebSocket for a while, then another. */
  async #talk(random: Random, cookie: string): Promise<void> {
    await this.#again(random, cookie, async () => {
      // HAProxy may be paused, or end it with its process.
      const tunnel = await Tunnel.websocket(this.#port, cookie).catch(() => undefined)
      if (tunnel === undefined) return
      await pass(random.int(0, TUNNEL))
      await tunnel[Symbol.asyncDispose]()
    })
  }

  async #again(
    random: Random,
    cookie: string | undefined,
    once: () => Promise<void>,
  ): Promise<void> {
    while (!this.#stop.signal.aborted) {
      await once()
      this.requests += 1
      await pass(random.int(0, cookie === undefined ? 300 : 700))
    }
  }
}
