import { isAtLeast, parseVersion } from '../../../kit/version.js'
import type { LoadScope, MemberRef } from '../../../provider/contract.js'
import { formatDuration } from '../../../provider/duration.js'
import { refKey } from '../../../provider/member-ref.js'
import { nameOf } from '../codec/replies.js'
import type { Settings } from '../options.js'
import type { Configured, HardStop } from './configured.js'
import type { RuntimeView } from './read.js'
import { identify } from './reading.js'

/**
 * Whether work at a server's address may stand in the row of another server. If a server gets another address (by DNS,
 * or from a client), its requests stay at the address of before, and in its row; another server of the backend can get
 * that address meanwhile. Only HAProxy's list of streams tells, which this API does not have (measured on the Runtime
 * API of 2.6 to 3.4).
 */
export class MovedAddresses {
  /** The address of each server, by backend. */
  readonly #known = new Map<string, ReadonlyMap<string, string>>()
  /** Backends in which a server was seen to lose its address. */
  readonly #moved = new Set<string>()

  /** Takes in a look at whole backends. */
  note({ pools }: RuntimeView): void {
    for (const [pool, members] of pools) {
      const before = this.#known.get(pool)
      const now = new Map([...members].map(([name, found]) => [name, identify(found).identity]))
      const moved = [...now].some(([name, at]) => (before?.get(name) ?? at) !== at)
      if (moved) this.#moved.add(pool)
      this.#known.set(pool, now)
    }
  }

  /** Why the counts of a server may not be all that its machine works on; undefined if they are. */
  why(
    { pool, member }: MemberRef,
    { named }: Pick<Configured, 'named'>,
    view: RuntimeView,
  ): string | undefined {
    if (named === false && !this.#moved.has(pool)) return undefined
    const others = [...(view.pools.get(pool) ?? [])].filter(([name]) => name !== member)
    const busy = others.some(([, { row }]) => row.scur + row.qcur > 0)
    const reuses = others.length > 0 && isReusing(view.info.version)
    if (!busy && !reuses) return undefined
    const because =
      named === true
        ? 'its address comes from DNS'
        : this.#moved.has(pool)
          ? 'a server of its backend was seen to change its address'
          : "HAProxy's configuration can't be read, so its address may come from DNS"
    return reuses
      ? `${because}: HAProxy before 3.0 goes on sending requests over a server's connections to its address of before, and another server of ${pool} can have had this address; 3.0 and later close them`
      : `${because}, and other servers are at work: requests of before can be at its address and stand in the row of a server that had it; the option runtime counts them`
  }
}

/** Whether a server's connections to its address of before stay in use (measured on 2.6, not on 3.0 to 3.4). */
function isReusing(text: string): boolean {
  const version = parseVersion(text)
  return version !== undefined && !isAtLeast(version, 3, 0)
}

/**
 * For so long after a connection to a server was tried again idle is not verified, ms. The retry waits a second, and
 * then for its thread: up to 5.8 s were seen (2.6, 3.0, 3.2, 3.4), and no bound is known.
 */
const DOUBT = 30_000

/**
 * Whether a request may wait for its retry and be in no count. Its thread of HAProxy can be late, and only the list of
 * streams shows the request until that runs, which this API does not have.
 */
export class Retries {
  /** `wretr` of each server, and when it was seen to grow last. */
  readonly #known = new Map<string, { readonly count: number; readonly grewAt: number }>()

  /** Takes in a look. */
  note({ pools }: RuntimeView, now: number): void {
    for (const [pool, members] of pools)
      for (const [member, { row }] of members) {
        const count = row.retries
        const key = refKey({ pool, member })
        const { count: before, grewAt } = this.#known.get(key) ?? { count, grewAt: -Infinity }
        // A count that fell began anew, with a process or by 'clear counters': it can have grown since.
        const grew = count > before || (count < before && count > 0)
        this.#known.set(key, { count, grewAt: grew ? now : grewAt })
      }
  }

