import { DrainableError } from '../../provider/error.js'
import { missingMethods, readGiven } from '../../provider/options.js'
import { keyOf } from './redis-lease.js'
import { EntryLease, type Held, type LeaseEntry, type LeaseStore } from './entry-lease.js'
import type { Lease } from './lease.js'

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

interface Seen extends LeaseEntry {
  readonly revision: number
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
  return new EntryLease(new NatsEntry(bucket, keyOf(options, 'natsLease()')))
}

class NatsEntry implements LeaseStore<Seen> {
  readonly name: string
  readonly #bucket: NatsKvLike
  readonly #key: string

  constructor(bucket: NatsKvLike, key: string) {
    this.name = `nats '${key}'`
    this.#bucket = bucket
    this.#key = key
  }

  async read(): Promise<Seen | undefined> {
    const entry = await this.#bucket.get(this.#key)
    if (entry === null || entry.operation !== 'PUT') return undefined
    const { revision } = entry
    return { ...parseContent(entry, this.name), revision }
  }

  async write({ holder, ttl, isNew }: Held, found: Seen | undefined): Promise<number | undefined> {
    const fence = isNew ? undefined : found?.fence
    const data = JSON.stringify({ holder, ttl, fence })
    try {
      const revision =
        found === undefined
          ? await this.#bucket.create(this.#key, data)
          : await this.#bucket.update(this.#key, data, found.revision)
      return fence ?? revision
    } catch (error) {
      const now = await this.read()
      if (now?.revision === found?.revision) throw error // no other was faster: it failed
      return undefined
    }
  }
}

/** Its `fence` is left out in the entry that acquired the lease: that entry's own revision is the number. */
function parseContent(entry: NatsEntryLike, name: string): Omit<Seen, 'revision'> {
  const text = entry.string()
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    value = undefined
  }
  const { holder, ttl, fence = entry.revision } = Object(value) as Partial<Record<string, unknown>>
  const isHolder = holder === null || typeof holder === 'string'
  if (isHolder && typeof ttl === 'number' && Number.isSafeInteger(fence))
    return { holder, ttl, fence: Number(fence) }
  throw new DrainableError(
    'MALFORMED_REPLY',
    `${name}: the entry is not a lease, use a key that nothing else writes to`,
  )
}
