import type { Sight } from '../../../kit/change.js'
import type { CallContext, MemberRef } from '../../../provider/contract.js'
import { Index, wantedOf } from '../read/match.js'
import type { Entry, Traits } from '../codec/rows.js'
import { keyOf, type Memory } from '../read/memory.js'
import { ownState } from '../read/reading.js'
import { Reader } from '../read/read.js'
import type { InCharge } from '../session/pair.js'

/** A member as it was right before a change of it. */
export interface Standpoint extends Sight {
  readonly entry: Entry
  readonly traits: Traits
  /** In flight and queued; undefined where it could not be read. */
  readonly load: number | undefined
}

/** What is compared with before each write: the pools of a batch of changes, read once and then again where something was written. */
export class Look {
  readonly #reader: Reader
  readonly #incarnation: string
  readonly #memory: Memory
  readonly #pools = new Map<string, Index>()
  readonly #members = new Map<string, readonly string[]>()
  readonly #stamps = new Map<string, number>()
  readonly #disabled = new Map<string, ReadonlySet<string>>()

  constructor({ session, standing }: InCharge, memory: Memory, ctx: CallContext) {
    this.#reader = new Reader(session, ctx)
    this.#incarnation = standing.incarnation
    this.#memory = memory
  }

  /** Reads every pool of these changes, with the counts where a change asks for them. */
  async at(changes: readonly { readonly ref: MemberRef; readonly kind: string }[]): Promise<void> {
    for (const [pool, of] of Map.groupBy(changes, ({ ref }) => ref.pool)) {
      this.#members.set(
        pool,
        of.map(({ ref }) => ref.member),
      )
      await this.#read(
        pool,
        of.some(({ kind }) => kind !== 'restore'),
      )
    }
  }

  /** Reads a member's pool once more. */
  again(ref: MemberRef): Promise<void> {
    return this.#read(ref.pool, true)
  }

  of(ref: MemberRef): Standpoint | undefined {
    const found = this.#pools.get(ref.pool)?.pick(ref.member)
    if (found === undefined) return undefined
    const { entry, traits, counts } = found
    const stamp = this.#stamps.get(ref.pool) ?? 0
    this.#memory.sight(entry, stamp, this.#incarnation)
    const deed = this.#memory.recall(entry, stamp, this.#incarnation)
    const serverDisabled = this.#disabled.get(ref.pool)?.has(entry.server) === true
    const { own } = ownState(entry, deed, serverDisabled || traits.disabled)
    const load = counts === undefined ? undefined : counts.active + counts.queued
    return { ...sightOf(entry), entry, traits, own, load }
  }

  async #read(name: string, counts: boolean): Promise<void> {
    const members = this.#members.get(name) ?? []
    this.#stamps.set(name, this.#memory.stamp())
    const pool = await this.#reader.pool(name, wantedOf(members, counts))
    if (pool === undefined) {
      this.#pools.delete(name)
      return
    }
    const index = new Index(pool)
    this.#pools.set(name, index)
    const out = members.flatMap((member) => {
      const entry = index.pick(member)?.entry
      return entry === undefined || entry.phase === 'in' ? [] : [entry.server]
    })
    this.#disabled.set(name, await this.#reader.disabledServers(out))
  }
}

/** A service can be in the pools of several virtual servers: what is written through one holds in all. */
function sightOf({ identity, svrstate, subject }: Entry): Omit<Sight, 'own'> {
  const doubt = 'that word says nothing about it'
  return { identity, says: svrstate, doubt, passing: true, object: keyOf(subject) }
}
