import { until } from '../../../kit/until.js'
import type { CallContext } from '../../../provider/contract.js'
import { parseConfigVersion } from '../codec/configuration.js'
import type { Reloads } from '../codec/replies.js'
import { readReloads } from '../session/reload.js'
import type { DataplaneApi } from '../session/session.js'
import { known } from './sent.js'

/** Between two looks at the list of reloads, in milliseconds: they are gathered for 5 s by default. */
const POLL = 250

/** How often a write is made again: each needs another reload of others that failed. */
const MOST_TRIES = 5

/** The longest wait for one reload, and for how long nothing is waited for after one that did not end, in milliseconds. */
const LONGEST = 15_000
const STUCK_FOR = 60_000

/**
 * How long the API may take to read a file again that it rolled back, in milliseconds: 20 to 100 on 2.9.25,
 * 3.0.21 and 3.2.13, on a quiet machine.
 */
const READ_AGAIN = { every: 50, within: 1_000 } as const

const NONE: Reloads = { pending: [], failed: [], succeeded: [] }

/**
 * Makes durable writes last. A write that needs no reload is lost where a reload that others have asked
 * for before it fails: the API then puts the last known good file back, which is the one of the last reload
 * that succeeded (Data Plane API 2.9 to 3.4, `reload_agent.go`), and does not tell it. So reloads that are
 * pending are waited for, 15 s at most, and the line is read again.
 *
 * The API itself notices only where the last known good file was written by hand. One that it wrote has a
 * valid hash, and it goes on telling what it had in memory, until the next write, which takes all of that to the
 * file: so the line is written again as it is told (measured on 2.9.25, 3.0.21, 3.2.13 and 3.4.2).
 *
 * A reload that is asked for later and fails takes the write along as well; no call can wait for that. A hold that
 * is sent again after the next reload writes it anew.
 */
export class Lasting {
  readonly #api: DataplaneApi
  #stuckAt = -Infinity
  /** Reloads that failed, as far as they were seen. */
  readonly #failed = new Set<string>()

  constructor(api: DataplaneApi) {
    this.#api = api
  }

  /** @param write - writes what is missing, or all of it `anew`; gives undefined where nothing is written */
  async last(write: (anew: boolean) => Promise<unknown>, ctx: CallContext): Promise<void> {
    for (let tries = 0; tries < MOST_TRIES; tries++) {
      const version = await this.#version(ctx)
      const failed = await this.#failedMeanwhile(ctx)
      const anew = failed && !(await this.#readsAgain(version, ctx))
      if ((await write(anew)) === undefined) return
    }
  }

  /** Waits for the reloads that are pending; whether one failed that was not known to have failed. */
  async #failedMeanwhile(ctx: CallContext): Promise<boolean> {
    let reloads = await this.#reloads(ctx)
    const first = reloads.pending
    if (first.length > 0 && ctx.clock.now() - this.#stuckAt >= STUCK_FOR) {
      // those alone: where others write all the time, there is always another one
      const none = await until(ctx, { every: POLL, within: LONGEST }, async () => {
        reloads = await this.#reloads(ctx)
        return first.some((id) => reloads.pending.includes(id)) ? undefined : true
      })
      if (none === undefined) this.#stuckAt = ctx.clock.now()
    }
    const fresh = reloads.failed.filter((id) => !this.#failed.has(id))
    for (const id of fresh) this.#failed.add(id)
    return fresh.length > 0
  }

  /** Whether the API reads the file again: it has another version then than the one that was told before. */
  async #readsAgain(version: number | undefined, ctx: CallContext): Promise<boolean> {
    if (version === undefined) return false
    const other = await until(ctx, READ_AGAIN, async () =>
      (await this.#version(ctx)) === version ? undefined : true,
    )
    return other === true
  }

  async #version(ctx: CallContext): Promise<number | undefined> {
    const { paths } = await this.#api.served(ctx)
    try {
      const reply = await this.#api.get(paths.configVersion, ctx)
      return reply.status === 200 ? this.#api.parse(reply, parseConfigVersion) : undefined
    } catch (error) {
      known(error, ctx)
      return undefined
    }
  }

  /** None where the API does not say: a proxy in front may keep the list. */
  async #reloads(ctx: CallContext): Promise<Reloads> {
    return (await readReloads(this.#api, ctx)) ?? NONE
  }
}
