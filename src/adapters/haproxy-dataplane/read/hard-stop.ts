import type { CallContext } from '../../../provider/contract.js'
import { parseHardStopAfter } from '../codec/configuration.js'
import type { DataplaneApi } from '../session/session.js'
import { WITHHELD } from './configured.js'

/**
 * HAProxy's `hard-stop-after` in the configuration, in milliseconds. `unset`: a process that a reload has replaced lives
 * as long as its connections. `unknown`: it is kept from this user. `unread`: it could not be read just now.
 */
export type HardStop = number | 'unset' | 'unknown' | 'unread'

/**
 * What the configuration says of how long a replaced process lives: read again when it may have changed. It is held
 * against what the operator says, and proves nothing: a process lives by the value that it was started with, which this
 * API does not tell (2.9 with HAProxy 2.6, 3.2 and 3.4).
 */
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
   */
  async read(stamp: string, ctx: CallContext): Promise<HardStop | undefined> {
    if (this.#readAt === stamp) return undefined
    const { paths, tree } = await this.#api.served(ctx)
    const reply = await this.#api.get(paths.configGlobal, ctx)
    const isWithheld = WITHHELD.has(reply.status)
    if (!isWithheld && reply.status !== 200) return 'unread'
    const value = isWithheld
      ? 'unknown'
      : (this.#api.parse(reply, (text) => parseHardStopAfter(tree, text)) ?? 'unset')
    this.#readAt = stamp
    return value
  }
}
