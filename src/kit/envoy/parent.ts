import type { LoadScope } from '../../provider/contract.js'
import type { ServerInfo } from './answers.js'

/** What its child shows of the process that a hot restart has replaced, at one look. */
export interface ParentTrace {
  /** `isUp`: the child's listeners are up, and the process before it takes no more connections. */
  readonly age: ServerInfo['uptime'] & { readonly isUp: boolean }
  /** `server.parent_connections`, downstream; undefined: not shown, or not merged. */
  readonly connections: number | undefined
  /** `server.uptime`: when the statistics of the old process were last added, by the uptime of all epochs. */
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
 * The life of a parent after a hot restart, told from its child alone: its admin API is closed.
 *
 * It goes on with its connections until its child ends it, `--parent-shutdown-time-s` after the child's listeners came up
 * (default 15 minutes). Earlier it is proved empty by the child's statistics: they add those of the parent at every flush
 * (5 s), and `server.uptime` says when that was. A parent that is a child itself hands on the last number of its own parent
 * with its own, for as long as it lives. Envoy 1.39.3, 1.40.0.
 */
export class Parent {
  readonly #epoch: number
  readonly #shutdown: number
  #upSince: number | undefined
  /** Uptime of all epochs at the first look that saw the child's listeners up. */
  #upAt = Infinity
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
    if (age.isUp && this.#upSince === undefined) {
      this.#upSince = now
      this.#upAt = age.all
    }
    const isDue = age.current + 1 >= this.#shutdown / 1_000
    // The first figures may be from before the old listeners closed: a second's rounding included.
    const isMerged = mergedAt !== undefined && mergedAt > this.#upAt + 1
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

  #isOver({ age, connections, mergedAt }: ParentTrace, now: number): boolean {
    if (this.#upSince !== undefined && now - this.#upSince >= this.#shutdown + MARGIN) return true
    // A child that was up long before we came.
    const over = this.#shutdown / 1_000 + START
    const isMerged = mergedAt !== undefined && mergedAt >= age.all - age.current + over
    return age.current >= over && isMerged && connections === 0
  }

  #words({ connections }: ParentTrace, known: number | undefined, now: number): string {
    const what = `the process before a hot restart (epoch ${this.#epoch})`
    if (this.#isEnded) return `${what} has ended`
    if (this.#isClosed) return `${what} has no connection left`
    const most = this.#epoch === 0 ? '' : 'up to '
    const held = known === undefined ? 'may still hold work' : `has ${most}${known} connections`
    const hidden =
      connections === undefined ? ', and /stats does not tell server.parent_connections' : ''
    const left = Math.max(0, this.#shutdown - (now - (this.#upSince ?? now)))
    return `${what} ${held}${hidden}; it ends in ${Math.ceil(left / 1_000)} s at the latest`
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
