import type { CallContext } from '../../../provider/contract.js'
import { parseHardStopAfter } from '../codec/configuration.js'
import type { ToldHardStop } from '../read/hard-stop.js'
import { WITHHELD } from '../read/configured.js'
import { readReloads } from './reload.js'
import type { DataplaneApi } from './session.js'

/** The list of reloads takes no longer than any other answer, unless a reload is running: at least so long is waited. */
const RELOADS_TIMEOUT = 1_500

/** What the configuration says of how long a replaced process lives: read again when it may have changed. */
export class HardStopFile {
  readonly #api: DataplaneApi
  #readAt: string | undefined

  constructor(api: DataplaneApi) {
    this.#api = api
  }

  /**
   * Undefined where it was told for this stamp already. What could not be read just now is asked for again.
   *
   * @param stamp - changes when the configuration may have changed
   * @param asksReloads - whether to ask too what became of the last reload
   */
  async read(
    stamp: string,
    asksReloads: boolean,
    ctx: CallContext,
  ): Promise<ToldHardStop | undefined> {
    if (this.#readAt === stamp && !asksReloads) return undefined
    const { paths, tree } = await this.#api.served(ctx)
    const from = ctx.clock.now()
    const reply = await this.#api.get(paths.configGlobal, ctx)
    const isWithheld = WITHHELD.has(reply.status)
    if (!isWithheld && reply.status !== 200) return { value: 'unread', settled: false }
    const value = isWithheld
      ? 'unknown'
      : (this.#api.parse(reply, (text) => parseHardStopAfter(tree, text)) ?? 'unset')
    this.#readAt = stamp
    const patience = Math.max(RELOADS_TIMEOUT, 2 * (ctx.clock.now() - from))
    return { value, settled: asksReloads ? await this.#isSettled(patience, ctx) : undefined }
  }

  /** A list that hangs is an answer too, and no look waits for more. */
  async #isSettled(patience: number, ctx: CallContext): Promise<ToldHardStop['settled']> {
    const told = await readReloads(this.#api, ctx, patience)
    if (told === 'withheld') return told
    return told !== undefined && told.pending.length === 0 && !told.lastFailed
  }
}
