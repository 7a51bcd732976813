import type { ServerConfig } from '../options.js'

/** Bits of the administrative state, as HAProxy writes them in `show servers state`. */
export const ADMIN = {
  forcedMaint: 0x01,
  inheritedMaint: 0x02,
  configuredMaint: 0x04,
  forcedDrain: 0x08,
  inheritedDrain: 0x10,
} as const

const MAINT = 0x23
const DRAIN = 0x18

/** One request or connection that a server holds. */
export interface Session {
  /** Cuts it; ends it for its client too. */
  readonly cut: () => void
  /** Its connection was upgraded: it brings no other request. */
  readonly tunnel?: boolean
  /** When it began, in epoch milliseconds. Default: just now. */
  readonly since?: number
}

/** A request that waits for a place. */
export interface Waiting {
  /** Its turn has come, on this server. */
  readonly start: (server: Server) => void
  /** It must look for another place. */
  readonly leave: () => void
}

/** Why a request that is bound to a server is in no count, with its state in `show sess`. */
export const HIDDEN = {
  /** It has left the queue, and its thread has not run it yet. */
  slot: 2,
  /** Its connection was refused: it waits a second, and then for its thread. */
  retry: 3,
} as const

/** One server as one process knows it: its state, what it counts, what it holds. */
export class Server {
  readonly id: number
  readonly backend: string
  readonly config: ServerConfig
  /** Added by `add server`: forgotten by a reload. */
  readonly dynamic: boolean
  readonly sessions = new Set<Session>()
  readonly queue: Waiting[] = []
  /** Requests that are bound to it and in no count. */
  readonly hidden = new Map<object, keyof typeof HIDDEN>()
  admin: number
  weight: number
  maxconn: number | undefined
  address: string
  port: number
  checking: boolean
  /** Counts up with each check that passes, to rise + fall - 1; down from rise means down. */
  health: number
  lastCheck: 'none' | 'passed' | 'failed' = 'none'
  changedAt = Date.now()
  lastSession: number | undefined
  readonly counters = {
    ...{ smax: 0, qmax: 0, stot: 0, bin: 0, bout: 0, econ: 0, wretr: 0, wredis: 0 },
    ...{ chkfail: 0, chkdown: 0, requests: 0, connects: 0, reuses: 0, clientAborts: 0, cut: 0 },
    ...{ hrsp: [0, 0, 0, 0, 0, 0] as [number, number, number, number, number, number] },
  }
  /** Server connections kept for later requests; told by the data plane. */
  pooled: () => number = () => 0
  /** Closes them. */
  flush: () => void = () => undefined
  /** The server that this one tracks. */
  parent: Server | undefined
  /** Smooth weighted round robin. */
  credit = 0

  constructor(id: number, backend: string, config: ServerConfig, dynamic = false) {
    this.id = id
    this.backend = backend
    this.config = config
    this.dynamic = dynamic
    this.weight = config.weight
    this.maxconn = config.maxconn
    this.address = config.address
    this.port = config.port
    this.checking = config.check !== undefined && !dynamic
    // What is not checked is healthy at first, and after maint it is nothing any more.
    this.health = config.check ? this.#fullHealth : dynamic || config.disabled ? 0 : 2
    const { forcedMaint, configuredMaint } = ADMIN
    this.admin = dynamic ? forcedMaint : config.disabled ? forcedMaint | configuredMaint : 0
  }

  get name(): string {
    return this.config.name
  }

  get inMaint(): boolean {
    return (this.admin & MAINT) !== 0
  }

  get inDrain(): boolean {
    return !this.inMaint && (this.admin & DRAIN) !== 0
  }

  get isDown(): boolean {
    if (this.parent) return this.parent.isDown
    const { check } = this.config
    return this.checking && check !== undefined && this.health < check.rise
  }

  /** Would it get new work that is bound to no server? */
  get serves(): boolean {
    return !this.inMaint && !this.inDrain && !this.isDown && this.weight > 0
  }

  /** Would it get work that is bound to it? Drain does not turn persistent clients away. */
  get takesPersistent(): boolean {
    return !this.inMaint && !this.isDown
  }

