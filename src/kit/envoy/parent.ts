import type { LoadScope } from '../../provider/contract.js'
import type { ServerInfo } from './answers.js'

/** What its child shows of the process that a hot restart has replaced, at one look. */
export interface ParentTrace {
  /** `isUp`: the child's listeners are up, and the process before it takes no more connections. */
  readonly age: ServerInfo['uptime'] & { readonly isUp: boolean }
  /** `server.parent_connections`, downstream; undefined: not shown, or not merged. */
  readonly connections: number | undefined
  /** `server.uptime`: of all epochs when the statistics of the old process were last added, and what that one had itself. */
  readonly mergedAt: number | undefined
}

/**
 * The trace in one look's answers.
 *
 * @param stat - one of the child's `server.*` statistics, by the rest of its name. With `--skip-hot-restart-parent-stats`
 *   they say 0 connections, whatever its parent has
 */
export function parentTrace(
  { uptime, state, mergesParent }: ServerInfo,
  stat: (name: string) => number | undefined,
): ParentTrace {
  const of = (name: string): number | undefined => (mergesParent ? stat(name) : undefined)
  return {
    age: { ...uptime, isUp: state === 'LIVE' || state === 'DRAINING' },
    connections: of('parent_connections'),
    mergedAt: of('uptime'),
  }
}

/** What is known of it by now. */
export interface ParentState {
  /** No client is connected to it, and none can come. */
  readonly isClosed: boolean
  readonly isEnded: boolean
  /** It may have been ended over its work by now: nothing that it no longer shows has finished. */
  readonly isDue: boolean
  /** At most so many clients are connected; undefined: not known. */
  readonly connections: number | undefined
  /** What it has, in words. */
  readonly note: string
}

/** A child may take that long until its listeners are up; seconds. */
const START = 60
/** Signals and exits take a moment; milliseconds. */
const MARGIN = 2_000

/**
 * How often the statistics must have been added while the child's listeners are up, before they prove something: a child
 * adds them once more just before it tells its parent to take no more connections.
 */
const MERGES = 2

/**
 * The life of a parent after a hot restart, told from its child alone: its admin API is closed.
 *
 * It goes on with its connections until its child ends it, `--parent-shutdown-time-s` after the child's listeners came up
 * (default 15 minutes). Earlier it is proved empty by the child's statistics: they add those of the parent at every flush
 * (5 s), and `server.uptime` moves then. It is no time: what the parent's own said last is in it for as long as the parent
 * lives, so it falls when its child ends the parent, which is at once where the next process replaces that child. So is in
 * `server.parent_connections` what a parent that is a child itself showed last of its own parent: nothing tells the two apart.
 * Envoy 1.39.3, 1.40.0.
 */
export class Parent {
  readonly #epoch: number
  readonly #shutdown: number
  #upSince: number | undefined
  /** `server.uptime` as last seen with the child's listeners up, and how often it has moved since then. */
  #mergedAt: number | undefined
  #merges = 0
  /** Its child has let go of its statistics: that has ended it, or was itself replaced. */
  #isCut = false
  #isEnded = false
  #isClosed = false

  /** @param shutdown - `--parent-shutdown-time-s` of its child, in milliseconds */
  constructor(epoch: number, shutdown: number) {
    this.#epoch = epoch
    this.#shutdown = shutdown
  }

  /** @param now - before the child was asked, by the monotonic clock */
  seen(trace: ParentTrace, now: number): ParentState {
    const { age, connections, mergedAt } = trace
    if (age.isUp) {
      this.#upSince ??= now
      this.#count(mergedAt)
    }
    const isDue = this.#isCut || age.current + 1 >= this.#shutdown / 1_000
    const isMerged = this.#merges >= MERGES
    const isGone = isMerged && connections === 0
    this.#isClosed ||= isGone && !isDue
    this.#isEnded ||= age.isUp && ((isGone && isDue) || this.#isOver(trace, now))
    const isKnown = !isDue && connections !== undefined && (isMerged || connections > 0)
    const known = this.#isClosed ? 0 : isKnown ? connections : undefined
    return {
      isClosed: this.#isClosed,
      isEnded: this.#isEnded,
      isDue,
      connections: known,
      note: this.#words(trace, known, now),
    }
  }

  #count(mergedAt: number | undefined): void {
    if (mergedAt === undefined) return
    const last = this.#mergedAt ?? mergedAt
    if (mergedAt > last) this.#merges += 1
    if (mergedAt < last) this.#isCut = true
    this.#mergedAt = Math.max(mergedAt, last)
  }

  #isOver({ age, connections, mergedAt }: ParentTrace, now: number): boolean {
    if (this.#upSince !== undefined && now - this.#upSince >= this.#shutdown + MARGIN) return true
    // A child that was up long before we came, and adds the uptime of no other process any more.
    const over = this.#shutdown / 1_000 + START
    const since = age.all - age.current + over
    const isAlone = mergedAt !== undefined && mergedAt >= since && mergedAt <= age.all + 1
    return age.current >= over && isAlone && connections === 0
  }

  #words({ connections }: ParentTrace, known: number | undefined, now: number): string {
    const what = `the process before a hot restart (epoch ${this.#epoch})`
    if (this.#isEnded) return `${what} has ended`
    if (this.#isClosed) return `${what} has no connection left`
    const held = known === undefined ? 'may still hold work' : this.#most(known)
    const hidden =
      connections === undefined ? ', and /stats does not tell server.parent_connections' : ''
    const left = Math.max(0, this.#shutdown - (now - (this.#upSince ?? now)))
    return `${what} ${held}${hidden}; it ends in ${Math.ceil(left / 1_000)} s at the latest`
  }

  #most(connections: number): string {
    if (this.#epoch === 0) return `has ${connections} connections`
    return `has up to ${connections} connections: what epoch ${this.#epoch - 1} had when it was ended is counted too`
  }
}

/** What the process before a hot restart goes by. */
export function parentScope(name: string): string {
  return `${name} before its hot restart`
}

/**
 * That process, as its child tells. It is in force once no client can come to it any more.
 *
 * @param active - undefined: not known
 */
export function parentLoad(
  base: Pick<LoadScope, 'scope' | 'incarnation' | 'sampledAt' | 'note'>,
  active: number | undefined,
  isOpen: boolean,
): LoadScope {
  const scope = { ...base, queued: 0, old: true }
  return active === undefined
    ? { ...scope, state: 'unread', active: 0 }
    : { ...scope, state: 'read', active, arrivals: 0, inForce: !isOpen, open: isOpen }
}
