/** A rolling replacement that never ends, under reloads: what a deploy meets behind an ingress controller. */
import { setTimeout as pass } from 'node:timers/promises'
import { drain, isDrainableError, ready } from 'drainable'
import { haproxyRuntime } from 'drainable/haproxy-runtime'
import type { Engine } from '../engines.js'
import { Haproxy, until } from '../haproxy.js'
import { Backend, request } from '../haproxy-traffic.js'

const NAMES = ['s1', 's2', 's3'] as const
/** Clients without a cookie, and one for each server with its cookie; ms between two requests of each. */
const CLIENTS = 4
const THINKS = 5
/** How long a server is down. */
const DOWN = 400

/** How it is played. */
export interface RollOptions {
  /** Milliseconds in all, and between two reloads. */
  readonly lasts: number
  readonly reloadEvery: number
  /** Whether states are written before each reload and read by the new process. */
  readonly stateFile: boolean
}

/** What came of it. */
export interface Rolled {
  readonly turns: number
  readonly reloads: number
  /** The longest that it took from the state file to the new process, ms: what changed meanwhile is not in the file. */
  readonly slowest: number
  readonly requests: number
  /** Of clients without a cookie. */
  readonly failed: number
  /** Of clients with one. */
  readonly stickyFailed: number
  /** Turns that ended otherwise than in idle, in words. */
  readonly refused: readonly string[]
}

/** Replaces one server after another for so long, with `retries 0` and requests on new connections all the time. */
export async function rollUnderReloads(
  engine: Engine,
  { lasts, reloadEvery, stateFile }: RollOptions,
): Promise<Rolled> {
  await using haproxy = await Haproxy.start({
    engine,
    global: `  stats maxconn 100\n${stateFile ? '  server-state-file state' : ''}`,
    config: (port) => `
frontend f_web
  bind 127.0.0.1:${port('web')}
  default_backend web
backend web
  retries 0
  cookie SRV insert
${stateFile ? '  load-server-state-from-file global\n' : ''}${NAMES.map((name) => `  server ${name} 127.0.0.1:${port(name)} cookie ${name} check inter 200ms fall 10`).join('\n')}`,
  })
  const start = (name: string): Promise<Backend> => Backend.start(haproxy.port(name), name)
  const backends = new Map(
    await Promise.all(NAMES.map(async (name) => [name, await start(name)] as const)),
  )
  for (const name of NAMES) {
    const up = async (): Promise<boolean> => (await haproxy.stat('web', name, 'status')) === 'UP'
    await until(up, `${name} is up`)
  }
  const over = new AbortController()
  const seen = { turns: 0, reloads: 0, slowest: 0, requests: 0, failed: 0, stickyFailed: 0 }
  const refused: string[] = []
  const client = async (cookie?: string): Promise<void> => {
    while (!over.signal.aborted) {
      const { status, cut } = await request(
        haproxy.port('web'),
        '/',
        cookie === undefined ? {} : { cookie },
      )
      seen.requests += 1
      if (status !== 200 || cut) seen[cookie === undefined ? 'failed' : 'stickyFailed'] += 1
      await pass(THINKS)
    }
  }
  const reloads = async (): Promise<void> => {
    for (let at = reloadEvery; at < lasts; at += reloadEvery) {
      await pass(reloadEvery)
      const from = performance.now()
      if (stateFile) await haproxy.keepState()
      await haproxy.reload()
      seen.slowest = Math.max(seen.slowest, performance.now() - from)
      seen.reloads += 1
    }
  }
  await using lb = haproxyRuntime({ socket: haproxy.socket, master: haproxy.master })
  const replace = async (name: (typeof NAMES)[number]): Promise<void> => {
    const ref = { pool: 'web', member: name }
    await drain(lb, ref, { timeout: '30s', escalateAfter: '300ms' }, async () => {
      await backends.get(name)![Symbol.asyncDispose]()
      await pass(DOWN)
      backends.set(name, await start(name))
    })
    await ready(lb, ref, { waitHealthy: '20s' })
    seen.turns += 1
  }
  const clients = [...Array.from({ length: CLIENTS }, () => undefined), ...NAMES].map(client)
  const reloading = reloads()
  const end = performance.now() + lasts
  for (let turn = 0; performance.now() < end; turn += 1) {
    try {
      await replace(NAMES[turn % NAMES.length]!)
    } catch (error) {
      if (!isDrainableError(error)) throw error
      refused.push(`${error.code}: ${error.message}`)
    }
  }
  await reloading
  over.abort()
  await Promise.all(clients)
  for (const backend of backends.values()) await backend[Symbol.asyncDispose]()
  return { ...seen, refused }
}
