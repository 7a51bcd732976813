import { connect } from 'node:net'
import type { AdminState, MemberRef } from '../../../provider/contract.js'
import { Backend } from './backend.js'
import type { Config, ServerConfig } from '../options.js'
import { ADMIN, Server } from './server.js'

/** A process reads its configuration before it serves: so long before it was started, ms. */
const BOOT = 500

/** What survives a reload where a server-state file is written. */
export type SavedState = ReadonlyMap<string, { readonly admin: number; readonly weight: number }>

/** One process: it begins with the configuration, and what it holds dies with it. */
export class Worker {
  readonly pid: number
  readonly startedAt = Date.now() - BOOT
  readonly config: Config
  /** Where the master's socket is, as `show env` says it. */
  masterAddress = ''
  readonly backends: readonly Backend[]
  /** How many reloads the master had made when it was started. */
  generation = 0
  /** How many reloads it has lived through; 0 is the current one. */
  reloads = 0
  /** Connections of clients: it lives as long as one of them does. */
  readonly clients = new Set<object>()
  /** Interactive command lines: they keep it alive too, and are in no counter. */
  readonly commandLines = new Set<object>()
  readonly counters = { connections: 0, requests: 0 }
  /** Simulated checks that fail, as `backend/server`: shared by all processes. */
  readonly #failing: ReadonlySet<string>
  /** When each server is checked next. */
  readonly #timers = new Map<Server, NodeJS.Timeout>()
  readonly #ids = new WeakMap<object, string>()
  #lastId = 0
  #ended = false
  readonly #onEnd: (() => void)[] = []

  constructor(
    pid: number,
    config: Config,
    servers: ReadonlyMap<string, readonly ServerConfig[]>,
    saved: SavedState,
    failing: ReadonlySet<string>,
  ) {
    this.pid = pid
    this.#failing = failing
    this.config = config
    const first = 2 + config.frontends.length
    this.backends = [...servers].map(([name, list], i) => {
      const front = config.frontends.find(({ pool }) => pool === name)
      const backend = new Backend(
        first + i,
        name,
        config.version,
        front?.mode ?? 'http',
        front?.cookie,
      )
      for (const [n, server] of list.entries()) {
        const added = new Server(n + 1, name, server)
        const before = saved.get(`${name}/${server.name}`)
        if (before) Object.assign(added, before)
        backend.servers.push(added)
        this.#check(backend, added)
      }
      return backend
    })
    for (const backend of this.backends) for (const server of backend.servers) this.#follow(server)
  }

  /** How `show sess` names a session or one that waits, and `shutdown session` finds it. */
  sessionId(session: object): string {
    let id = this.#ids.get(session)
    if (id === undefined) {
      id = `0x7f${(++this.#lastId * 0x400).toString(16).padStart(10, '0')}`
      this.#ids.set(session, id)
    }
    return id
  }

  get isOld(): boolean {
    return this.reloads > 0
  }

  get ended(): boolean {
    return this.#ended
  }

  find(ref: MemberRef): Server | undefined {
    return this.backend(ref.pool)?.servers.find(({ name }) => name === ref.member)
  }

  backend(name: string): Backend | undefined {
    const byId = /^#(\d+)$/.exec(name)
    if (byId) return this.backends.find(({ id }) => id === Number(byId[1]))
    return this.backends.find((backend) => backend.name === name)
  }

  /** The ids of frontends, in the order of the configuration. */
  frontendId(name: string): number {
    return 2 + this.config.frontends.findIndex((frontend) => frontend.name === name)
  }

  setState(server: Server, to: AdminState): void {
    const leavesDrain = server.inDrain && to === 'ready'
    server.set(to)
    this.#tell(server, !leavesDrain)
  }

