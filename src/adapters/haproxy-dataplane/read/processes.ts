import type { LoadScope, MemberRef } from '../../../provider/contract.js'
import { refKey } from '../../../provider/member-ref.js'
import { nameOf } from '../codec/replies.js'
import type { Settings } from '../options.js'
import type { HardStop } from './hard-stop.js'
import type { RuntimeView } from './read.js'

/** A HAProxy process that answers at present. */
export interface Process {
  readonly scope: string
  readonly incarnation: string
  /** Whole seconds since it started: never more than the truth. */
  readonly uptime: number
  /** On the clock: when it first answered. */
  readonly seenAt: number
}

/** A process that was seen to be replaced. */
interface Replaced extends Pick<Process, 'scope' | 'incarnation'> {
  /** On the clock: when its successor first answered. */
  readonly at: number
  /** The members that were drained, or being drained, since it was there. */
  readonly drained: Set<string>
}

/** What of a look tells of the process. */
type Look = Pick<RuntimeView, 'info'>

/** For how long an ended process stays listed: longer than any pause between two looks. */
const KEEP_ENDED = 60_000
/**
 * For how long a replaced process that nothing bounds is unread also for members that no drain had held since. Our choice,
 * as over the Runtime API: HAProxy has no bound, and without one a provider could drain nothing more after one reload.
 */
const KEEP_REPLACED = 60_000

/** The most replaced processes that are known. Any of them keeps a drain from idle, and a drain remembers its own. */
const MOST = 100

/** A replaced process is told to stop a moment after its successor answers, in milliseconds. */
const SLACK = 1_000

/** What shows replaced processes. */
const RUNTIME = 'give runtime: haproxyRuntime({ socket, master })'

/**
 * Remembers the HAProxy processes that answered.
 *
 * Over this API only the present process can be seen. When its pid changes, the replaced one may
 * still hold connections of every member, read there or not: it stays listed, unread, as `oldWorkers`
 * says.
 */
export class ProcessMemory {
  readonly #oldWorkers: Settings['oldWorkers']
  /** The members that were found drained, or are being drained. */
  readonly #held = new Set<string>()
  /** The largest `hard-stop-after` that the configuration was seen to have. */
  #hardStop: Exclude<HardStop, 'unread'> = 'unknown'
  /** Whether the configuration could not be read when it was asked last: it may say anything. */
  #isUnread = false
  readonly #replaced = new Map<string, Replaced>()
  /** The process that answered last. */
  #current: { readonly process: Process; readonly restarts: number } | undefined

  constructor(oldWorkers: Settings['oldWorkers']) {
    this.#oldWorkers = oldWorkers
  }

  /** Takes note of the process that answered. */
  note({ info }: Look, now: number): Process {
    for (const one of this.#replaced.values())
      if (this.#isForgotten(one, now)) this.#replaced.delete(one.scope)
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
      this.#replaced.set(scope, { scope, incarnation, at: now, drained: new Set() })
      const [oldest] = this.#replaced.keys()
      if (this.#replaced.size > MOST && oldest !== undefined) this.#replaced.delete(oldest)
    }
    this.#current = { process, restarts }
    return process
  }

  /** Takes note of what the configuration says of how long replaced processes live. */
  hardStop(told: HardStop): void {
    this.#isUnread = told === 'unread'
    if (told === 'unread' || told === 'unknown' || this.#hardStop === 'unset') return
    this.#hardStop =
      told === 'unset' || this.#hardStop === 'unknown' ? told : Math.max(this.#hardStop, told)
  }

  /** Takes note of a hold that is on its way: from now on the member counts as being drained. */
  holding(ref: MemberRef): void {
    this.#held.add(refKey(ref))
  }

  /** Takes note that a member was made ready by us: reloads up to now are the past of its next drain. */
  released(ref: MemberRef): void {
    this.#held.delete(refKey(ref))
    for (const { drained } of this.#replaced.values()) drained.delete(refKey(ref))
  }

  /**
   * The scopes to list for a member: the one just read, and the processes before it, which may hold work of any.
   *
   * @param read - undefined where the present process does not have the member
   * @param held - whether the member is found drained
   */
  scopes(
    ref: MemberRef,
    process: Process,
    read: LoadScope | undefined,
    held: boolean,
    now: number,
  ): readonly LoadScope[] {
    const key = refKey(ref)
    if (held) this.#held.add(key)
    // A reload forgets a drain, which then goes on: a process that opened the member meanwhile is part of it.
    else if (now - process.seenAt > KEEP_REPLACED) this.#held.delete(key)
    const before = [...this.#replaced.values()].map((one) => {
      if (this.#held.has(key) && now - one.at <= KEEP_REPLACED) one.drained.add(key)
      return this.#toScope(one, key, process, now)
    })
    if (read !== undefined) return [read, ...before]
    // the member is gone from the process that is there
    return before.length === 0 ? [] : [ended(process, now), ...before]
  }

  /** What can't be seen of a member's work: undefined only where nothing can be left. */
  unverified(process: Process): string | undefined {
    const contradiction = this.#contradiction()
    if (contradiction === undefined && this.#outlived(process)) return undefined
    return `the Data Plane API does not show HAProxy processes that a reload before this drain replaced: ${contradiction ?? this.#remedy(process)}`
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

  #toScope(one: Replaced, member: string, { seenAt }: Process, now: number): LoadScope {
    // it was told to stop when the present process was ready, which may be long after that started
    if (now - seenAt >= this.#lives) return ended(one, now, this.#contradiction())
    if (this.#oldWorkers === 'accept') return ended(one, now, "given up by oldWorkers: 'accept'")
    const isPast = this.#lives === Infinity && now - one.at > KEEP_REPLACED
    if (isPast && !one.drained.has(member))
      return ended(
        one,
        now,
        'replaced by a reload before the member was drained, and not seen since',
      )
    return { ...empty(one, now), state: 'unread', old: true, note: this.#unreadNote() }
  }

  /** Whether it has counted as ended for a while, for every member. */
  #isForgotten({ at, drained }: Replaced, now: number): boolean {
    if (this.#oldWorkers === 'wait')
      return drained.size === 0 && now - at > KEEP_REPLACED + KEEP_ENDED
    const { seenAt } = this.#current?.process ?? { seenAt: now }
    const endedAt = this.#oldWorkers === 'accept' ? at : seenAt + this.#lives
    return now - endedAt > KEEP_ENDED
  }

  /** How long a process may live on after it was replaced, by the word of the operator, in milliseconds. */
  get #lives(): number {
    return typeof this.#oldWorkers === 'object' ? this.#oldWorkers.within + SLACK : Infinity
  }

  #unreadNote(): string {
    if (typeof this.#oldWorkers === 'object')
      return `replaced by a reload; oldWorkers.within (${this.#oldWorkers.within} ms) counts from the first answer of the present process`
    return `replaced by a reload; the Data Plane API cannot see what it still holds: ${RUNTIME}, or set oldWorkers: { within: <hard-stop-after that it was started with> } or 'accept'`
  }

  /** Whether the present process is older than any replaced one can live, by the word of the operator. */
  #outlived({ uptime }: Process): boolean {
    return uptime * 1_000 >= this.#lives
  }
}

type Named = Pick<Process, 'scope' | 'incarnation'>

function empty({ scope, incarnation }: Named, sampledAt: number): Omit<LoadScope, 'state'> {
  return { scope, incarnation, sampledAt, active: 0, queued: 0 }
}

/** @param note - where it only counts as ended */
function ended(one: Named, now: number, note?: string): LoadScope {
  return { ...empty(one, now), state: 'ended', old: true, ...(note !== undefined && { note }) }
}
