import type { SeenLook } from '../core/balancer/look/look.js'
import type { LeaseTerm } from '../core/balancer/owner.js'
import { askedFirst, askStore, FIRST_ANSWER, StoreCalls } from '../core/tickets/calls.js'
import { laterFence, setChecked } from '../core/tickets/saved.js'
import { parseStored, type TicketStore } from '../core/tickets/store.js'
import { canonicalAddress } from '../provider/address.js'
import { wallOf, type Clock } from '../provider/clock.js'
import type {
  Change,
  ChangeResult,
  DrainableProvider,
  PresentReading,
} from '../provider/contract.js'
import { DrainableError } from '../provider/error.js'
import { isSameIdentity } from '../provider/member-ref.js'
import { quote } from '../provider/quote.js'
import { lineOf } from '../core/tickets/writing/line.js'
import { additionsKey } from './tickets.js'

/** An addition as it is sent. */
export type Add = Extract<Change, { readonly kind: 'add' }>

/** What they are remembered with. */
export interface AdditionsSpec {
  readonly store: TicketStore
  readonly provider: DrainableProvider
  readonly clock: Clock
  readonly term: LeaseTerm | undefined
  /** For how long a call without an answer may still be carried out, in milliseconds. */
  readonly lateBound: number
  /** What could not be written is written by the next look. */
  readonly fault: (thrown: unknown) => void
}

/** A member that we added, by its place. */
interface Added {
  /** The identity that it was first seen with; null: not seen yet. */
  readonly identity: string | null
  /**
   * Until when it may still come, in epoch milliseconds: its answer is missing. Null where it was answered, or was seen
   * open. So one that is held and has a moment here was never opened: its addition ended half-way.
   */
  readonly until: number | null
  /** Which controller lists it. */
  readonly by: string
}

/** As it is stored: `[address, port, identity, until, by]`. */
type Row = readonly [string, number | null, string | null, number | null, string]

/** The additions of one pool. */
interface PoolAdditions {
  readonly pool: string
  readonly added: Map<string, Added>
  /** What was forgotten in this life. `withdrawn`: it is not ours; another controller may still list it. */
  readonly dropped: Map<string, 'gone' | 'withdrawn'>
  /** When one was last sent or answered, by the clock: a look from before does not show it. */
  readonly touched: Map<string, number>
  isDirty: boolean
  /** The last writing that was asked for. */
  writing: Promise<void>
  /** That one, while it has not begun: what is asked for meanwhile is served by it. */
  waiting: Promise<void> | undefined
}

/**
 * Members that we added, kept with the tickets: the next term, or the next process, takes out what has no
 * endpoint any more. By their place, because a product may give them another name than the one that was
 * asked for (BIG-IP: the partition before it).
 */
export class Additions {
  readonly #spec: AdditionsSpec
  readonly #pools = new Map<string, PoolAdditions>()
  readonly #by = crypto.randomUUID()

  constructor(spec: AdditionsSpec) {
    this.#spec = spec
  }

  /** What earlier controllers have added to these pools. @throws what the store threw; `signal.reason` */
  async load(pools: readonly string[], signal: AbortSignal): Promise<void> {
    const { clock, lateBound, store, provider } = this.#spec
    const calls = new StoreCalls(store, askedFirst({ clock, signal }))
    await Promise.all(
      pools.map(async (name) => {
        const pool = this.#poolOf(name)
        const { added } = await storedIn(calls, additionsKey(provider, name))
        for (const [place, one] of added) {
          // The process that sent it is gone: it comes now, or never.
          const until = one.until === null ? null : wallOf(clock) + lateBound
          pool.added.set(place, { ...one, until })
          pool.touched.set(place, clock.now())
        }
      }),
    )
  }

  /** Whether a member is one that we added. */
  has({ ref, identity, address, port }: PresentReading): boolean {
    const pool = this.#pools.get(ref.pool)
    if (pool === undefined || pool.added.size === 0 || address === undefined) return false
    const place = placeOf(address, port)
    const known = pool.added.get(place)
    if (known === undefined) return false
    if (known.identity !== null) return isSameIdentity(known.identity, identity)
    pool.added.set(place, { ...known, identity })
    pool.isDirty = true
    return true
  }

