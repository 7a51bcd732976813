import { isDrainableError } from '../../../provider/error.js'
import type { KeptConnection } from './kept-connection.js'
import type { Within } from './socket.js'

/** HAProxy answers over the kept connection within this time if it only takes no more connections, ms. */
const ALIVE = 1_000
/** How long no connection is kept if there is no room for it, ms. */
const CROWDED = 300_000

/**
 * The room for a kept connection. Every drain keeps one, and ten of them take everything that `stats maxconn` allows by
 * default: then nobody gets an answer any more, so each one closes its own.
 */
export class Room {
  /** By the clock of the calls: until when no connection is kept. */
  #crowdedUntil = -Infinity

  isCrowded(now: number): boolean {
    return now < this.#crowdedUntil
  }

  /** Called when a connection could not be kept, after a look that was answered. */
  refuse(error: unknown, now: number): void {
    if (isUnanswered(error)) this.#crowdedUntil = now + CROWDED
  }

  /** Called when a look failed. A frozen process does not answer over the kept connection either. */
  async make(kept: KeptConnection | undefined, error: unknown, ctx: Within): Promise<void> {
    if (kept?.state !== 'open' || ctx.signal.aborted || !isUnanswered(error)) return
    const limit = new AbortController()
    const cancel = ctx.clock.setTimeout(() => limit.abort(), ALIVE)
    try {
      const signal = AbortSignal.any([ctx.signal, limit.signal])
      await kept.run('show cli level', { ...ctx, signal })
    } catch {
      return // the look reports what is wrong
    } finally {
      cancel()
    }
    this.refuse(error, ctx.clock.now())
    kept.close()
  }
}

/** Whether no answer came: the process is frozen, or takes no more connections. */
function isUnanswered(error: unknown): boolean {
  if (!isDrainableError(error)) return false
  const { code } = (error.cause ?? {}) as NodeJS.ErrnoException
  return error.code === 'CALL_TIMEOUT' || code === 'EAGAIN'
}
