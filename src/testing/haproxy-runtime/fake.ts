import { rm } from 'node:fs/promises'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import type { AdminState, MemberRef } from '../../provider/contract.js'
import { httpFrontend } from '../data-plane/http-frontend.js'
import type { Frontend } from '../data-plane/lane.js'
import { tcpFrontend } from '../data-plane/tcp-frontend.js'
import { Failures } from '../failures.js'
import type { ProtocolFake } from '../protocol-fake.js'
import { CliConnection } from './cli/cli-connection.js'
import type { LineHooks } from './cli/cli-connection.js'
import { Listener, socketFolder } from './listener.js'
import type { SocketAddress } from './listener.js'
import { MasterConnection } from './cli/master-connection.js'
import { readConfig } from './options.js'
import type { Config, FakeFailure, FakeOptions, FakeRequest, FrontendConfig } from './options.js'
import { ProcessGroup } from './process/process-group.js'
import { openLane } from './process/worker-lane.js'

/** A HAProxy that is not there, for a test: made by {@link startFake}. */
export interface HaproxyFake extends ProtocolFake<FakeFailure, FakeRequest> {
  /** The stats socket: what `haproxyRuntime({ socket })` wants. */
  readonly socket: SocketAddress
  /** The master's socket, where `master` was asked for. */
  readonly master: SocketAddress | undefined
  /** The port of each frontend, by name. */
  readonly ports: Readonly<Record<string, number>>
  /** Connections that it accepted on its sockets so far. */
  readonly connections: number
  /** Process id of the current worker. */
  readonly pid: number
  /** Another client changes a server; `gone` takes it out of the configuration too. */
  setBehind(ref: MemberRef, to: AdminState | 'gone'): Promise<void>
  /** What the next checks of a server say, and at once what it is. The server needs `check`. */
  setHealth(ref: MemberRef, health: 'up' | 'down'): void
  /**
   * A request that is bound to a server and in none of its counts, in the current worker: a queued one has got its
   * `slot`, or one is about to `retry`, and its thread is late. The returned function lets the thread run it: it is
   * counted, and over.
   */
  hide(ref: MemberRef, why: 'slot' | 'retry'): Promise<() => Promise<void>>
  /** Work that a server truly holds, over all workers, old ones too. */
  load(ref: MemberRef): number
  /** A server's own state in the current worker, as its administrative mask. */
  adminMask(ref: MemberRef): number | undefined
  /**
   * The process stops (as by SIGSTOP): it accepts, and answers nothing. The returned function lets it go on: it does
   * what it was asked for meanwhile, also for clients that gave up.
   */
  freeze(): () => void
  /** A new worker; the old one lives on while it holds anything. States are forgotten unless `keepsState`. */
  reload(): Promise<void>
  /** Every process ends, and new ones begin: what was in flight is cut, counts begin at zero, states are forgotten. */
  restart(): Promise<void>
}

/** Starts it; see the package's documentation. */
export async function openFake(options: FakeOptions = {}): Promise<HaproxyFake> {
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
  readonly #lines: FakeRequest[] = []
  readonly #failures = new Failures<FakeFailure>()
  readonly #wired = new WeakSet<object>()
  #connections = 0
  #frozen: { readonly thawed: Promise<unknown>; readonly thaw: () => void } | undefined

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

  get sockets(): number {
    return this.#stats.sockets + (this.#master?.sockets ?? 0)
  }

  get requests(): readonly FakeRequest[] {
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

  hide(ref: MemberRef, why: 'slot' | 'retry'): Promise<() => Promise<void>> {
    const run = this.#group.hide(ref, why)
    return Promise.resolve(() => {
      run()
      return Promise.resolve()
    })
  }

  async setBehind(ref: MemberRef, to: AdminState | 'gone'): Promise<void> {
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
      return sum + (server ? server.sessions.size + server.hidden.size + server.queue.length : 0)
    }, 0)
  }

  adminMask(ref: MemberRef): number | undefined {
    return this.#group.current.find(ref)?.admin
  }

  fail(what: FakeFailure): () => Promise<void> {
    return this.#failures.begin(what, this.#listeners())
  }

  freeze(): () => void {
    if (!this.#frozen) {
      const { promise, resolve } = Promise.withResolvers<undefined>()
      this.#frozen = { thawed: promise, thaw: () => resolve(undefined) }
    }
    const frozen = this.#frozen
    return () => {
      if (this.#frozen === frozen) this.#frozen = undefined
      frozen.thaw()
    }
  }

  reload(): Promise<void> {
    this.#group.reload()
    this.#wire()
    return Promise.resolve()
  }

  async restart(): Promise<void> {
    const listenAgain = this.fail({ how: 'refuse' })
    this.#group.restart()
    this.#wire()
    await listenAgain()
  }

  async close(): Promise<void> {
    this.#frozen?.thaw()
    this.#frozen = undefined
    this.#failures.close()
    for (const listener of this.#listeners()) await listener.close()
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
        return this.#failures.take(line, ({ how }) => how !== 'status')
      },
      onCommand: (command) => this.#failures.take(command, ({ how }) => how === 'status'),
    }
  }

  #listeners(): readonly Listener[] {
    return this.#master === undefined ? [this.#stats] : [this.#stats, this.#master]
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
