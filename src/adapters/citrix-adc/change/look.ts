import { caught } from '../../../kit/errors.js'
import type { SeenMember } from '../../../kit/change.js'
import type { CallContext, MemberRef } from '../../../provider/contract.js'
import type { Settings } from '../options.js'
import { Index, wishesOf } from '../read/match.js'
import type { Looks } from '../read/looks.js'
import type { Entry, Traits } from '../codec/rows.js'
import { keyOf, type Memory } from '../read/memory.js'
import { recalled } from '../read/reading.js'
import type { Pair } from '../session/pair.js'
import type { InCharge } from '../session/standing.js'
import type { Sender } from './sender.js'

/** A member as it was right before a change of it. */
export interface Standpoint extends SeenMember {
  readonly entry: Entry
  readonly traits: Traits
  /** In flight and queued; undefined where it could not be read. */
  readonly load: number | undefined
}

/** What all changes of a provider share. */
export interface Shared {
  readonly settings: Settings
  readonly pair: Pair
  readonly memory: Memory
  readonly looks: Looks
  readonly sender: Sender
}

/** What changes go by: who is in charge, and the pools as they were before a write, and again where something was written. */
export class Look {
  readonly shared: Shared
  readonly charge: InCharge
  readonly ctx: CallContext
  readonly #pools = new Map<string, Index>()
  #stamp = 0

  constructor(shared: Shared, charge: InCharge, ctx: CallContext) {
    this.shared = shared
    this.charge = charge
    this.ctx = ctx
  }

  /** Reads every pool of these, with the counts where a change asks for them. */
  async at(refs: readonly MemberRef[], counts = true): Promise<void> {
    const { looks, memory } = this.shared
    const wishes = wishesOf(refs)
    this.#stamp = memory.stamp()
    const how = { fresh: true, counts }
    const { pools } = await looks.at(wishes, this.charge.session, this.ctx, how)
    for (const pool of wishes.keys()) this.#pools.delete(pool)
    for (const pool of pools) this.#pools.set(pool.name, new Index(pool))
  }

  /**
   * Whether what it shows is the pair's: a node that has become the secondary may have taken a change for itself alone. One
   * that does not say is not believed.
   */
  holds(): Promise<boolean> {
    const { pair } = this.shared
    const ask = (): Promise<boolean> => pair.stillInCharge(this.charge, this.ctx, false)
    return caught(this.ctx, ask, () => false)
  }

  of(ref: MemberRef): Standpoint | undefined {
    const found = this.#pools.get(ref.pool)?.pick(ref.member)
    if (found === undefined) return undefined
    const { entry, traits, counts } = found
    const { state } = recalled(found, this.shared.memory, this.#stamp, this.charge.standing)
    const load = counts === undefined ? undefined : counts.active + counts.queued
    return { ...seenOf(entry), entry, traits, own: state.own, load }
  }
}

/** A service can be in the pools of several virtual servers: what is written through one holds in all. */
function seenOf({ identity, svrstate, subject, address, port }: Entry): Omit<SeenMember, 'own'> {
  const doubt = 'that word says nothing about it'
  const at = address === undefined ? {} : { address, port }
  return { identity, says: svrstate, doubt, passing: true, object: keyOf(subject), ...at }
}
