import type { CallContext } from '../../../provider/contract.js'
import { DrainableError } from '../../../provider/error.js'
import { isInCharge, notInCharge, type Standing, Standings } from './standing.js'
import type { Settings } from '../options.js'
import { isNetworkError, NitroSession } from './session.js'

/** An address that is in charge, as it stood when it was asked. */
export interface InCharge {
  readonly session: NitroSession
  readonly standings: Standings
  readonly standing: Standing
}

interface Address {
  readonly session: NitroSession
  readonly standings: Standings
}

/** All addresses of one appliance, pair or cluster; finds the one to talk to. */
export class Pair {
  readonly #addresses: readonly Address[]
  #active: InCharge | undefined

  constructor(options: Settings) {
    this.#addresses = options.urls.map((url) => {
      const session = new NitroSession(url, options)
      return { session, standings: new Standings(session) }
    })
  }

  /** Who was in charge at the last look, without another one; found where nobody was yet. */
  async inCharge(ctx: CallContext): Promise<InCharge> {
    return this.#active ?? this.find(ctx)
  }

  /** Asks again who is in charge, the last known one first. */
  async find(ctx: CallContext): Promise<InCharge> {
    const last = this.#active?.session
    this.#active = undefined
    const order = [...this.#addresses].sort(
      (a, b) => Number(b.session === last) - Number(a.session === last),
    )
    let failure: unknown
    for (const { session, standings } of order) {
      try {
        const standing = await standings.read(ctx)
        if (isInCharge(standing.role)) {
          this.#active = { session, standings, standing }
          return this.#active
        }
        failure ??= notInCharge(session.url)
      } catch (error) {
        if (ctx.signal.aborted || !isNetworkError(error)) throw error
        failure ??= error
      }
    }
    throw failure instanceof Error
      ? failure
      : new DrainableError('UNREACHABLE', 'citrix-adc: no address to talk to')
  }

  /** What was in charge is not to be relied on any more. */
  forget(): void {
    this.#active = undefined
  }

  /**
   * Whether the same node is still in charge, in the same incarnation: a reading in between is one
   * of it.
   */
  async stillInCharge(before: InCharge, ctx: CallContext): Promise<boolean> {
    const standing = await before.standings.read(ctx)
    const same = standing.incarnation === before.standing.incarnation && isInCharge(standing.role)
    if (!same) this.forget()
    return same
  }

  async close(): Promise<void> {
    await Promise.all(this.#addresses.map(({ session }) => session.close()))
  }
}
