import { randomUUID } from 'node:crypto'
import { Config, type FakeMember, type FakePool } from './config.js'
import { Timeline } from './timeline.js'
import { Tokens } from '../rest/tokens.js'

/** One server-side flow to a member. */
export interface Flow {
  readonly id: number
  readonly pool: string
  readonly member: string
  readonly address: string
  readonly port: number
  readonly since: number
  /** What the data plane does when the flow is deleted. */
  readonly onCut: () => void
}

/** A client that comes back to its member. */
export interface PersistRecord {
  readonly pool: string
  readonly member: string
  readonly address: string
  readonly port: number
  readonly client: string
}

/** Requests held back until a transaction is committed. */
export interface Transaction {
  readonly id: number
  readonly until: number
  state: 'STARTED' | 'COMPLETED' | 'FAILED'
  readonly commands: { readonly method: string; readonly uri: string; readonly body: unknown }[]
}

/** How the control plane answers while it comes up. */
export type Stage = 'proxy' | 'framework' | 'loading' | 'up'

let flows = 0

/** One device: its configuration, its traffic, its tokens, its role. */
export class Unit {
  readonly name: string
  /** Of this machine alone, whatever it is called. */
  readonly chassisId = randomUUID()
  readonly baseMac = `00:${this.chassisId.slice(0, 10).replaceAll('-', '').match(/../g)?.join(':') ?? ''}`
  readonly config = new Config()
  readonly tokens: Tokens
  readonly flows = new Set<Flow>()
  readonly records: PersistRecord[] = []
  readonly transactions = new Map<number, Transaction>()
  readonly #counters = new Map<string, Timeline>()
  readonly #statsLag: number
  role: 'active' | 'standby' | 'forced_offline'
  /** An hour ago at the start, as of a device that has been up for a while. */
  roleSince = Date.now() - 3_600_000
  stage: Stage = 'up'
  saved: Config | undefined
  failedLogins = 0
  /** What `config-sync` last took from elsewhere or gave away. */
  syncedRevision = 1

  constructor(name: string, role: 'active' | 'standby', statsLag: number, skew: number) {
    this.name = name
    this.role = role
    this.#statsLag = statsLag
    this.tokens = new Tokens(skew)
  }

  setRole(role: Unit['role']): void {
    this.role = role
    this.roleSince = Date.now()
  }

  counters(pool: string, member: string): Timeline {
    const key = `${pool}\0${member}`
    const known = this.#counters.get(key)
    if (known !== undefined) return known
    const made = new Timeline(this.#statsLag)
    this.#counters.set(key, made)
    return made
  }

  /** A flow to the member begins. */
  open(
    pool: Pick<FakePool, 'fullPath'>,
    member: Pick<FakeMember, 'fullPath' | 'address' | 'port'>,
    onCut: () => void = () => undefined,
  ): Flow {
    flows += 1
    const flow: Flow = {
      id: flows,
      pool: pool.fullPath,
      member: member.fullPath,
      address: member.address,
      port: member.port,
      since: Date.now(),
      onCut,
    }
    this.flows.add(flow)
    const counters = this.counters(flow.pool, flow.member)
    const { curConns, totConns, totRequests } = counters.now
    counters.change({
      curConns: curConns + 1,
      totConns: totConns + 1,
      totRequests: totRequests + 1,
    })
    return flow
  }

  /** A persistence record is made; the same client of the same member has one. */
  remember(pool: FakePool, member: FakeMember, client: string): void {
    const { address, port } = member
    const record = { pool: pool.fullPath, member: member.fullPath, address, port, client }
    this.records.push(record)
    const counters = this.counters(record.pool, record.member)
    counters.change({ curSessions: counters.now.curSessions + 1 })
  }

  recordsOf(pool: FakePool, member: FakeMember): readonly PersistRecord[] {
    return this.records.filter(
      (record) => record.pool === pool.fullPath && record.member === member.fullPath,
    )
  }

  /** Deletes records, as `delete ltm persistence persist-records` does. */
  forget(which: (record: PersistRecord) => boolean): void {
    for (const record of this.records.filter(which)) {
      this.records.splice(this.records.indexOf(record), 1)
      const counters = this.counters(record.pool, record.member)
      counters.change({ curSessions: Math.max(0, counters.now.curSessions - 1) })
    }
  }

  /** The flow has ended by itself; nothing happens where it was cut before. */
  end(flow: Flow): void {
    if (!this.flows.delete(flow)) return
    const counters = this.counters(flow.pool, flow.member)
    counters.change({ curConns: counters.now.curConns - 1 })
  }

  /** Deletes flows, as `delete sys connection` does. */
  cut(which: (flow: Flow) => boolean): number {
    const hit = [...this.flows].filter(which)
    for (const flow of hit) {
      this.end(flow)
      flow.onCut()
    }
    return hit.length
  }

  /** The traffic processes start anew: flows and counters are gone. */
  resetTraffic(): void {
    this.cut(() => true)
    this.records.length = 0
    for (const timeline of this.#counters.values()) timeline.reset()
  }
}
