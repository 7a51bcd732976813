import type { SeenMember } from '../../../kit/change.js'
import type { CallContext, MemberRef } from '../../../provider/contract.js'
import { Index, wishesOf } from '../read/match.js'
import type { Looks } from '../read/looks.js'
import type { Entry, Traits } from '../codec/rows.js'
import { keyOf, type Memory } from '../read/memory.js'
import { ownState } from '../read/reading.js'
import type { InCharge } from '../session/standing.js'

/** A member as it was right before a change of it. */
export interface Standpoint extends SeenMember {
  readonly entry: Entry
  readonly traits: Traits
  /** In flight and queued; undefined where it could not be read. */
  readonly load: number | undefined
}

/** What is compared with before a write: the pools of a batch of changes, and again where something was written. */
export class Look {
  readonly #looks: Looks
  readonly #charge: InCharge
  readonly #memory: Memory
  readonly #ctx: CallContext
  readonly #pools = new Map<string, Index>()
  #stamp = 0

  constructor(looks: Looks, charge: InCharge, memory: Memory, ctx: CallContext) {
    this.#looks = looks
    this.#charge = charge
    this.#memory = memory
    this.#ctx = ctx
  }

  /** Reads every pool of these, with the counts where a change asks for them. */
  async at(refs: readonly MemberRef[], counts = true): Promise<void> {
    const wishes = wishesOf(refs)
    this.#stamp = this.#memory.stamp()
    const { session } = this.#charge
    const { pools } = await this.#looks.at(wishes, session, this.#ctx, { fresh: true, counts })
    for (const pool of wishes.keys()) this.#pools.delete(pool)
    for (const pool of pools) this.#pools.set(pool.name, new Index(pool))
  }

  of(ref: MemberRef): Standpoint | undefined {
    const found = this.#pools.get(ref.pool)?.pick(ref.member)
    if (found === undefined) return undefined
    const { entry, traits, counts, serverDisabled } = found
    const { incarnation } = this.#charge.standing
    this.#memory.seen(entry, this.#stamp, incarnation)
    const ours = this.#memory.recall(entry, this.#stamp, incarnation)
    const { own } = ownState(entry, ours, serverDisabled || traits.disabled)
    const load = counts === undefined ? undefined : counts.active + counts.queued
    return { ...seenOf(entry), entry, traits, own, load }
  }
}

/** A service can be in the pools of several virtual servers: what is written through one holds in all. */
function seenOf({ identity, svrstate, subject, address, port }: Entry): Omit<SeenMember, 'own'> {
  const doubt = 'that word says nothing about it'
  const at = address === undefined ? {} : { address, port }
  return { identity, says: svrstate, doubt, passing: true, object: keyOf(subject), ...at }
}