  /** Tells those who track the server, and those who wait. */
  #tell(server: Server, takes: boolean): void {
    this.backend(server.backend)?.stateChanged(server, takes)
    for (const other of this.#followers(server)) {
      other.inherit(server)
      this.#tell(other, takes)
    }
  }

  isReferenced(server: Server): boolean {
    return this.#followers(server).length > 0
  }

  add(backend: Backend, config: ServerConfig): void {
    let id = 1
    while (backend.servers.some((server) => server.id === id)) id++
    const server = new Server(id, backend.name, config, true)
    backend.servers.push(server)
    this.#follow(server)
    this.#check(backend, server)
  }

  remove(server: Server): void {
    const servers = this.backend(server.backend)?.servers ?? []
    const at = servers.indexOf(server)
    if (at >= 0) servers.splice(at, 1)
    server.flush()
  }

  saved(): SavedState {
    const all = this.backends.flatMap((backend) => backend.servers)
    return new Map(all.map((s) => [`${s.backend}/${s.name}`, { admin: s.admin, weight: s.weight }]))
  }

  sessions(): number {
    const all = this.backends.flatMap(({ servers }) => servers)
    const waiting = this.backends.reduce((sum, backend) => sum + backend.queued, 0)
    return (
      waiting + all.reduce((sum, s) => sum + s.sessions.size + s.hidden.size + s.queue.length, 0)
    )
  }

  /** An old process ends when it holds nothing any more. */
  release(): void {
    if (!this.isOld || this.#ended) return
    const held = this.clients.size + this.commandLines.size + this.sessions()
    if (held === 0) this.end()
  }

  /** Cuts everything that is left. */
  end(): void {
    if (this.#ended) return
    this.#ended = true
    for (const timer of this.#timers.values()) clearTimeout(timer)
    for (const backend of this.backends) {
      backend.refuseQueue()
      for (const server of backend.servers) {
        for (const waiting of server.queue.splice(0)) waiting.leave()
        server.cutSessions()
        server.flush()
      }
      backend.refuseQueue()
    }
    for (const fn of this.#onEnd.splice(0)) fn()
  }

  onEnd(fn: () => void): void {
    if (this.#ended) fn()
    else this.#onEnd.push(fn)
  }

  #followers(server: Server): readonly Server[] {
    const path = `${server.backend}/${server.name}`
    return this.backends.flatMap(({ servers }) => servers).filter((s) => s.config.track === path)
  }

  #follow(server: Server): void {
    const [pool = '', member = ''] = server.config.track?.split('/') ?? []
    const parent = this.find({ pool, member })
    if (parent) server.inherit(parent)
  }

  /** Runs its health checks for as long as the process and the server live. */
  #check(backend: Backend, server: Server): void {
    const { check } = server.config
    if (!check) return
    const again = (pause = check.inter): void => {
      const timer = setTimeout(() => {
        // A process that is being replaced checks no server any more.
        if (this.#ended || this.isOld || !backend.servers.includes(server)) return
        const skip =
          server.inMaint || !server.checking || (server.admin & ADMIN.inheritedMaint) !== 0
        if (skip) {
          again()
          return
        }
        const done = (passed: boolean): void => {
          const before = server.isDown
          server.checked(passed)
          if (server.isDown !== before) backend.stateChanged(server)
          again()
        }
        if (!check.connects) done(!this.#failing.has(`${server.backend}/${server.name}`))
        else probe(server.config.to, Math.min(check.inter, 2_000), done)
      }, pause)
      timer.unref()
      this.#timers.set(server, timer)
    }
    again(Math.min(100, check.inter))
  }
}

function probe(
  to: { readonly host: string; readonly port: number },
  timeout: number,
  done: (passed: boolean) => void,
): void {
  const socket = connect(to.port, to.host)
  socket.setTimeout(timeout)
  const end = (passed: boolean): void => {
    socket.removeAllListeners()
    socket.on('error', () => undefined)
    socket.destroy()
    done(passed)
  }
  socket.once('connect', () => end(true))
  socket.once('timeout', () => end(false))
  socket.once('error', () => end(false))
}
