import type { Stats } from './stats.js'

/**
 * A stall that has not come to `watchdog_mega_miss` (1 s by default) this long after `watchdog_miss` (0.2 s) moved has ended;
 * milliseconds.
 */
const SHORT = 2_000
/** The first flush may have begun before the count was read. */
const FLUSHES = 2

/** A count of stalls, and what has come since it has this value. */
interface Stalls {
  readonly misses: number
  readonly long: number
  /** By the monotonic clock. */
  readonly since: number
  readonly uptime: number
  readonly flushes: number
}

/**
 * Whether every worker of a proxy is known to go on. The rows of `/clusters` are those of the main thread: a worker that stands
 * still in a filter has not taken them, and sends the requests that it holds by its old set when it goes on. Its watchdog
 * counts that, and no statistic says when it ends. But a flush of the statistics waits for each worker, and only then
 * `server.uptime` grows: two flushes later all have run. It falls when the process before a hot restart ends. Seen with a Lua
 * filter that spins for 6 s (1.39.3, 1.40.0): up to 3 requests came to an endpoint after it had been quiet for a second.
 */
export class Workers {
  #stalls: Stalls | undefined

  seen(stats: Stats, at: number): void {
    const misses = stats.workers('watchdog_miss') ?? 0
    const long = stats.workers('watchdog_mega_miss') ?? 0
    const uptime = stats.server('uptime') ?? 0
    const known = this.#stalls
    if (known?.misses !== misses || known.long !== long)
      this.#stalls = { misses, long, since: at, uptime, flushes: 0 }
    else if (known.uptime !== uptime)
      this.#stalls = { ...known, uptime, flushes: known.flushes + (uptime > known.uptime ? 1 : 0) }
  }

  /** Why one may not have taken what the rows show; undefined: all have run since. */
  still(at: number): string | undefined {
    if (this.#stalls === undefined || this.#stalls.misses === 0) return undefined
    const { long, since, flushes } = this.#stalls
    if (flushes >= FLUSHES || (long === 0 && at - since >= SHORT)) return undefined
    return 'a worker of it stood still (workers.watchdog_miss), and may not have taken the set yet: the next flushes of its statistics tell'
  }
}
