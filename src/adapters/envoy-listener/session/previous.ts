import type { ServerInfo } from '../codec/server.js'
import type { Group } from '../codec/stats.js'

/** A child may take that long until its listeners are up, in seconds. */
const START = 60

/** The process before a hot restart, as one look at its child shows it. */
export interface Previous {
  /** `unread`: it may hold work, and nobody can ask it. */
  readonly state: 'unread' | 'ended'
  readonly note: string
}

/**
 * The life of a parent after a hot restart, told from its child alone: its admin API is closed.
 *
 * It goes on with its connections until its child ends it, `--parent-shutdown-time-s` after the child's listeners came
 * up. Earlier it is proved empty by statistics of the child, which add the parent's at every flush (5 s):
 * `server.parent_connections` is 0 in a flush (`server.uptime`) that came after the old listeners had closed.
 */
export class Parent {
  readonly #epoch: number
  /** Uptime of all epochs at the first look that saw the child's listeners up. */
  #upAt: number | undefined
  #ended = false

  constructor(epoch: number) {
    this.#epoch = epoch
  }

  seen({ state, uptime, parentShutdown }: ServerInfo, others: Group): Previous {
    const connections = others.get('server.parent_connections')
    const mergedAt = others.get('server.uptime')
    if (state === 'LIVE' || state === 'DRAINING') this.#upAt ??= uptime.all
    const isEmpty = this.#upAt !== undefined && mergedAt !== undefined && connections === 0
    this.#ended ||= isEmpty && mergedAt > (this.#upAt ?? 0) + 1
    this.#ended ||= this.#upAt !== undefined && uptime.current >= parentShutdown + START
    const what = `the process before a hot restart (epoch ${this.#epoch})`
    if (this.#ended) return { state: 'ended', note: `${what} has no connection left` }
    const left = Math.max(0, Math.ceil(parentShutdown - uptime.current))
    const held =
      connections === undefined ? 'may still hold work' : `has ${connections} connections`
    return { state: 'unread', note: `${what} ${held}; it ends in about ${left} s at the latest` }
  }
}