  /**
   * Whether it is as an addition of ours may have left it: that was not answered as done, and no look has shown it open. HAProxy
   * adds a server in maint, and opens it by a second command.
   */
  isUnopened(reading: PresentReading): boolean {
    if (reading.own !== 'maint' || !this.has(reading)) return false
    const { ref, address = '', port } = reading
    const pool = this.#poolOf(ref.pool)
    const place = placeOf(address, port)
    const isUnderWay = pool.touched.get(place) === Infinity
    return !isUnderWay && pool.added.get(place)?.until !== null
  }

  /**
   * Before it is sent: nothing is added that would stay for ever.
   *
   * @returns told the answer
   * @throws what the store threw; `NOT_LEADER` where a later holder of the lease has written
   */
  async announce({
    ref,
    address,
    port,
  }: Add): Promise<(status: ChangeResult['status'] | undefined) => void> {
    const { clock, lateBound } = this.#spec
    const pool = this.#poolOf(ref.pool)
    const place = placeOf(address, port)
    const before = pool.added.get(place)
    const note = (one: Added | undefined): void => {
      if (one === undefined) {
        pool.added.delete(place)
        pool.dropped.set(place, 'withdrawn')
      } else {
        pool.added.set(place, one)
        pool.dropped.delete(place)
      }
      pool.touched.set(place, clock.now())
      pool.isDirty = true
    }
    const by = this.#by
    note({ identity: null, until: wallOf(clock) + lateBound, by })
    pool.touched.set(place, Infinity) // under way: no look says anything of it
    try {
      await this.#save(pool)
    } catch (error) {
      note(before)
      throw error
    }
    return (status) => {
      const now = pool.added.get(place)
      const identity = now?.identity ?? null
      // It may have been seen open while its answer was waited for.
      const isOpen = status === 'applied' || now?.until === null
      const until = isOpen ? null : wallOf(clock) + lateBound
      if (status === 'applied' || status === 'unknown' || status === undefined)
        note({ identity, until, by })
      // It was there before: by an addition of ours whose answer was lost, or by another client.
      else note(before)
    }
  }

  /** What a look shows: one that is not there any more is not ours when it comes again. */
  seen({ snapshot, askedAt }: SeenLook): void {
    const { clock } = this.#spec
    const listed = new Set(snapshot.pools.map(({ pool }) => pool))
    for (const pool of this.#pools.values()) {
      if (pool.added.size === 0 || !listed.has(pool.pool)) continue
      const there = placesIn(pool.pool, snapshot.readings)
      for (const [place, one] of pool.added) {
        const { until } = one
        const isSeen = (pool.touched.get(place) ?? -Infinity) < askedAt
        const mayCome = until !== null && wallOf(clock) <= until
        const reading = there.get(place)
        if (reading?.own === 'ready' && until !== null) {
          // Whoever holds it from now on is not its addition.
          pool.added.set(place, { ...one, until: null })
          pool.isDirty = true
        }
        if (reading !== undefined || !isSeen || mayCome) continue
        pool.added.delete(place)
        pool.touched.delete(place)
        pool.dropped.set(place, 'gone')
        pool.isDirty = true
      }
    }
    this.#saveAll()
  }

  /** Writes what is not written yet, and waits for it. What can't be written is told. */
  async written(): Promise<void> {
    this.#saveAll()
    const writing = [...this.#pools.values()].map((pool) => pool.writing)
    await Promise.allSettled(writing)
  }

  #saveAll(): void {
    for (const pool of this.#pools.values())
      if (pool.isDirty) void this.#save(pool).catch(this.#spec.fault)
  }

  #poolOf(pool: string): PoolAdditions {
    let known = this.#pools.get(pool)
    if (known === undefined) {
      known = {
        pool,
        added: new Map(),
        dropped: new Map(),
        touched: new Map(),
        isDirty: false,
        writing: Promise.resolve(),
        waiting: undefined,
      }
      this.#pools.set(pool, known)
    }
    return known
  }

