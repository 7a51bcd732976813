import type { AdminState } from 'drainable'

/** One piece of work for one member, as the balancer truly holds it. */
export interface Work {
  readonly key: string
  /**
   * Bound to the member and in no counter: `hidden` is a retry in its turn-around, `slot` has left the queue and waits
   * for its thread. Only the first was counted as an arrival.
   */
  phase: 'active' | 'queued' | 'hidden' | 'slot'
  readonly since: number
  over: boolean
}

/** What one process truly held for one member at a moment: found again by the sample that showed it. */
export interface Fact {
  readonly total: number
  readonly hidden: number
  readonly lastArrival: number
}

/** One process of the hidden balancer: a worker or a unit. */
export class BalancerProcess {
  readonly name: string
  readonly bornAt: number
  incarnation: string
  /** `old`: replaced by a newer one; takes no more changes, keeps its work, ends when nothing is left. */
  role: 'current' | 'old' | 'ended' = 'current'
  endedAt = Infinity
  /** What this process has taken, by member. */
  readonly admin = new Map<string, AdminState>()
  readonly works = new Set<Work>()
  readonly arrivals = new Map<string, number>()
  readonly lastArrival = new Map<string, number>()
  /** Clients that hold a connection to it. */
  attached = 0
  /** It cannot be read until then. */
  unreadUntil = -Infinity
  /** Told of each piece of work that is over, in whatever way. */
  left: ((key: string) => void) | undefined

  constructor(name: string, incarnation: string, bornAt: number) {
    this.name = name
    this.incarnation = incarnation
    this.bornAt = bornAt
  }

  get alive(): boolean {
    return this.role !== 'ended'
  }

  stateOf(key: string): AdminState {
    return this.admin.get(key) ?? 'ready'
  }

  arrive(key: string, at: number): void {
    this.arrivals.set(key, (this.arrivals.get(key) ?? 0) + 1)
    this.lastArrival.set(key, at)
  }

  count(key: string, phase: Work['phase']): number {
    let count = 0
    for (const work of this.works) if (work.key === key && work.phase === phase) count += 1
    return count
  }

  load(key: string): number {
    let count = 0
    for (const work of this.works) if (work.key === key) count += 1
    return count
  }

  fact(key: string): Fact {
    return {
      total: this.load(key),
      hidden: this.count(key, 'hidden') + this.count(key, 'slot'),
      lastArrival: this.lastArrival.get(key) ?? -Infinity,
    }
  }

  /** One piece of work is over. */
  end(work: Work): void {
    work.over = true
    this.works.delete(work)
    this.left?.(work.key)
  }

  /** Ends work of a member, or all of it. */
  cut(key?: string): number {
    let cut = 0
    for (const work of [...this.works]) {
      if (key !== undefined && work.key !== key) continue
      this.end(work)
      cut += 1
    }
    return cut
  }

  /** A restart in place: nothing is left of what it knew. */
  restart(incarnation: string): void {
    this.cut()
    this.incarnation = incarnation
    this.arrivals.clear()
    this.admin.clear()
  }
}
