import type { AdminState, Health, MemberRef } from '../../../provider/contract.js'
import type { Config, ServerConfig } from '../options.js'
import type { HIDDEN, Server, Session } from './server.js'
import { Worker } from './worker.js'

const FIRST_PID = 20_001

/** The master process, its current worker and those that it replaced. */
export class ProcessGroup {
  readonly config: Config
  masterPid = FIRST_PID
  startedAt = Date.now()
  reloads = 0
  #pid = FIRST_PID
  #current: Worker
  readonly #old: Worker[] = []
  /** The configuration file: what a new worker begins with. */
  readonly #servers: Map<string, ServerConfig[]>
  readonly #failing = new Set<string>()

  constructor(config: Config) {
    this.config = config
    this.#servers = new Map([...config.pools].map(([pool, servers]) => [pool, [...servers]]))
    this.#current = this.#start(new Map())
  }

  get current(): Worker {
    return this.#current
  }

  /** Those that were replaced and live on, newest first. */
  get old(): readonly Worker[] {
    return this.#old.filter((worker) => !worker.ended)
  }

  byPid(pid: number): Worker | undefined {
    return [this.#current, ...this.old].find((worker) => worker.pid === pid)
  }

  reload(): void {
    const before = this.#current
    this.reloads++
    const saved = this.config.keepsState ? before.saved() : new Map<string, never>()
    this.#current = this.#start(saved)
    this.#current.generation = this.reloads
    this.#old.unshift(before)
    for (const worker of this.#old) {
      worker.reloads++
      worker.release()
    }
    const { hardStopAfter } = this.config
    if (hardStopAfter === undefined) return
    const timer = setTimeout(() => before.end(), hardStopAfter)
    timer.unref()
    before.onEnd(() => clearTimeout(timer))
  }

  /** Master and workers end with what they hold; others begin with the configuration. */
  restart(): void {
    this.end()
    this.#old.length = 0
    this.reloads = 0
    this.masterPid = ++this.#pid
    this.startedAt = Date.now()
    this.#current = this.#start(new Map())
  }

  /** Another person's doing: the current worker changes at once; `gone` also leaves the configuration. */
  setBehind(ref: MemberRef, to: AdminState | 'gone'): void {
    const configured = this.#servers.get(ref.pool)
    if (!configured) throw new Error(`The fake has no backend ${ref.pool}`)
    const found = this.#current.find(ref)
    if (to === 'gone') {
      if (found) this.#current.remove(found)
      const at = configured.findIndex(({ name }) => name === ref.member)
      if (at >= 0) configured.splice(at, 1)
      return
    }
    this.#current.setState(found ?? this.#revive(ref, configured), to)
  }

  setHealth(ref: MemberRef, health: Extract<Health, 'up' | 'down'>): void {
    const server = this.#find(ref)
    const key = `${ref.pool}/${ref.member}`
    if (health === 'down') this.#failing.add(key)
    else this.#failing.delete(key)
    const { check } = server.config
    if (!check) throw new Error(`${key} is not checked: give it 'check'`)
    for (let i = 0; i < check.rise + check.fall; i++) server.checked(health === 'up')
  }

  /** A request on a member, in the current process, with no traffic behind it. */
  occupy(ref: MemberRef): () => void {
    const worker = this.#current
    const server = this.#find(ref)
    const session: Session = { cut: () => worker.release(), since: Date.now() }
    server.begin(session)
    return () => {
      worker.backend(ref.pool)?.end(server, session)
      worker.release()
    }
  }

  /** A request that is bound to a member and in no count; the returned function counts it and ends it. */
  hide(ref: MemberRef, why: keyof typeof HIDDEN): () => void {
    const worker = this.#current
    const server = this.#find(ref)
    const { counters, hidden } = server
    const session: Session = { cut: () => worker.release() }
    if (why === 'retry') counters.wretr++
    else counters.qmax = Math.max(1, counters.qmax)
    hidden.set(session, why)
    return () => {
      if (!hidden.delete(session)) return
      server.begin(session)
      worker.backend(ref.pool)?.end(server, session)
      worker.release()
    }
  }

  end(): void {
    for (const worker of [this.#current, ...this.#old]) worker.end()
  }

  #find(ref: MemberRef): Server {
    const found = this.#current.find(ref)
    if (!found) throw new Error(`The fake has no server ${ref.pool}/${ref.member}`)
    return found
  }

  #start(saved: ReturnType<Worker['saved']>): Worker {
    return new Worker(++this.#pid, this.config, this.#servers, saved, this.#failing)
  }

  #revive(ref: MemberRef, configured: ServerConfig[]): Server {
    const known = this.config.pools.get(ref.pool)?.find(({ name }) => name === ref.member)
    if (!known) throw new Error(`The fake never had a server ${ref.pool}/${ref.member}`)
    configured.push(known)
    const backend = this.#current.backend(ref.pool)
    if (backend) this.#current.add(backend, known)
    return this.#find(ref)
  }
}