  // --- the store

  /** Writes what is known when the writing begins; many that are announced at once make one writing. */
  #save(pool: PoolAdditions): Promise<void> {
    if (pool.waiting !== undefined) return pool.waiting
    const { store, provider, fault } = this.#spec
    const key = additionsKey(provider, pool.pool)
    const line = lineOf(store, key)
    pool.writing = line.enter(async () => {
      pool.waiting = undefined
      // What was given up may be carried out over this: then it is written once more.
      line.begin(() => {
        pool.isDirty = true
        void this.#save(pool).catch(fault)
      })
      await this.#write(pool, key)
    })
    pool.waiting = pool.writing
    return pool.writing
  }

  async #write(pool: PoolAdditions, key: string): Promise<void> {
    const { store, term, clock } = this.#spec
    await askStore(store, { clock, limit: FIRST_ANSWER }, async (calls) => {
      const stored = await storedIn(calls, key)
      refuseOutdated(pool.pool, stored.lease, term)
      pool.isDirty = false
      try {
        await this.#keep(calls, key, pool, stored)
      } catch (error) {
        pool.isDirty = true
        throw error
      }
    })
  }

  async #keep(
    calls: StoreCalls,
    key: string,
    pool: PoolAdditions,
    { isThere, added }: StoredAdditions,
  ): Promise<void> {
    const { term } = this.#spec
    const kept = [...added].filter(([place, { by }]) => {
      const why = pool.dropped.get(place)
      return why === undefined || (why === 'withdrawn' && by !== this.#by)
    })
    const all = new Map([...kept, ...pool.added])
    if (all.size === 0) {
      if (isThere) await calls.delete(key)
      return
    }
    const mark = term === undefined ? {} : { lease: { ...term.mark } }
    const value = { v: 1, ...mark, added: [...all].map(toRow) }
    await setChecked(calls, key, value, `what was added to ${quote(pool.pool)}`)
  }
}

/** What is stored for a pool. */
interface StoredAdditions {
  readonly isThere: boolean
  readonly lease: LeaseTerm['mark'] | undefined
  readonly added: ReadonlyMap<string, Added>
}

async function storedIn(calls: Pick<StoreCalls, 'get'>, key: string): Promise<StoredAdditions> {
  const value = parseStored(await calls.get(key))
  if (typeof value !== 'object' || value === null)
    return { isThere: false, lease: undefined, added: new Map() }
  const { lease, added } = value as { lease?: LeaseTerm['mark']; added?: unknown }
  const rows = Array.isArray(added) ? (added as readonly Row[]) : []
  const entries = rows.map(([address, port, identity, until, by]): [string, Added] => [
    placeOf(address, port ?? undefined),
    { identity, until, by },
  ])
  return { isThere: true, lease, added: new Map(entries) }
}

/** @throws `NOT_LEADER` where a later holder of our lease has written it */
function refuseOutdated(
  pool: string,
  lease: LeaseTerm['mark'] | undefined,
  term: LeaseTerm | undefined,
): void {
  if (term === undefined) return
  const later = laterFence(lease, term.mark)
  if (later === undefined) return
  const { name, fence } = term.mark
  throw new DrainableError(
    'NOT_LEADER',
    `what was added to ${quote(pool)} was written by a later holder of the lease ${quote(name)} (${later}, we are ${fence})`,
  )
}

function placeOf(address: string, port: number | undefined): string {
  return `${canonicalAddress(address)}\0${port ?? ''}`
}

function toRow([place, { identity, until, by }]: readonly [string, Added]): Row {
  const [address = '', port = ''] = place.split('\0')
  return [address, port === '' ? null : Number(port), identity, until, by]
}

/** What a look shows of a pool, by its place. */
function placesIn(
  pool: string,
  readings: SeenLook['snapshot']['readings'],
): ReadonlyMap<string, PresentReading> {
  const places = new Map<string, PresentReading>()
  for (const one of readings)
    if (one.present && one.address !== undefined && one.ref.pool === pool)
      places.set(placeOf(one.address, one.port), one)
  return places
}
