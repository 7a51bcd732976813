import type { Settings } from './options.js'

/** What of its parent a child shows: as of the last flush of its statistics. */
interface Merged {
  readonly at: number
  /** Its own uptime, and what its parent's statistics said of that at last. */
  readonly uptime: number
  readonly connections: number
  readonly requests: number
}

/** One process of a fake Envoy: downstream connections and requests, and whether its health check fails. */
export class Process {
  readonly epoch: number
  readonly bootAt: Date
  readonly begun = { requests: 0, connections: 0, tcp: 0 }
  failing = false
  /** When its listeners close, or have; undefined: they were not told to. */
  closesAt: number | undefined
  /** Requests in flight, idle connections of HTTP, connections of the TCP proxy, clients that do not read. */
  readonly open = { requests: 0, upgrades: 0, idle: 0, tcp: 0, slow: 0 }
  readonly #settings: Settings
  readonly #startedAt = performance.now()
  readonly #firstAt: number
  readonly #parent: Process | undefined
  readonly #checks = { passed: 0, failed: 0 }
  #checkedAt = performance.now()
  #merged: Merged | undefined
  /** What its own statistics say since it was replaced. */
  #last = { uptime: 0, connections: 0 }
  #child: Process | undefined
  #running = true

  constructor(settings: Settings, bootAt: Date, parent?: Process) {
    this.#settings = settings
    this.bootAt = bootAt
    this.#parent = parent
    this.epoch = parent === undefined ? 0 : parent.epoch + 1
    this.#firstAt = parent === undefined ? this.#startedAt : parent.#firstAt
  }

  get running(): boolean {
    const child = this.#child
    const over = child !== undefined && child.age >= this.#settings.parentShutdown
    return this.#running && !over
  }

  /** Another one takes over: it makes no more statistics of its own, and the process before it ends. */
  succeed(child: Process): void {
    this.#last = { uptime: this.uptime.all, connections: this.merged?.connections ?? 0 }
    this.#child = child
    this.#parent?.stop()
  }

  /** Whether its listeners are closed: it accepts no connection any more. */
  get closed(): boolean {
    return this.closesAt !== undefined && performance.now() >= this.closesAt
  }

  /** Milliseconds since it started. */
  get age(): number {
    return performance.now() - this.#startedAt
  }

  /** Whole seconds, of this process and of all. */
  get uptime(): { readonly current: number; readonly all: number } {
    const all = performance.now() - this.#firstAt
    return { current: Math.floor(this.age / 1_000), all: Math.floor(all / 1_000) }
  }

  /** Health checks up to now. */
  get checks(): { readonly passed: number; readonly failed: number } {
    this.#catchUp()
    return this.#checks
  }

  check(): boolean {
    this.#catchUp()
    this.#checks[this.failing ? 'failed' : 'passed'] += 1
    return !this.failing
  }

  setFailing(failing: boolean): void {
    // What was due before was answered as it was then.
    this.#catchUp()
    this.failing = failing
  }

  /** Of its parent, flushed from time to time. */
  get merged(): Merged | undefined {
    const parent = this.#parent
    if (parent === undefined) return undefined
    const at = this.uptime.all
    const isDue = at - (this.#merged?.at ?? -Infinity) >= this.#settings.statsFlush / 1_000
    if (isDue || this.#merged === undefined) {
      const { requests, idle, tcp, slow } = parent.open
      const alive = parent.running
      this.#merged = {
        at,
        uptime: at + (alive ? parent.#last.uptime : 0),
        connections: alive ? requests + idle + tcp + slow + parent.#last.connections : 0,
        requests: alive ? requests : 0,
      }
    }
    return this.#merged
  }

  /** Something begins; the returned function ends it, once. */
  begin(what: 'requests' | 'idle' | 'tcp' | 'slow', upgrade = false): () => void {
    if (this.closed) throw new Error('connect ECONNREFUSED: the listeners of the fake are closed')
    this.open[what] += 1
    if (upgrade) this.open.upgrades += 1
    if (what === 'requests' || what === 'slow') this.begun.requests += 1
    if (what === 'tcp') this.begun.tcp += 1
    else this.begun.connections += 1
    let isOpen = true
    return () => {
      if (!isOpen) return
      isOpen = false
      this.open[what] -= 1
      if (upgrade) this.open.upgrades -= 1
    }
  }

  stop(): void {
    this.#running = false
    this.#parent?.stop()
  }

  /** One after another at their interval, as its health was since. */
  #catchUp(): void {
    const { checkInterval } = this.#settings
    if (checkInterval > 0) {
      const due = Math.floor((performance.now() - this.#checkedAt) / checkInterval)
      this.#checkedAt += due * checkInterval
      // Through closed listeners no check comes.
      if (!this.closed) this.#checks[this.failing ? 'failed' : 'passed'] += due
    }
  }
}
