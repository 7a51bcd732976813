import { rm } from 'node:fs/promises'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import type { AdminState, MemberRef } from '../../provider/contract.js'
import { httpFrontend } from '../data-plane/http-frontend.js'
import type { Frontend } from '../data-plane/lane.js'
import { tcpFrontend } from '../data-plane/tcp-frontend.js'
import { CliConnection } from './cli-connection.js'
import type { LineHooks } from './cli-connection.js'
import { Listener, socketFolder } from './listener.js'
import type { SocketAddress } from './listener.js'
import { MasterConnection } from './master-connection.js'
import { readConfig } from './options.js'
import type { Config, FrontendConfig, HaproxyFakeOptions } from './options.js'
import { ProcessGroup } from './process-group.js'
import { openLane } from './worker-lane.js'

/** One line that the fake got on a socket. */
export interface FakeLine {
  /** The whole line, without its end. */
  readonly line: string
  readonly socket: 'stats' | 'master'
  /** The process that got it. */
  readonly pid: number
}

/** What is to go wrong, and with what. */
export interface FakeFault {
  /** Only with lines like this; with `answer`, only with commands like this. Default: with any. */
  readonly match?: RegExp
  /**
   * - `refuse`: closed at once, nothing done, nothing answered
   * - `silent`: nothing done, nothing answered, never closed
   * - `reset`: everything done, then closed without an answer: the outcome is unknown to the client
   * - `garbage`: nothing done, an answer that is none
   * - `answer`: one command of a line on the stats socket is not done, and answered by `text`
   */
  readonly how: 'refuse' | 'silent' | 'reset' | 'garbage' | 'answer'
  /** Of `answer`: HAProxy's words. Default `Permission denied`. */
  readonly text?: string
  /** How many lines, or commands. Default 1. */
  readonly times?: number
}

/** A HAProxy that is not there, for a test: made by {@link startFake}. */
export interface HaproxyFake extends AsyncDisposable {
  /** The stats socket: what `haproxyRuntime({ socket })` wants. */
  readonly socket: SocketAddress
  /** The master's socket, where `master` was asked for. */
  readonly master: SocketAddress | undefined
  /** The port of each frontend, by name. */
  readonly ports: Readonly<Record<string, number>>
  /** Every line that it got, oldest first. */
  readonly requests: readonly FakeLine[]
  /** Connections that it accepted on its sockets so far. */
  readonly connections: number
  /** Process id of the current worker. */
  readonly pid: number
  /** Puts a request in flight on a server, with nobody behind it; the returned function ends it. */
  occupy(ref: MemberRef): Promise<() => Promise<void>>
  /** Somebody else changes a server; `gone` takes it out of the configuration too. */
  setBehind(ref: MemberRef, to: AdminState | 'gone'): void
  /** What the next checks of a server say, and at once what it is. The server needs `check`. */
  setHealth(ref: MemberRef, health: 'up' | 'down'): void
  /** Work that a server truly holds, over all workers, old ones too. */
  load(ref: MemberRef): number
  /** A server's own state in the current worker, as its administrative mask. */
  adminMask(ref: MemberRef): number | undefined
  /** Lets something go wrong. */
  fail(what: FakeFault): void
  /** The process stops (as by SIGSTOP): it accepts, and answers nothing until {@link HaproxyFake.thaw}. */
  freeze(): void
  /** It goes on, and does what it was asked for meanwhile, also for clients that gave up. */
  thaw(): void
  /** A new worker; the old one lives on while it holds anything. States are forgotten unless `keepsState`. */
  reload(): Promise<void>
  /** Both sockets refuse connections until {@link HaproxyFake.connect}; what is open is closed. */
  disconnect(): Promise<void>
  /** Ends what {@link HaproxyFake.disconnect} began. */
  connect(): Promise<void>
  /** Ends everything: sockets, traffic, files. */
  close(): Promise<void>
}

/** Starts it; see the package's documentation. */
export async function openFake(options: HaproxyFakeOptions = {}): Promise<HaproxyFake> {
  const config = readConfig(options)
  const onTcp = options.port !== undefined || (process.platform === 'win32' && !options.path)
  const folder = onTcp && options.path === undefined ? undefined : await socketFolder()
  const at = (name: string): SocketAddress => {
    if (folder === undefined || onTcp)
      return { host: '127.0.0.1', port: name === 'admin' ? (options.port ?? 0) : 0 }
    return name === 'admin' && options.path !== undefined
      ? options.path
      : join(folder, `${name}.sock`)
  }
  const fake = new Fake(config, folder, at('admin'), config.master ? at('master') : undefined)
  try {
    await fake.open()
  } catch (error) {
    await fake.close()
    throw error
  }
  return fake
}

class Fake implements HaproxyFake {
  readonly #config: Config
  readonly #folder: string | undefined
  readonly #group: ProcessGroup
  readonly #stats: Listener
  readonly #master: Listener | undefined
  readonly #frontends = new Map<string, Frontend>()
  readonly #lines: FakeLine[] = []
  readonly #faults: { readonly fault: FakeFault; left: number }[] = []
  readonly #wired = new WeakSet<object>()
  #connections = 0
  #frozen: { readonly thawed: Promise<void>; readonly thaw: () => void } | undefined

  constructor(
    config: Config,
    folder: string | undefined,
    stats: SocketAddress,
    master: SocketAddress | undefined,
  ) {
    this.#config = config
    this.#folder = folder
    this.#group = new ProcessGroup(config)
    this.#stats = new Listener(stats, config.maxconn, (socket) => this.#openStats(socket))
    if (master !== undefined) {
      this.#master = new Listener(master, Infinity, (socket) => this.#openMaster(socket))
    }
  }

