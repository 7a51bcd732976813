import type { SeenLook } from '../core/balancer/look/look.js'
import type { LeaseTerm } from '../core/balancer/owner.js'
import { askedFirst, askStore, FIRST_ANSWER, StoreCalls } from '../core/tickets/calls.js'
import { refuseOutdated, setChecked } from '../core/tickets/saved.js'
import { parseStored } from '../core/tickets/store.js'
import { canonicalAddress } from '../provider/address.js'
import { wallOf } from '../provider/clock.js'
import type { Change, ChangeResult, PresentReading } from '../provider/contract.js'
import { toDrainableError } from '../provider/error.js'
import { isSameIdentity } from '../provider/member-ref.js'
import { quote } from '../provider/quote.js'
import { lineOf } from '../core/tickets/writing/line.js'
import { additionsKey } from './tickets.js'
import type { WorkSpec } from './work-spec.js'

/** An addition as it is sent. */
export type Add = Extract<Change, { readonly kind: 'add' }>

/** What they are remembered with. */
export type AdditionsSpec = Pick<
  WorkSpec,
  'provider' | 'policy' | 'tickets' | 'capabilities' | 'subject' | 'fault'
>

/** A member that we added, by its place. */
interface Added {
  /** The identity that it was first seen with; null: not seen yet. */
  readonly identity: string | null
  /**
   * Until when it may still come, in epoch milliseconds: its answer is missing. Null where it was answered, or was seen
   * open. So one that is held and has a moment here was never opened: its addition ended half-way.
   */
  readonly until: number | null
  /** When it was last sent or answered, by the clock: a look from before does not show it. Infinity: it is under way. */
  readonly at: number
}

/** As it is stored: `[address, port, identity, until, by]`. The last one says which controller lists it. */
type Row = readonly [string, number | null, string | null, number | null, string]

