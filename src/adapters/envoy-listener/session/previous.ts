import type { ServerInfo } from '../codec/server.js'
import type { Group } from '../codec/stats.js'

/** A child may take that long until its listeners are up, in seconds. */
const START = 60
/** Whole seconds are rounded, signals and exits take a moment; in seconds. */
const MARGIN = 3

/** The process before a hot restart, as one look at its child shows it. */
export interface Previous {
  /** That of the old process where it was seen itself. */
  readonly incarnation: string
  /**
   * - `alive`: it may hold work, and it can't be asked
   * - `empty`: it had no connection left, and none can come, while it was there
   * - `ended`: it is gone
   */
  readonly state: 'alive' | 'empty' | 'ended'
  /** Its connections, idle ones too; undefined: not known. */
  readonly connections: number | undefined
  readonly note: string
}

/**
 * The life of a parent after a hot restart, told from its child alone: its admin API is closed.
 *
 * It goes on with its connections until its child ends it, `--parent-shutdown-time-s` after the child's listeners came
 * up. Earlier it is proved empty by statistics of the child, which add the parent's at every flush (5 s):
 * `server.parent_connections` is 0 in a flush (`server.uptime`) that came after the old listeners had closed. Once its
 * time is due a 0 proves nothing: what it had may have been cut.
 */
export class Parent {
  readonly #incarnation: string
  readonly #epoch: number
  /** Uptime of all epochs at the first look that saw the child's listeners up. */
  #upAt: number | undefined
  #empty = false
  #ended = false

  constructor(incarnation: string, epoch: number) {
    this.#incarnation = incarnation
    this.#epoch = epoch
  }

  seen({ state, uptime, parentShutdown }: ServerInfo, others: Group): Previous {
    const shown = others.get('server.parent_connections')
    const mergedAt = others.get('server.uptime')
    if (state === 'LIVE' || state === 'DRAINING') this.#upAt ??= uptime.all
    const shutdown = parentShutdown / 1_000
    const isDue = uptime.current + 1 >= shutdown
    const isMerged = this.#upAt !== undefined && mergedAt !== undefined && mergedAt > this.#upAt + 1
    this.#empty ||= isMerged && shown === 0 && !isDue
    this.#ended ||= this.#upAt !== undefined && isOver(this.#upAt, uptime, shutdown)
    // A 0 of before the first flush is not its own.
    const isKnown = !isDue && shown !== undefined && (isMerged || shown > 0)
    const connections = this.#empty ? 0 : isKnown ? shown : undefined
    const left = Math.max(0, Math.ceil(shutdown - uptime.current))
    return {
      incarnation: this.#incarnation,
      state: this.#ended ? 'ended' : this.#empty ? 'empty' : 'alive',
      connections,
      note: this.#words(connections, left),
    }
  }

  #words(connections: number | undefined, left: number): string {
    const what = `the process before a hot restart (epoch ${this.#epoch})`
    if (this.#ended) return `${what} has ended`
    if (this.#empty) return `${what} has no connection left`
    const held =
      connections === undefined ? 'may still hold work' : `has ${connections} connections`
    return `${what} ${held}; it ends in about ${left} s at the latest`
  }
}

/** Whether its child has ended it by now: its listeners were up at `upAt` at the latest, and soon after it started. */
function isOver(upAt: number, uptime: ServerInfo['uptime'], shutdown: number): boolean {
  const since = Math.max(uptime.all - upAt - MARGIN, uptime.current - START)
  return since >= shutdown
}
