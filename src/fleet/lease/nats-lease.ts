import type { CallContext } from '../../provider/contract.js'
import { DrainableError } from '../../provider/error.js'
import { missingMethods, readGiven } from '../../provider/options.js'
import { keyOf } from './redis-lease.js'
import type { Lease, LeaseGrant } from './lease.js'
import { Unchanged } from './unchanged.js'

/** One entry of a bucket, as `@nats-io/kv` returns it. */
export interface NatsEntryLike {
  /** The operation: `PUT`, `DEL` or `PURGE`. */
  readonly operation: string
  /** The bucket's revision number of this entry. */
  readonly revision: number
  /** Returns its value as a text. */
  string(): string
}

/** The part of an `@nats-io/kv` 3 bucket that a lease uses. */
export interface NatsKvLike {
  /** Returns the newest entry of a key; null if there is none. */
  get(key: string): Promise<NatsEntryLike | null>
  /** Creates a key and returns its revision; rejects if the key exists. */
  create(key: string, data: string): Promise<number>
  /**
   * Updates a key if its newest entry has this revision, and returns the new revision; rejects if it has another one.
   */
  update(key: string, data: string, revision: number): Promise<number>
}

/** The content of the entry. The holder is null once the lease was released. */
interface Held {
  readonly holder: string | null
  readonly ttl: number
  /** Absent in the entry that acquired the lease: that entry's own revision is the number. */
  readonly fence?: number
}

interface Seen extends Held {
  readonly revision: number
  readonly fence: number
}

/**
 * Makes a lease in one key of your NATS key-value bucket. Every change is a compare-and-set on the entry's revision;
 * the fencing number is the revision that acquired the lease, and rises as long as the bucket exists.
 *
 * The server does not expire the key (`nats-server` before 2.11 can't, for one key): a contender takes the lease over
 * once it has seen the same revision for the lease's whole time, by its own monotonic clock, as Kubernetes' leader
 * election does. So use one lease object for all tries, and a bucket without its own `ttl`, or with a much longer
 * one.
 *
 * @param bucket - from `new Kvm(connection).open('leases')`. Create it once, before the contenders start: if two
 *   clients create a bucket at the same moment, `nats-server` 2.9 can refuse one (`subjects overlap with an existing
 *   stream`)
 * @param options - `key`: the name that all contenders of one lease share
 * @throws `INVALID_OPTIONS`
 *
 * @example
 * ```ts
 * import { natsLease, type Lease, type NatsKvLike } from 'drainable'
 *
 * // const bucket = await new Kvm(await connect({ servers: '127.0.0.1:4222' })).open('leases')
 * export function leaseOf(bucket: NatsKvLike): Lease {
 *   return natsLease(bucket, { key: 'edge' })
 * }
 * ```
 */
export function natsLease(bucket: NatsKvLike, options: { readonly key: string }): Lease {
  const missing = readGiven('natsLease(): bucket', () =>
    missingMethods(bucket, ['get', 'create', 'update']),
  )
  if (missing.length > 0) {
    const words = `natsLease(): bucket: expected a bucket of @nats-io/kv, with ${missing.join(', ')}`
    throw new DrainableError('INVALID_OPTIONS', words)
  }
  return new NatsLease(bucket, keyOf(options, 'natsLease()'))
}

class NatsLease implements Lease {
  readonly name: string
  readonly #bucket: NatsKvLike
  readonly #key: string
  readonly #unchanged = new Unchanged()

  constructor(bucket: NatsKvLike, key: string) {
    this.name = `nats '${key}'`
    this.#bucket = bucket
    this.#key = key
  }

  async acquire(holder: string, ttl: number, ctx: CallContext): ReturnType<Lease['acquire']> {
    const found = await this.#read()
    if (found?.holder === holder) {
      const fence = found.fence
      const renewed = await this.renew({ holder, fence }, ttl, ctx)
      return renewed ? { granted: true, fence } : this.#heldBy()
    }
    if (found !== undefined && found.holder !== null) {
      const isOver = this.#unchanged.isOver(found.revision, found.ttl, ctx.clock)
      if (!isOver) return { granted: false, holder: found.holder }
    }
    // A call that was given up must not acquire the lease for a contender that does not know of it.
    ctx.signal.throwIfAborted()
    const data = JSON.stringify({ holder, ttl } satisfies Held)
    const revision = await this.#set(data, found?.revision)
    if (revision !== undefined) return { granted: true, fence: revision }
    return this.#heldBy()
  }

  async renew(
    { holder, fence }: LeaseGrant,
    ttl: number,
    ctx: Pick<CallContext, 'signal'>,
  ): Promise<boolean> {
    const found = await this.#read()
    if (found?.holder !== holder || found.fence !== fence) return false
    ctx.signal.throwIfAborted()
    const data = JSON.stringify({ holder, ttl, fence } satisfies Held)
    if ((await this.#set(data, found.revision)) !== undefined) return true
    const now = await this.#read()
    return now?.holder === holder && now.fence === fence
  }

  async release({ holder, fence }: LeaseGrant): Promise<void> {
    const found = await this.#read()
    if (found?.holder !== holder || found.fence !== fence) return
    await this.#set(JSON.stringify({ holder: null, ttl: 0, fence } satisfies Held), found.revision)
  }

  /** Reads the entry to tell whether another contender was faster or our answer was lost. */
  async #heldBy(): ReturnType<Lease['acquire']> {
    return { granted: false, holder: (await this.#read())?.holder ?? null }
  }

  /** Reads the entry; undefined if there is none. */
  async #read(): Promise<Seen | undefined> {
    const entry = await this.#bucket.get(this.#key)
    if (entry === null || entry.operation !== 'PUT') return undefined
    const { holder, ttl, fence = entry.revision } = parseHeld(entry.string(), this.name)
    return { holder, ttl, fence, revision: entry.revision }
  }

  /** Writes by compare-and-set; undefined if the entry has changed. */
  async #set(data: string, revision: number | undefined): Promise<number | undefined> {
    try {
      return revision === undefined
        ? await this.#bucket.create(this.#key, data)
        : await this.#bucket.update(this.#key, data, revision)
    } catch (error) {
      const now = await this.#read()
      if (now?.revision === revision) throw error // no other was faster: it failed
      return undefined
    }
  }
}

function parseHeld(text: string, name: string): Held {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    value = undefined
  }
  const { holder, ttl, fence } = (value ?? {}) as Partial<Record<string, unknown>>
  const isHolder = holder === null || typeof holder === 'string'
  if (isHolder && typeof ttl === 'number' && (fence === undefined || Number.isSafeInteger(fence)))
    return { holder, ttl, ...(fence === undefined ? {} : { fence: Number(fence) }) }
  throw new DrainableError(
    'MALFORMED_REPLY',
    `${name}: the entry is not a lease, use a key that nothing else writes to`,
  )
}
