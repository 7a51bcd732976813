/** What the appliance says of one thing that serves, in its configuration's words. */
export type SvrState =
  | 'UP'
  | 'DOWN'
  | 'UNKNOWN'
  | 'BUSY'
  | 'OUT OF SERVICE'
  | 'GOING OUT OF SERVICE'
  | 'DOWN WHEN GOING OUT OF SERVICE'

/** A server object: what members and services are bound to. */
export interface Server {
  readonly name: string
  readonly address: string
  enabled: boolean
}

/** What a test asked the appliance to hold for a member. */
export interface Load {
  /** Requests, or connections, in flight. */
  active: number
  /** In the surge queue. */
  queued: number
  /** Idle connections parked for reuse. */
  pooled: number
  /** Idle keep-alive clients. */
  idleClients: number
  /** Connections to the backend that are not established yet. */
  connecting: number
  /** Persistence entries: TROFS waits for these clients too. */
  persistent: number
  total: bigint
  /** Rises with every cut, so that what was cut cannot be released again. */
  epoch: number
}

/** How to leave service. */
export interface Leaving {
  readonly graceful: boolean
  /** Seconds. */
  readonly delay: number
}

const EMPTY = {
  active: 0,
  queued: 0,
  pooled: 0,
  idleClients: 0,
  connecting: 0,
  persistent: 0,
}

/**
 * A group member or a service, and its way out of service:
 *
 * | graceful | delay | |
 * |---|---|---|
 * | NO | 0 | OUT OF SERVICE at once, established work is cut |
 * | NO | n | TROFS for n seconds, however idle it is |
 * | YES | 0 | TROFS until the last client is gone |
 * | YES | n | whichever comes first |
 *
 * With downStateFlush DISABLED nothing is cut when it gets there. Clients with a persistence entry keep it in TROFS,
 * between their visits too, and are let in, where trofsPersistence is on.
 */
export class Entity {
  readonly server: Server
  readonly port: number
  weight: number
  health: 'UP' | 'DOWN' | 'UNKNOWN' | 'BUSY'
  /** A monitor's trofsCode was seen. */
  monitorTrofs = false
  /** Own state, as disable and enable at its own level leave it. */
  enabled = true
  phase: 'in' | 'trofs' | 'out' = 'in'
  leaving: Leaving = { graceful: false, delay: 0 }
  changedAt = Date.now()
  readonly load: Load = { ...EMPTY, total: 0n, epoch: 0 }
  /** How many connections a change of state cut. */
  cut = 0
  #leaveAt = Infinity
  #checkedAt = 0

  constructor(
    server: Server,
    port: number,
    weight = 1,
    health: 'UP' | 'DOWN' | 'UNKNOWN' | 'BUSY' = 'UP',
  ) {
    this.server = server
    this.port = port
    this.weight = weight
    this.health = health
  }

  get disabled(): boolean {
    return !this.enabled || !this.server.enabled
  }

  get svrstate(): SvrState {
    if (this.phase === 'out') return 'OUT OF SERVICE'
    const health = Date.now() < this.#checkedAt ? 'DOWN' : this.health
    if (this.phase === 'trofs') {
      return health === 'DOWN' ? 'DOWN WHEN GOING OUT OF SERVICE' : 'GOING OUT OF SERVICE'
    }
    return this.monitorTrofs && health === 'UP' ? 'GOING OUT OF SERVICE' : health
  }

  leave(how: Leaving, flush: boolean, multiplexed: boolean): void {
    this.leaving = how
    if (this.phase === 'out') return
    this.changedAt = Date.now()
    if (!how.graceful && how.delay === 0) {
      this.#out(flush)
      return
    }
    this.phase = 'trofs'
    this.#leaveAt = how.delay === 0 ? Infinity : Date.now() + how.delay * 1_000
    if (how.graceful && multiplexed) {
      // Idle keep-alive connections of multiplexed HTTP services are reset at this very moment.
      this.cut += this.load.idleClients
      this.load.idleClients = 0
    }
  }

  enter(checkDelay: number): void {
    if (this.disabled || this.phase === 'in') return
    this.phase = 'in'
    this.leaving = { graceful: false, delay: 0 }
    this.changedAt = Date.now()
    this.#leaveAt = Infinity
    this.#checkedAt = Date.now() + checkDelay
  }

  /** @param honoured - whether clients with a persistence entry are let in, see `Config.honours` */
  tick(flush: boolean, honoured: boolean): void {
    if (this.phase !== 'trofs') return
    const { active, queued, idleClients, connecting, persistent } = this.load
    const clients = active + queued + idleClients + connecting + (honoured ? persistent : 0)
    const gone = clients === 0
    if (Date.now() >= this.#leaveAt || (this.leaving.graceful && gone)) this.#out(flush)
  }

  /** Everything established is gone: a flush, a failover, a reboot. */
  drop(): void {
    this.cut += this.load.active + this.load.queued
    Object.assign(this.load, EMPTY, { epoch: this.load.epoch + 1 })
  }

  #out(flush: boolean): void {
    this.phase = 'out'
    this.changedAt = Date.now()
    if (flush) this.drop()
  }
}