  /** Why idle is not verified; undefined if no connection was tried again of late. */
  why({ pool, member }: MemberRef, now: number): string | undefined {
    const ago = now - (this.#known.get(refKey({ pool, member }))?.grewAt ?? -Infinity)
    if (ago >= DOUBT) return undefined
    return `a connection to it was tried again ${formatDuration(ago)} ago: a request that waits for its retry is in no count, and can come seconds later where HAProxy's threads are late; the option runtime sees it`
  }
}

/** A HAProxy process that answers at present. */
export interface Process {
  readonly scope: string
  readonly incarnation: string
  /** Whole seconds since it started: never more than the truth. */
  readonly uptime: number
  /** On the clock: when it first answered. */
  readonly seenAt: number
}

type Named = Pick<Process, 'scope' | 'incarnation'>

/** A process that was seen to be replaced. */
interface Replaced extends Named {
  /** On the clock: when its successor first answered. */
  readonly at: number
  /** On the clock: when it counted as ended. */
  endedAt?: number
}

/** What of a look tells of the process. */
type Look = Pick<RuntimeView, 'info'>

/**
 * For how long a replaced process that nothing bounds is listed as unread, and one that counts as ended as that. A drain
 * that has seen it unread goes on waiting for it: the core forgets no process whose end was not seen. One that begins
 * later goes ahead, unverified. Our choice: HAProxy has no bound, and without one a provider could drain nothing more
 * after one reload.
 */
const LISTED = 60_000

const PAST = 'replaced by a reload before the member was drained, and not seen since'

/** How many replaced processes are known: the oldest is unlisted before that many reloads have ended it. */
const MOST = 200
/** A replaced process is told to stop a moment after its successor answers, in milliseconds. */
const SLACK = 1_000

/** What shows replaced processes. */
const RUNTIME = 'give runtime: haproxyRuntime({ socket, master })'

/**
 * Remembers the HAProxy processes that answered.
 *
 * Over this API only the present process can be seen. When its pid changes, the replaced one may still hold connections
 * of every member, read there or not: it is listed as `oldWorkers` says.
 */
export class ProcessMemory {
  readonly #oldWorkers: Settings['oldWorkers']
  /** The largest `hard-stop-after` that the configuration was seen to have. */
  #hardStop: Exclude<HardStop, 'unread'> = 'unknown'
  /** Whether the configuration could not be read when it was asked last: it may say anything. */
  #isUnread = false
  readonly #replaced = new Map<string, Replaced>()
  /** Whether there was one that is not listed any more, and that nothing bounds. */
  #isPast = false
  /** The process that answered last. */
  #current: { readonly process: Process; readonly restarts: number } | undefined

  constructor(oldWorkers: Settings['oldWorkers']) {
    this.#oldWorkers = oldWorkers
  }

