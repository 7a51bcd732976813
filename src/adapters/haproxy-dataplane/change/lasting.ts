import { until } from '../../../kit/until.js'
import type { CallContext } from '../../../provider/contract.js'
import { isDrainableError } from '../../../provider/error.js'
import { parsePendingReloads } from '../codec/replies.js'
import type { DataplaneApi } from '../session/session.js'

/** Between two looks at the list of reloads, in milliseconds: they are gathered for 5 s by default. */
const POLL = 250

/** How often a write is made again: each needs another reload of others that failed. */
const MOST_TRIES = 5

/** The longest wait for one reload, and for how long nothing is waited for after one that did not end, in milliseconds. */
const LONGEST = 15_000
const STUCK_FOR = 60_000

/**
 * Makes durable writes last. A write that needs no reload is lost where a reload that others have asked
 * for before it fails: the API then puts the last known good file back, which is the one of the last reload
 * that succeeded (Data Plane API 2.9 to 3.4, `reload_agent.go`), and tells nobody. So reloads that are
 * pending are waited for, 15 s at most, and the line is read again.
 *
 * A reload that is asked for later and fails takes the write along as well; no call can wait for that.
 */
export class Lasting {
  readonly #api: DataplaneApi
  #stuckAt = -Infinity

  constructor(api: DataplaneApi) {
    this.#api = api
  }

  /** @param write - writes what is missing; gives undefined where nothing is */
  async last(write: () => Promise<unknown>, ctx: CallContext): Promise<void> {
    for (let tries = 0; tries < MOST_TRIES; tries++) {
      await this.#untilReloaded(ctx)
      if ((await write()) === undefined) return
    }
  }

  async #untilReloaded(ctx: CallContext): Promise<void> {
    if (ctx.clock.now() - this.#stuckAt < STUCK_FOR) return
    const first = await this.#pending(ctx)
    if (first.length === 0) return
    // those alone: where others write all the time, there is always another one
    const none = await until(ctx, { every: POLL, within: LONGEST }, async () => {
      const now = await this.#pending(ctx)
      return first.some((id) => now.includes(id)) ? undefined : true
    })
    if (none === undefined) this.#stuckAt = ctx.clock.now()
  }

  /** Which reloads are to come. None where the API does not say: a proxy in front may keep the list. */
  async #pending(ctx: CallContext): Promise<readonly string[]> {
    const { paths } = await this.#api.served(ctx)
    try {
      const reply = await this.#api.get(paths.reloads, ctx)
      return reply.status === 200 ? this.#api.parse(reply, parsePendingReloads) : []
    } catch (error) {
      ctx.signal.throwIfAborted()
      if (!isDrainableError(error)) throw error
      return []
    }
  }
}
