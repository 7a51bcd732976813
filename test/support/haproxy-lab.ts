/** One HAProxy with two servers behind it, and clients that hold on to their connections. */
import { Agent } from 'node:http'
import { connect, type ClientHttp2Session } from 'node:http2'
import { type Drain, type DrainReport, select } from 'drainable'
import { haproxyRuntime, type HaproxyRuntimeOptions } from 'drainable/haproxy-runtime'
import type { PresentReading } from 'drainable/provider'
import { freePort, Haproxy, type HaproxyOptions, until } from './haproxy.js'
import { type Answer, Backend, request } from './haproxy-traffic.js'

export type Config = HaproxyOptions['config']

export const web1 = { pool: 'web', member: 's1' }

/** What a drain says of a member that it has proved idle, and that no client comes to any more. */
export const SEALED_IDLE = { outcome: 'idle', sealed: true, verifiedIdle: true } as const

/** A frontend and its backend, persistent by cookie unless told otherwise. */
export interface Site {
  /** Options of its `bind` line. */
  readonly bind?: string
  /** @defaultValue `cookie SRV insert` */
  readonly persistence?: string
  /** More lines of the backend. */
  readonly backend?: string
  /** Options of server s1. */
  readonly s1?: string
}

/** The lines of one; the backend has the name, the frontend `f_` before it. */
export function site(port: (name: string) => number, name: string, more: Site = {}): string {
  const { bind = '', persistence = 'cookie SRV insert', backend = '', s1 = '' } = more
  const cookie = (of: string): string => (persistence.startsWith('cookie') ? `cookie ${of}` : '')
  return `
frontend f_${name}
  bind 127.0.0.1:${port(name)} ${bind}
  default_backend ${name}
backend ${name}
  ${persistence}
${backend}
  server s1 127.0.0.1:${port('s1')} ${cookie('s1')} ${s1}
  server s2 127.0.0.1:${port('s2')} ${cookie('s2')}
`
}

export interface Lab extends AsyncDisposable {
  readonly haproxy: Haproxy
  readonly s1: Backend
  readonly s2: Backend
  /** A provider of it, with the master where there is one that may be known. */
  provider(options?: Partial<HaproxyRuntimeOptions>): ReturnType<typeof haproxyRuntime>
}

export async function lab(
  options: Omit<HaproxyOptions, 'config'> & { config?: Config },
): Promise<Lab> {
  const haproxy = await Haproxy.start({ config: (port) => site(port, 'web'), ...options })
  const s1 = await Backend.start(haproxy.port('s1'), 's1')
  const s2 = await Backend.start(haproxy.port('s2'), 's2')
  const known = (options.mode ?? 'master') === 'master'
  return {
    haproxy,
    s1,
    s2,
    provider: (more) =>
      haproxyRuntime({
        socket: haproxy.socket,
        ...(known ? { master: haproxy.master } : {}),
        ...more,
      }),
    async [Symbol.asyncDispose]() {
      await haproxy[Symbol.asyncDispose]()
      await s1[Symbol.asyncDispose]()
      await s2[Symbol.asyncDispose]()
    },
  }
}

/** Of a drain of one member. */
export function member(report: DrainReport): DrainReport['members'][number] {
  return report.members[0]!
}

/** A member that is there, as just read. */
export async function look(
  lb: ReturnType<typeof haproxyRuntime>,
  pool: string,
  name = 's1',
): Promise<PresentReading> {
  const [reading] = await select(lb, { pool, member: name })
  if (reading?.present !== true) throw new Error(`${pool}/${name} is not there`)
  return reading
}

/** Gives a server another port of this machine, at run time. */
export async function moveServer(
  haproxy: Haproxy,
  pool: string,
  port: number,
  name = 's1',
): Promise<void> {
  await haproxy.cli(`set server ${pool}/${name} addr 127.0.0.1 port ${port}`)
  // 3.x answers first and changes the address a moment later.
  await until(
    async () => (await haproxy.cli(`show servers state ${pool}`)).includes(` ${port} `),
    'the address is changed',
  )
}

/** Gives server s1 of a backend a process of its own behind it, so that it can be counted alone. */
export async function ownBackend(haproxy: Haproxy, pool: string): Promise<Backend> {
  const port = await freePort()
  const backend = await Backend.start(port, pool)
  await moveServer(haproxy, pool, port)
  return backend
}

/** A client with one connection that it keeps. */
export class Client implements Disposable {
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 })
  readonly #port: number
  readonly #cookie: string | undefined

  constructor(port: number, cookie?: string) {
    this.#port = port
    this.#cookie = cookie
  }

  ask(path: string): Promise<Answer> {
    const cookie = this.#cookie === undefined ? {} : { cookie: this.#cookie }
    return request(this.#port, path, { ...cookie, agent: this.#agent })
  }

  [Symbol.dispose](): void {
    this.#agent.destroy()
  }
}

/** A client of HTTP/2 with prior knowledge. */
export class Http2Client implements Disposable {
  readonly #session: ClientHttp2Session

  constructor(port: number) {
    this.#session = connect(`http://127.0.0.1:${port}`)
    this.#session.on('error', () => undefined)
  }

  /** The body; undefined where there is no whole answer. */
  ask(path: string, cookie?: string): Promise<string | undefined> {
    return new Promise((resolve) => {
      const headers = cookie === undefined ? {} : { cookie: `SRV=${cookie}` }
      let text = ''
      try {
        const stream = this.#session.request({ ':path': path, ...headers })
        stream.setEncoding('utf8')
        stream.on('data', (chunk: string) => (text += chunk))
        stream.on('end', () => resolve(text))
        stream.on('error', () => resolve(undefined))
      } catch {
        resolve(undefined)
      }
    })
  }

  [Symbol.dispose](): void {
    this.#session.destroy()
  }
}

/** A request of a client with its own connection that goes on until the test ends it. */
export async function work({ haproxy, s1 }: Lab): Promise<{ end(): Promise<Answer> }> {
  const client = new Client(haproxy.port('web'), 's1')
  const answer = client.ask('/stream')
  await until(() => s1.active === 1, 'in flight')
  return {
    async end() {
      s1.release()
      const ended = await answer
      client[Symbol.dispose]()
      return ended
    },
  }
}

/** Until a drain says that an old worker still holds one piece of work. */
export function untilOldWorker(drained: Drain): Promise<unknown> {
  const isNamed = (): boolean =>
    drained
      .why()
      .some(({ code, text }) => code === 'old-scope' && text.includes('1 still in flight'))
  return until(isNamed, 'the old worker is named')
}

/** How busy the backend was when idle was said; -1 before that. */
export function busyAtIdle(drained: Drain, backend: Backend): () => number {
  let busy = -1
  drained.on('idle', () => (busy = backend.active))
  return () => busy
}