  get socket(): SocketAddress {
    return this.#stats.address
  }

  get master(): SocketAddress | undefined {
    return this.#master?.address
  }

  get ports(): Readonly<Record<string, number>> {
    return Object.fromEntries([...this.#frontends].map(([name, { port }]) => [name, port]))
  }

  get requests(): readonly FakeLine[] {
    return this.#lines
  }

  get connections(): number {
    return this.#connections
  }

  get pid(): number {
    return this.#group.current.pid
  }

  async open(): Promise<void> {
    await this.#stats.listen()
    await this.#master?.listen()
    for (const frontend of this.#config.frontends) {
      this.#frontends.set(frontend.name, await this.#openFrontend(frontend))
    }
    this.#wire()
  }

  occupy(ref: MemberRef): Promise<() => Promise<void>> {
    const end = this.#group.occupy(ref)
    return Promise.resolve(() => {
      end()
      return Promise.resolve()
    })
  }

  setBehind(ref: MemberRef, to: AdminState | 'gone'): void {
    this.#group.setBehind(ref, to)
    this.#wire()
  }

  setHealth(ref: MemberRef, health: 'up' | 'down'): void {
    this.#group.setHealth(ref, health)
  }

  load(ref: MemberRef): number {
    const workers = [this.#group.current, ...this.#group.old]
    return workers.reduce((sum, worker) => {
      const server = worker.find(ref)
      return sum + (server ? server.sessions.size + server.queue.length : 0)
    }, 0)
  }

  adminMask(ref: MemberRef): number | undefined {
    return this.#group.current.find(ref)?.admin
  }

  fail(fault: FakeFault): void {
    this.#faults.push({ fault, left: fault.times ?? 1 })
  }

  freeze(): void {
    if (this.#frozen) return
    let thaw = (): void => undefined
    const thawed = new Promise<void>((resolve) => (thaw = resolve))
    this.#frozen = { thawed, thaw: () => thaw() }
  }

  thaw(): void {
    this.#frozen?.thaw()
    this.#frozen = undefined
  }

  reload(): Promise<void> {
    this.#group.reload()
    this.#wire()
    return Promise.resolve()
  }

  async disconnect(): Promise<void> {
    await this.#stats.refuse()
    await this.#master?.refuse()
  }

  async connect(): Promise<void> {
    await this.#stats.resume()
    await this.#master?.resume()
  }

  async close(): Promise<void> {
    this.thaw()
    await this.#stats.close()
    await this.#master?.close()
    this.#group.end()
    for (const frontend of this.#frontends.values()) await frontend.close()
    if (this.#folder !== undefined) await rm(this.#folder, { recursive: true, force: true })
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  #openFrontend({ name, pool, port, mode, cookie }: FrontendConfig): Promise<Frontend> {
    const accept = (client: object) => openLane(this.#group, pool, client)
    try {
      return mode === 'http'
        ? httpFrontend({ port, cookie, accept })
        : tcpFrontend({ port, accept })
    } catch (cause) {
      throw new Error(`frontend ${name} cannot listen`, { cause })
    }
  }

  #openStats(socket: Socket): CliConnection {
    this.#connections++
    this.#wire()
    const worker = this.#group.current
    return new CliConnection(socket, worker, this.#hooks('stats', worker.pid))
  }

  #openMaster(socket: Socket): MasterConnection {
    this.#connections++
    return new MasterConnection(socket, this.#group, this.#hooks('master', this.#group.masterPid))
  }

  #hooks(socket: 'stats' | 'master', pid: number): LineHooks {
    return {
      timeout: this.#config.timeout,
      thawed: async () => {
        while (this.#frozen) await this.#frozen.thawed
      },
      onLine: (line) => {
        this.#lines.push({ line, socket, pid })
        const fault = this.#takeFault(line, false)
        return fault?.how === 'answer' ? undefined : fault?.how
      },
      onCommand: (command) => {
        const fault = this.#takeFault(command, true)
        return fault === undefined ? undefined : `${fault.text ?? 'Permission denied'}\n`
      },
    }
  }

  /** The fault of a line, or of one command in it. */
  #takeFault(text: string, ofCommand: boolean): FakeFault | undefined {
    const found = this.#faults.find(
      ({ fault: { how, match } }) =>
        (how === 'answer') === ofCommand && (match?.test(text) ?? true),
    )
    if (found && --found.left <= 0) this.#faults.splice(this.#faults.indexOf(found), 1)
    return found?.fault
  }

  /** Lets servers know of their pooled connections, and workers of the master: also those that came later. */
  #wire(): void {
    const worker = this.#group.current
    const master = this.master
    if (typeof master === 'string') worker.masterAddress = `unix@${master}`
    else if (master) worker.masterAddress = `ipv4@${master.host}:${master.port}`
    for (const backend of worker.backends) {
      for (const server of backend.servers) {
        if (this.#wired.has(server)) continue
        this.#wired.add(server)
        const { host, port } = server.config.to
        const own = this.#config.frontends.filter(({ pool }) => pool === backend.name)
        const doors = own.flatMap(({ name }) => this.#frontends.get(name) ?? [])
        if (doors.length === 0) continue
        server.pooled = () => doors.reduce((sum, door) => sum + door.pooled(host, port), 0)
        server.flush = () => doors.forEach((door) => door.flush(host, port))
      }
    }
  }
}
