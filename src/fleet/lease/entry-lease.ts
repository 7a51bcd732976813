import type { Clock } from '../../provider/clock.js'
import type { CallContext } from '../../provider/contract.js'
import type { Lease, LeaseAnswer, LeaseGrant } from './lease.js'

/** The entry of a lease, as it was read. The holder is null once the lease was released. */
export interface LeaseEntry {
  readonly holder: string | null
  /** For how long it was taken or renewed, in milliseconds. */
  readonly ttl: number
  readonly fence: number
  /** Another one after each write. */
  readonly revision: string | number
}

/** What an entry is to say. A new holder gets a fencing number of its own. */
export type Held = Pick<LeaseEntry, 'holder' | 'ttl'> & { readonly isNew: boolean }

/** The place of one entry in an engine that can compare and set, and does not expire it. */
export interface LeaseStore<E extends LeaseEntry> {
  /** See {@link Lease.name}. */
  readonly name: string
  /** Reads the entry; undefined if there is none. */
  read(signal: AbortSignal): Promise<E | undefined>
  /**
   * Writes the entry, if nobody has written since it was found.
   *
   * @param found - undefined: there was none
   * @returns its fencing number; undefined if another contender was faster, or our own answer was lost
   */
  write(held: Held, found: E | undefined, signal: AbortSignal): Promise<number | undefined>
}

/**
 * A lease in one entry, as Kubernetes elects its leaders: each write stands on the revision that was read, so of several
 * contenders one wins. It is taken over once its revision has been seen for its whole time by the contender's own
 * monotonic clock: the times that an entry holds were written by another clock, so they say nothing.
 */
export class EntryLease<E extends LeaseEntry> implements Lease {
  readonly name: string
  readonly #store: LeaseStore<E>
  /** The revision that was read last, and since when. */
  #seen: { readonly revision: E['revision']; readonly since: number } | undefined

  constructor(store: LeaseStore<E>) {
    this.name = store.name
    this.#store = store
  }

  async acquire(holder: string, ttl: number, ctx: CallContext): Promise<LeaseAnswer> {
    const { signal, clock } = ctx
    const found = await this.#store.read(signal)
    if (found?.holder === holder) {
      const { fence } = found
      const isKept = await this.renew({ holder, fence }, ttl, ctx)
      return isKept ? { granted: true, fence } : this.#heldBy(signal)
    }
    if (found !== undefined && found.holder !== null && !this.#isOver(found, clock))
      return { granted: false, holder: found.holder }
    const fence = await this.#write({ holder, ttl, isNew: true }, found, signal)
    return fence === undefined ? this.#heldBy(signal) : { granted: true, fence }
  }

  async renew(grant: LeaseGrant, ttl: number, { signal }: CallContext): Promise<boolean> {
    const held = { holder: grant.holder, ttl, isNew: false }
    const found = await this.#read(grant, signal)
    if (found === undefined) return false
    if ((await this.#write(held, found, signal)) !== undefined) return true
    return (await this.#read(grant, signal)) !== undefined
  }

  async release(grant: LeaseGrant, { signal }: CallContext): Promise<void> {
    const found = await this.#read(grant, signal)
    if (found !== undefined)
      await this.#write({ holder: null, ttl: 0, isNew: false }, found, signal)
  }

  /** Reads the entry to tell whether another contender was faster or our answer was lost. */
  async #heldBy(signal: AbortSignal): Promise<LeaseAnswer> {
    return { granted: false, holder: (await this.#store.read(signal))?.holder ?? null }
  }

  /** The entry, where it is this holder's. */
  async #read({ holder, fence }: LeaseGrant, signal: AbortSignal): Promise<E | undefined> {
    const found = await this.#store.read(signal)
    return found?.holder === holder && found.fence === fence ? found : undefined
  }

  #write(held: Held, found: E | undefined, signal: AbortSignal): Promise<number | undefined> {
    // A call that was given up must not acquire the lease for a contender that does not know of it.
    signal.throwIfAborted()
    return this.#store.write(held, found, signal)
  }

  /** Whether this revision has now been seen for its whole time. */
  #isOver({ revision, ttl }: E, clock: Clock): boolean {
    const now = clock.now()
    if (this.#seen?.revision !== revision) this.#seen = { revision, since: now }
    return now - this.#seen.since >= ttl
  }
}
