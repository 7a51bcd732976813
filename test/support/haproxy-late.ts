/** A HAProxy of two threads, of which the second is late: it is busy with pieces of work that can't be interrupted. */
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createConnection } from 'node:net'
import { join } from 'node:path'
import { haproxyRuntime, type HaproxyRuntimeOptions } from 'drainable/haproxy-runtime'
import type { Engine } from './engines.js'
import { cli, Haproxy, until } from './haproxy.js'
import { Backend } from './haproxy-traffic.js'

/** How long one piece lasts, ms. HAProxy's watchdog ends a process in which one lasts for seconds. */
const PIECE = 150

const BUSY = `
core.register_fetches("busy", function()
  local stop = os.clock() + ${PIECE / 1_000}
  local turns = 0
  while os.clock() < stop do turns = turns + 1 end
  return "done"
end)
`

/** Work for the thread that is to be late. */
export interface Pieces {
  /** Begins it in this process, or in an old one; resolves once the thread is at the first piece. */
  begin(old?: number): Promise<void>
  readonly over: Promise<unknown>
}

export interface LateOptions {
  readonly engine: Engine
  /** Options of the servers. */
  readonly s1?: string
  readonly s2?: string
  /** More lines of the `global` section. */
  readonly global?: string
}

/**
 * Backend `web` with the servers s1 and s2, persistent by cookie. `first` and `second` lead to it, each over the thread
 * of that number. The stats socket is served by the first thread.
 */
export class LateThread implements AsyncDisposable {
  readonly haproxy: Haproxy
  readonly s2: Backend
  #s1: Backend | undefined

  private constructor(haproxy: Haproxy, s2: Backend) {
    this.haproxy = haproxy
    this.s2 = s2
  }

  static async start({ engine, s1 = '', s2 = '', global = '' }: LateOptions): Promise<LateThread> {
    const haproxy = await Haproxy.start({
      engine,
      config: (port, dir) => {
        writeFileSync(join(dir, 'busy.lua'), BUSY)
        return `
global
  lua-load ${join(dir, 'busy.lua')}
  stats socket ${join(dir, 'first.sock')} level admin thread 1
${global}
frontend f_first
  bind 127.0.0.1:${port('first')} thread 1
  default_backend web
frontend f_second
  bind 127.0.0.1:${port('second')} thread 2
  default_backend web
frontend f_busy
  bind 127.0.0.1:${port('busy')} thread 2
  http-request set-var(txn.busy) lua.busy()
  http-request return status 200
backend web
  cookie SRV insert
  server s1 127.0.0.1:${port('s1')} cookie s1 ${s1}
  server s2 127.0.0.1:${port('s2')} cookie s2 ${s2}
`
      },
    })
    return new LateThread(haproxy, await Backend.start(haproxy.port('s2'), 's2'))
  }

  /** The process behind server s1, which is not there before. */
  async startS1(): Promise<Backend> {
    this.#s1 = await Backend.start(this.haproxy.port('s1'), 's1')
    return this.#s1
  }

  provider(more: Partial<HaproxyRuntimeOptions> = {}): ReturnType<typeof haproxyRuntime> {
    return haproxyRuntime({ socket: this.#socket, master: this.haproxy.master, ...more })
  }

  get #socket(): string {
    return join(this.haproxy.dir, 'first.sock')
  }

  /** Asks the process that serves over the thread that is on time, or an old one over the master. */
  cli(line: string, old?: number): Promise<string> {
    if (old === undefined) return cli(this.#socket, line)
    return cli(this.haproxy.master, `@!${old} ${line};quit`)
  }

  /** One cell of `show stat`. */
  async stat(pool: string, member: string, column: string, old?: number): Promise<string> {
    const [header = '', ...rows] = (await this.cli('show stat -1 7 -1', old)).trim().split('\n')
    const columns = header.slice(2).split(',')
    const cells = rows.map((row) => row.split(',')).find(([p, s]) => p === pool && s === member)
    return cells?.[columns.indexOf(column)] ?? ''
  }

  /** Pieces of work for the second thread of this process, also if a reload replaces it before they begin. */
  async pieces(count: number): Promise<Pieces> {
    const sockets = Array.from({ length: count }, () => createConnection(this.haproxy.port('busy')))
    const ends = sockets.map((socket) => once(socket.resume(), 'close'))
    for (const socket of sockets) socket.write('GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n')
    const accepted = async (): Promise<boolean> =>
      (await this.stat('f_busy', 'FRONTEND', 'scur')) === String(count)
    await until(accepted, 'the pieces are there')
    return {
      over: Promise.all(ends),
      begin: async (old) => {
        for (const socket of sockets) socket.write('\r\n')
        const isAtWork = async (): Promise<boolean> =>
          (await this.stat('f_busy', 'FRONTEND', 'req_tot', old)) !== '0'
        await until(isAtWork, 'the second thread is at the first of them')
      },
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.haproxy[Symbol.asyncDispose]()
    await this.#s1?.[Symbol.asyncDispose]()
    await this.s2[Symbol.asyncDispose]()
  }
}