  /** Takes note of the process that answered. */
  note({ info }: Look, now: number): Process {
    const last = this.#current
    const name = nameOf(info)
    // pids repeat in containers: a younger process with the same pid is another one
    const same = last?.process.incarnation.split('#')[0] === name
    const restarts =
      same && info.uptime < last.process.uptime ? last.restarts + 1 : same ? last.restarts : 0
    const suffix = restarts === 0 ? '' : `#${restarts + 1}`
    const process = {
      scope: `worker ${info.pid}${suffix}`,
      incarnation: `${name}${suffix}`,
      uptime: info.uptime,
      seenAt: same && restarts === last.restarts ? last.process.seenAt : now,
    }
    if (last !== undefined && last.process.incarnation !== process.incarnation) {
      const { scope, incarnation } = last.process
      this.#replaced.set(scope, { scope, incarnation, at: now })
      const [oldest] = this.#replaced.keys()
      if (this.#replaced.size > MOST && oldest !== undefined) this.#replaced.delete(oldest)
    }
    this.#current = { process, restarts }
    this.#age(now, process.seenAt)
    return process
  }

  /** Takes note of what the configuration says of how long replaced processes live. */
  hardStop(told: HardStop): void {
    this.#isUnread = told === 'unread'
    if (told === 'unread' || told === 'unknown' || this.#hardStop === 'unset') return
    this.#hardStop =
      told === 'unset' || this.#hardStop === 'unknown' ? told : Math.max(this.#hardStop, told)
  }

  /**
   * The scopes to list for a member: the one just read, and the processes before it.
   *
   * @param read - undefined where the present process does not have the member
   * @param held - whether the member is found drained: a drain that has seen a process unread goes on waiting for it
   */
  scopes(
    process: Process,
    read: LoadScope | undefined,
    held: boolean,
    now: number,
  ): readonly LoadScope[] {
    const isFree = !held && now - process.seenAt > LISTED
    const before = [...this.#replaced.values()].flatMap((one) => this.#toScope(one, isFree, now))
    if (read !== undefined) return [read, ...before]
    // the member is gone from the process that is there
    return before.length === 0 ? [] : [ended(process, now), ...before]
  }

  /** What a person should know of a process that is not listed any more, and that a drain may wait for. */
  get hint(): string | undefined {
    return this.#isPast ? `a process was ${this.#unreadNote()}` : undefined
  }

  /** What can't be seen of a member's work: undefined only where nothing can be left. */
  unverified(process: Process): string | undefined {
    const contradiction = this.#contradiction()
    const outlived = this.#oldWorkers !== 'accept' && process.uptime * 1_000 >= this.#lives
    if (contradiction === undefined && outlived) return undefined
    return `the Data Plane API does not show HAProxy processes that a reload before this drain replaced: ${contradiction ?? this.#remedy(process)}`
  }

  /**
   * Whether what is not listed has ended: the present process has outlived every one before it. A drain that is resumed
   * knows processes that this provider has never met.
   */
  knowsAll(process: Process): boolean {
    const isOver = [...this.#replaced.values()].every(({ endedAt }) => endedAt !== undefined)
    return isOver && this.unverified(process) === undefined
  }

  /** Why what the operator says of replaced processes can't be so. */
  #contradiction(): string | undefined {
    if (typeof this.#oldWorkers !== 'object') return undefined
    const { within } = this.#oldWorkers
    if (this.#isUnread)
      return "HAProxy's configuration could not be read yet, so it is not known whether oldWorkers applies"
    if (this.#hardStop === 'unset')
      return "HAProxy's configuration has no hard-stop-after, they live as long as their connections"
    if (this.#hardStop === 'unknown' || within >= this.#hardStop) return undefined
    return `oldWorkers.within (${within} ms) is below hard-stop-after of HAProxy's configuration (${this.#hardStop} ms)`
  }

  #remedy({ uptime }: Process): string {
    if (typeof this.#oldWorkers === 'object')
      return `the present one has run for ${uptime} s, oldWorkers.within is not over yet`
    const known =
      typeof this.#hardStop === 'number' ? ` (its configuration has ${this.#hardStop} ms)` : ''
    return `set hard-stop-after in HAProxy${known} and oldWorkers: { within: <that time> }, or ${RUNTIME}`
  }

  /** @param isFree - whether no drain waits for it */
  #toScope(one: Replaced, isFree: boolean, now: number): readonly LoadScope[] {
    if (one.endedAt !== undefined) {
      const isGivenUp = this.#oldWorkers === 'accept'
      return [
        ended(one, now, isGivenUp ? "given up by oldWorkers: 'accept'" : this.#contradiction()),
      ]
    }
    if (this.#lives < Infinity || now - one.at <= LISTED)
      return [{ ...empty(one, now), state: 'unread', old: true, note: this.#unreadNote() }]
    return isFree ? [ended(one, now, PAST)] : []
  }

  /** Ends those whose time is over, and drops those that are not to be listed any more. */
  #age(now: number, seenAt: number): void {
    for (const one of this.#replaced.values()) {
      // it was told to stop when the present process was ready, which may be long after that started
      if (now - seenAt >= this.#lives) one.endedAt ??= now
      this.#isPast ||= one.endedAt === undefined && now - one.at > LISTED
      const from = one.endedAt ?? (this.#lives === Infinity ? seenAt + LISTED : now)
      if (now - from > LISTED) this.#replaced.delete(one.scope)
    }
  }

  /** How long a process may live on after it was replaced, by the word of the operator, in milliseconds. */
  get #lives(): number {
    if (this.#oldWorkers === 'accept') return 0
    return typeof this.#oldWorkers === 'object' ? this.#oldWorkers.within + SLACK : Infinity
  }

  #unreadNote(): string {
    if (typeof this.#oldWorkers === 'object')
      return `replaced by a reload; oldWorkers.within (${this.#oldWorkers.within} ms) counts from the first answer of the present process`
    return `replaced by a reload; the Data Plane API cannot see what it still holds: ${RUNTIME}, or set oldWorkers: { within: <hard-stop-after that it was started with> } or 'accept'`
  }
}

function empty({ scope, incarnation }: Named, sampledAt: number): Omit<LoadScope, 'state'> {
  return { scope, incarnation, sampledAt, active: 0, queued: 0 }
}

/** @param note - where it only counts as ended */
function ended(one: Named, now: number, note?: string): LoadScope {
  return { ...empty(one, now), state: 'ended', old: true, ...(note !== undefined && { note }) }
}