/** What was added to one pool. */
interface PoolAdditions {
  readonly pool: string
  readonly added: Map<string, Added>
  /** Places that looks have shown empty, until the store has forgotten them. */
  readonly gone: Set<string>
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
    const { tickets, provider, policy } = this.#spec
    const { clock } = policy
    const calls = new StoreCalls(tickets, askedFirst({ clock, signal }))
    await Promise.all(
      pools.map(async (name) => {
        const { added } = this.#poolOf(name)
        const { rows } = await storedIn(calls, additionsKey(provider, name))
        for (const row of rows) {
          const [, , identity, wasUntil] = row
          // The process that sent it is gone: it comes now, or never.
          const until = wasUntil === null ? null : this.#lateFrom()
          added.set(placeIn(row), { identity, until, at: clock.now() })
        }
      }),
    )
  }

  /** Whether a member is one that we added. */
  has(reading: PresentReading): boolean {
    return this.#added(reading) !== undefined
  }

  /**
   * Whether it is as an addition of ours may have left it: that was not answered as done, and no look has shown it open. HAProxy
   * adds a server in maint, and opens it by a second command.
   */
  isUnopened(reading: PresentReading): boolean {
    const added = reading.own === 'maint' ? this.#added(reading) : undefined
    return added !== undefined && added.until !== null && added.at !== Infinity
  }

  #added({ ref, identity, address, port }: PresentReading): Added | undefined {
    const pool = this.#pools.get(ref.pool)
    if (pool === undefined || pool.added.size === 0 || address === undefined) return undefined
    const place = placeOf(address, port)
    const known = pool.added.get(place)
    if (known === undefined) return undefined
    if (known.identity !== null) return isSameIdentity(known.identity, identity) ? known : undefined
    const seen = { ...known, identity }
    pool.added.set(place, seen)
    pool.isDirty = true
    return seen
  }

  /**
   * Before it is sent: nothing is added that would stay for ever.
   *
   * @returns told the answer
   * @throws what the store threw; `NOT_LEADER` where a later holder of the lease has written
   */
  async announce({ ref, address, port }: Add): Promise<(status: ChangeResult['status']) => void> {
    const { clock } = this.#spec.policy
    const pool = this.#poolOf(ref.pool)
    const place = placeOf(address, port)
    const before = pool.added.get(place)
    const note = (added: Added | undefined): void => {
      if (added === undefined) pool.added.delete(place)
      else pool.added.set(place, added)
      pool.isDirty = true
    }
    /** It was there before: by an addition of ours whose answer was lost, or by another client. */
    const withdraw = (): void => note(before && { ...before, at: clock.now() })
    const first = { identity: null, until: this.#lateFrom() }
    note({ ...first, at: Infinity })
    pool.gone.delete(place)
    try {
      await this.#save(pool)
    } catch (error) {
      withdraw()
      throw error
    }
    return (status) => {
      if (status !== 'applied' && status !== 'unknown') {
        withdraw()
        return
      }
      // It may have been seen open while its answer was waited for.
      const seen = pool.added.get(place) ?? first
      const isOpen = status === 'applied' || seen.until === null
      note({ ...seen, until: isOpen ? null : this.#lateFrom(), at: clock.now() })
    }
  }

  /** What a look shows: one that is not there any more is not ours when it comes again. */
  seen({ snapshot, askedAt }: SeenLook): void {
    const wall = wallOf(this.#spec.policy.clock)
    const listed = new Set(snapshot.pools.map(({ pool }) => pool))
    for (const pool of this.#pools.values()) {
      if (pool.added.size === 0 || !listed.has(pool.pool)) continue
      const there = placesIn(pool.pool, snapshot.readings)
      for (const [place, one] of pool.added) {
        const { until, at } = one
        const mayCome = until !== null && wall <= until
        const reading = there.get(place)
        if (reading === undefined && at < askedAt && !mayCome) {
          pool.added.delete(place)
          pool.gone.add(place)
          pool.isDirty = true
        } else if (reading?.own === 'ready' && until !== null) {
          // Whoever holds it from now on is not its addition.
          pool.added.set(place, { ...one, until: null })
          pool.isDirty = true
        }
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

  /** Until when a call without an answer may still be carried out, in epoch milliseconds. */
  #lateFrom(): number {
    const { capabilities, policy } = this.#spec
    return wallOf(policy.clock) + capabilities.lateBound
  }

  #poolOf(pool: string): PoolAdditions {
    const known = this.#pools.get(pool)
    if (known !== undefined) return known
    const fresh: PoolAdditions = {
      pool,
      added: new Map(),
      gone: new Set(),
      isDirty: false,
      writing: Promise.resolve(),
      waiting: undefined,
    }
    this.#pools.set(pool, fresh)
    return fresh
  }

  // --- the store

  /** What can't be written is told, and written by the next look. */
  #saveAll(): void {
    for (const pool of this.#pools.values()) if (pool.isDirty) this.#saveLater(pool)
  }

  #saveLater(pool: PoolAdditions): void {
    const { provider, subject, fault } = this.#spec
    this.#save(pool).catch((thrown: unknown) =>
      fault(toDrainableError(thrown, provider.name, subject)),
    )
  }

  /** Writes what is known when the writing begins; many that are announced at once make one writing. */
  #save(pool: PoolAdditions): Promise<void> {
    if (pool.waiting !== undefined) return pool.waiting
    const { tickets, provider } = this.#spec
    const key = additionsKey(provider, pool.pool)
    const line = lineOf(tickets, key)
    pool.writing = line.enter(async () => {
      pool.waiting = undefined
      // What was given up may be carried out over this: then it is written once more.
      line.begin(() => {
        pool.isDirty = true
        this.#saveLater(pool)
      })
      await this.#write(pool, key)
    })
    pool.waiting = pool.writing
    return pool.writing
  }

  async #write(pool: PoolAdditions, key: string): Promise<void> {
    const { tickets, policy } = this.#spec
    const { clock, term } = policy
    const what = `what was added to ${quote(pool.pool)}`
    await askStore(tickets, { clock, limit: FIRST_ANSWER }, async (calls) => {
      const { isThere, lease, rows } = await storedIn(calls, key)
      if (term !== undefined) refuseOutdated(lease, term.mark, what)
      pool.isDirty = false
      const gone = [...pool.gone]
      try {
        const added = this.#rowsOf(pool, rows)
        const mark = term === undefined ? {} : { lease: { ...term.mark } }
        if (added.length > 0) await setChecked(calls, key, { v: 1, ...mark, added }, what)
        else if (isThere) await calls.delete(key)
      } catch (error) {
        pool.isDirty = true
        throw error
      }
      for (const place of gone) pool.gone.delete(place)
    })
  }

  /** What is to be stored: ours, and what other controllers have listed. */
  #rowsOf({ added, gone }: PoolAdditions, stored: readonly Row[]): readonly Row[] {
    const theirs = stored.filter((row) => {
      const place = placeIn(row)
      return row[4] !== this.#by && !added.has(place) && !gone.has(place)
    })
    const ours = [...added].map(([place, { identity, until }]): Row => {
      const [address = '', port = ''] = place.split('\0')
      return [address, port === '' ? null : Number(port), identity, until, this.#by]
    })
    return [...theirs, ...ours]
  }
}

/** What is stored for a pool. */
interface StoredAdditions {
  readonly isThere: boolean
  readonly lease?: LeaseTerm['mark']
  readonly rows: readonly Row[]
}

async function storedIn(calls: Pick<StoreCalls, 'get'>, key: string): Promise<StoredAdditions> {
  const value = parseStored(await calls.get(key))
  if (typeof value !== 'object' || value === null) return { isThere: false, rows: [] }
  const { lease, added } = value as { lease?: LeaseTerm['mark']; added?: unknown }
  const rows = Array.isArray(added) ? (added as readonly Row[]) : []
  return { isThere: true, ...(lease === undefined ? {} : { lease }), rows }
}

function placeIn([address, port]: Row): string {
  return placeOf(address, port ?? undefined)
}

function placeOf(address: string, port: number | undefined): string {
  return `${canonicalAddress(address)}\0${port ?? ''}`
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