  get hasRoom(): boolean {
    return this.maxconn === undefined || this.sessions.size < this.maxconn
  }

  /** 0 stopped, 2 running. */
  get operation(): 0 | 2 {
    return this.inMaint || this.isDown ? 0 : 2
  }

  get status(): string {
    const { check, track } = this.config
    if (this.inMaint) {
      const own = (this.admin & ADMIN.forcedMaint) !== 0
      return own || track === undefined ? 'MAINT' : `MAINT (via ${track})`
    }
    if (this.isDown) {
      const rising = check && this.health > 0 ? ` ${this.health}/${check.rise}` : ''
      return `DOWN${rising}`
    }
    // A tracked server is checked for this one too.
    const checked = this.parent ?? this
    const { check: own } = checked.config
    if (!own || !checked.checking) return this.inDrain ? 'DRAIN' : 'no check'
    const steps = own.fall > 1 && checked.health < own.rise + own.fall - 1
    const falling = steps ? ` ${checked.health - own.rise + 1}/${own.fall}` : ''
    return `${this.inDrain ? 'DRAIN' : 'UP'}${falling}`
  }

  set(to: 'ready' | 'drain' | 'maint'): void {
    const { forcedMaint, forcedDrain } = ADMIN
    const before = this.admin
    const leavesMaint = (before & forcedMaint) !== 0 && to !== 'maint'
    const forced = to === 'maint' ? forcedMaint : to === 'drain' ? forcedDrain : 0
    this.admin = (before & ~(forcedMaint | forcedDrain)) | forced
    if (this.admin !== before) this.changedAt = Date.now()
    // No check has passed yet, and it is up all the same: HAProxy gives it the benefit of the doubt.
    if (leavesMaint && this.config.check) this.health = this.config.check.rise
    if (to !== 'maint' || before === this.admin) return
    if (this.config.check && !this.isDown) this.counters.chkdown++
    this.health = 0
    this.flush()
  }

  inherit(parent: Server): void {
    this.parent = parent
    if (parent.inMaint) this.health = 0
    const { inheritedMaint, inheritedDrain } = ADMIN
    const bits = parent.inMaint ? inheritedMaint : parent.inDrain ? inheritedDrain : 0
    this.admin = (this.admin & ~(inheritedMaint | inheritedDrain)) | bits
  }

  checked(passed: boolean): void {
    const { check } = this.config
    if (!check || this.inMaint) return
    const wasDown = this.isDown
    this.lastCheck = passed ? 'passed' : 'failed'
    if (passed) this.health = Math.min(this.#fullHealth, this.health + 1)
    else {
      this.counters.chkfail++
      this.health = this.isDown || this.health <= check.rise ? 0 : this.health - 1
      if (this.isDown && !wasDown) this.counters.chkdown++
    }
    if (passed && !wasDown && this.health < check.rise) this.health = check.rise
    if (passed && wasDown && this.health >= check.rise) this.health = this.#fullHealth
    if (this.isDown !== wasDown) this.changedAt = Date.now()
  }

  begin(session: Session): void {
    const { counters } = this
    this.sessions.add(session)
    counters.stot++
    counters.smax = Math.max(counters.smax, this.sessions.size)
    this.lastSession = Date.now()
  }

  end(session: Session): void {
    this.sessions.delete(session)
  }

  /** Cuts what is in flight; what is queued comes next. */
  cutSessions(): number {
    const open = [...this.sessions]
    for (const session of open) {
      this.counters.cut++
      this.end(session)
      session.cut()
    }
    return open.length
  }

  clearCounters(all: boolean): void {
    const { counters } = this
    counters.smax = this.sessions.size
    counters.qmax = this.queue.length
    if (!all) return
    for (const key of Object.keys(counters) as (keyof typeof counters)[]) {
      if (key !== 'hrsp' && key !== 'smax' && key !== 'qmax') counters[key] = 0
    }
    counters.hrsp = [0, 0, 0, 0, 0, 0]
  }

  get #fullHealth(): number {
    const { check } = this.config
    return check ? check.rise + check.fall - 1 : 0
  }
}
