import type { SeenLook } from '../core/balancer/look/look.js'
import type { LeaseTerm } from '../core/balancer/owner.js'
import { askedFirst, askStore, FIRST_ANSWER, StoreCalls } from '../core/tickets/calls.js'
import { laterFence, setChecked } from '../core/tickets/saved.js'
import { parseStored } from '../core/tickets/store.js'
import { canonicalAddress } from '../provider/address.js'
import { wallOf } from '../provider/clock.js'
import type { Change, ChangeResult, PresentReading } from '../provider/contract.js'
import { DrainableError, toDrainableError } from '../provider/error.js'
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

/** A member that we added, as it is stored. */
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

/** A row of the stored list: `[address, port, identity, until, by]`. */
type Row = readonly [string, number | null, string | null, number | null, string]

/** A member that we added, in this life. */
interface OurAddition extends Added {
  readonly state: 'ours'
  /** When it was last sent or answered, by the clock: a look from before does not show it. Infinity: it is under way. */
  readonly at: number
}

/** `gone`: a look has shown its place empty. `withdrawn`: it is not ours; another controller may still list it. */
type Place = OurAddition | { readonly state: 'gone' | 'withdrawn' }

/** What is known of the places of one pool. */
interface PoolAdditions {
  readonly pool: string
  readonly places: Map<string, Place>
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
        const { places } = this.#poolOf(name)
        const { added } = await storedIn(calls, additionsKey(provider, name))
        for (const [place, one] of added) {
          // The process that sent it is gone: it comes now, or never.
          const until = one.until === null ? null : this.#lateFrom()
          places.set(place, { ...one, state: 'ours', until, at: clock.now() })
        }
      }),
    )
  }

  /** Whether a member is one that we added. */
  has(reading: PresentReading): boolean {
    return this.#ours(reading) !== undefined
  }

  /**
   * Whether it is as an addition of ours may have left it: that was not answered as done, and no look has shown it open. HAProxy
   * adds a server in maint, and opens it by a second command.
   */
  isUnopened(reading: PresentReading): boolean {
    const ours = reading.own === 'maint' ? this.#ours(reading) : undefined
    return ours !== undefined && ours.until !== null && ours.at !== Infinity
  }

  #ours({ ref, identity, address, port }: PresentReading): OurAddition | undefined {
    const pool = this.#pools.get(ref.pool)
    if (pool === undefined || pool.places.size === 0 || address === undefined) return undefined
    const place = placeOf(address, port)
    const known = pool.places.get(place)
    if (known?.state !== 'ours') return undefined
    if (known.identity !== null) return isSameIdentity(known.identity, identity) ? known : undefined
    const seen = { ...known, identity }
    note(pool, place, seen)
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
    const before = pool.places.get(place)
    const first = { identity: null, until: this.#lateFrom(), by: this.#by }
    const putBack = (): void => {
      const known = before?.state === 'ours' ? { ...before, at: clock.now() } : WITHDRAWN
      note(pool, place, known)
    }
    note(pool, place, { ...first, state: 'ours', at: Infinity })
    try {
      await this.#save(pool)
    } catch (error) {
      putBack()
      throw error
    }
    return (status) => {
      if (status === 'applied' || status === 'unknown') {
        // It may have been seen open while its answer was waited for.
        const now = pool.places.get(place)
        const seen = now?.state === 'ours' ? now : first
        const isOpen = status === 'applied' || seen.until === null
        const until = isOpen ? null : this.#lateFrom()
        note(pool, place, { ...seen, state: 'ours', until, at: clock.now() })
      }
      // It was there before: by an addition of ours whose answer was lost, or by another client.
      else putBack()
    }
  }

  /** What a look shows: one that is not there any more is not ours when it comes again. */
  seen({ snapshot, askedAt }: SeenLook): void {
    const wall = wallOf(this.#spec.policy.clock)
    const listed = new Set(snapshot.pools.map(({ pool }) => pool))
    for (const pool of this.#pools.values()) {
      if (pool.places.size === 0 || !listed.has(pool.pool)) continue
      const there = placesIn(pool.pool, snapshot.readings)
      for (const [place, one] of pool.places) {
        if (one.state !== 'ours') continue
        const { until, at } = one
        const mayCome = until !== null && wall <= until
        const reading = there.get(place)
        if (reading === undefined) {
          if (at < askedAt && !mayCome) note(pool, place, GONE)
        } else if (reading.own === 'ready' && until !== null)
          // Whoever holds it from now on is not its addition.
          note(pool, place, { ...one, until: null })
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
      places: new Map(),
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
      line.begin(() => this.#saveLater(pool))
      await this.#write(pool, key)
    })
    pool.waiting = pool.writing
    return pool.writing
  }

  async #write(pool: PoolAdditions, key: string): Promise<void> {
    const { tickets, policy } = this.#spec
    const { clock, term } = policy
    await askStore(tickets, { clock, limit: FIRST_ANSWER }, async (calls) => {
      const stored = await storedIn(calls, key)
      refuseOutdated(pool.pool, stored.lease, term)
      pool.isDirty = false
      try {
        const all = this.#merged(pool, stored.added)
        const mark = term === undefined ? {} : { lease: { ...term.mark } }
        const value = { v: 1, ...mark, added: all.map(toRow) }
        if (all.length > 0)
          await setChecked(calls, key, value, `what was added to ${quote(pool.pool)}`)
        else if (stored.isThere) await calls.delete(key)
      } catch (error) {
        pool.isDirty = true
        throw error
      }
    })
  }

  /** Ours, and what other controllers have listed. */
  #merged({ places }: PoolAdditions, stored: StoredAdditions['added']): [string, Added][] {
    const isTheirs = ([place, { by }]: [string, Added]): boolean => {
      const known = places.get(place)
      return known === undefined || (known.state === 'withdrawn' && by !== this.#by)
    }
    const ours = [...places].flatMap(([place, one]): [string, Added][] =>
      one.state === 'ours' ? [[place, one]] : [],
    )
    return [...[...stored].filter(isTheirs), ...ours]
  }
}

const GONE: Place = { state: 'gone' }
const WITHDRAWN: Place = { state: 'withdrawn' }

function note(pool: PoolAdditions, place: string, known: Place): void {
  pool.places.set(place, known)
  pool.isDirty = true
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
