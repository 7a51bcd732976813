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

interface Seen {
  /** As it was last listed. */
  scope: LoadScope
  /** Whether the member was found drained, or being drained, since this process was there. */
  held: boolean
  /** On the clock: when it was first listed as ended. */
  endedAt?: number
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
  readonly #members = new Map<string, Map<string, Seen>>()
  /** The largest `hard-stop-after` that the configuration was seen to have. */
  #hardStop: Exclude<HardStop, 'unread'> = 'unknown'
  /** Whether the configuration could not be read when it was asked last: it may say anything. */
  #isUnread = false
  /** Those that were seen to be replaced of late, by scope. */
  readonly #replaced = new Map<string, { readonly incarnation: string; readonly at: number }>()
  /** The process that answered last. */
  #current: { readonly process: Process; readonly restarts: number } | undefined

  constructor(oldWorkers: Settings['oldWorkers']) {
    this.#oldWorkers = oldWorkers
  }

  /** Takes note of the process that answered. */
  note({ info }: Look, now: number): Process {
    for (const [scope, { at }] of this.#replaced)
      if (now - at > KEEP_REPLACED) this.#replaced.delete(scope)
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
      this.#replaced.set(scope, { incarnation, at: now })
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

  /**
   * Takes note of a hold that is on its way: from now on the member counts as being drained, also in a
   * process that has come since the last look and may be gone before the next one.
   */
  holding(ref: MemberRef, now: number): void {
    const members = this.#members.get(refKey(ref)) ?? new Map<string, Seen>()
    this.#members.set(refKey(ref), members)
    if (this.#current !== undefined) {
      const { process } = this.#current
      const seen = members.get(process.scope)
      if (seen === undefined || seen.endedAt !== undefined)
        members.set(process.scope, { scope: unread(process, now), held: true })
    }
    for (const entry of members.values()) entry.held = true
  }

  /** Takes note that a member was made ready by us: reloads up to now are the past of its next drain. */
  released(ref: MemberRef): void {
    for (const entry of this.#members.get(refKey(ref))?.values() ?? []) entry.held = false
  }

  /**
   * The scopes to list for a member: the one just read, and the processes before it.
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
    let seen = this.#members.get(key)
    if (seen === undefined) {
      if (read === undefined && this.#replaced.size === 0) return []
      seen = new Map()
      this.#members.set(key, seen)
    }
    // A drain goes on over a reload that forgot it: a process that opened the member meanwhile is part of it.
    const drained = held || [...seen.values()].some((one) => one.held && one.endedAt === undefined)
    for (const [scope, { incarnation, at }] of this.#replaced)
      if (!seen.has(scope))
        seen.set(scope, { scope: unread({ scope, incarnation }, at), held: drained })
    for (const entry of seen.values()) entry.held ||= drained
    if (read !== undefined) seen.set(read.scope, { scope: read, held: drained })
    for (const [name, entry] of seen) {
      if (name !== process.scope) this.#age(entry, process, now)
      // the member is gone from the process that is there
      else if (read === undefined) this.#end(entry, now)
      if (entry.endedAt !== undefined && now - entry.endedAt > KEEP_ENDED) seen.delete(name)
    }
    const others = [...seen.values()].map((entry) => entry.scope).filter((scope) => scope !== read)
    return read === undefined ? others : [read, ...others]
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

  #age(entry: Seen, { seenAt }: Process, now: number): void {
    if (entry.endedAt !== undefined) return
    // it was told to stop when the present process was ready, which may be long after that started
    const lives = this.#lives
    const ended = now - seenAt >= lives
    const isPast = !entry.held && lives === Infinity && !this.#replaced.has(entry.scope.scope)
    if (this.#oldWorkers === 'accept' || isPast || ended) {
      this.#end(entry, now, ended ? this.#contradiction() : this.#givenUp())
      return
    }
    entry.scope = { ...entry.scope, state: 'unread', old: true, note: this.#unreadNote() }
  }

  /** Why a process counts as ended that may not have. */
  #givenUp(): string {
    return this.#oldWorkers === 'accept'
      ? "given up by oldWorkers: 'accept'"
      : 'replaced by a reload before the member was drained, and not seen since'
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

  /** @param note - where it only counts as ended */
  #end(entry: Seen, now: number, note?: string): void {
    entry.endedAt ??= now
    const { scope, incarnation, sampledAt, arrivals } = entry.scope
    entry.scope = {
      scope,
      incarnation,
      state: 'ended',
      sampledAt,
      active: 0,
      queued: 0,
      ...(arrivals === undefined ? {} : { arrivals }),
      old: true,
      ...(note === undefined ? {} : { note }),
    }
  }

  /** Whether the present process is older than any replaced one can live, by the word of the operator. */
  #outlived({ uptime }: Process): boolean {
    return uptime * 1_000 >= this.#lives
  }
}

/** A process that nothing is known of but that it was there. */
function unread(
  { scope, incarnation }: Pick<Process, 'scope' | 'incarnation'>,
  sampledAt: number,
): LoadScope {
  return { scope, incarnation, state: 'unread', sampledAt, active: 0, queued: 0 }
}
