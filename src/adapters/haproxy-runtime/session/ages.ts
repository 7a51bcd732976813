import type { MemberRef } from '../../../provider/contract.js'
import { isDrainableError } from '../../../provider/error.js'
import { showStreamsOf, SHOW_STREAM_LINES } from '../codec/commands.js'
import { oldestStreams } from '../codec/streams.js'
import { keyOf, type Sight } from '../read/read.js'
import { AnotherProcess, type Channel, WorkerGone } from './channel.js'
import type { Within } from './socket.js'

/** A drain that has waited for less than this gets no ages, ms. */
const WAITS_LONG = 10_000
/** The shortest time between two lists of streams, ms, and the part of the time that lists can take. */
const AGES_LOOK = 2_000
const AGES_SHARE = 200
/** A slower list is given up, so that the look does not wait for it, ms. */
const LONGEST_LIST = 1_000

interface Known {
  readonly age: number
  /** When it had that age, by the clock of the calls. */
  readonly at: number
  /** How many requests were in flight then. */
  readonly active: number
}

/**
 * Finds the age of the oldest work of a drained server in one process. HAProxy reports it only in the list of streams
 * (before 3.2, of every server), and stops its threads while it writes a part of the list: so it is read rarely, and
 * only for a server that has been drained and busy for long.
 */
export class Ages {
  /** Since when a server has been drained and busy, by its key. */
  readonly #since = new Map<string, number>()
  readonly #known = new Map<string, Known>()
  #askedAt = -Infinity
  #cost = 0
  /** Whether the socket is not allowed to list streams (`level user`). */
  #refused = false

  /** The age of the oldest work of a server, ms; undefined if not known. */
  of(ref: MemberRef, now: number): number | undefined {
    const known = this.#known.get(keyOf(ref))
    return known && known.age + (now - known.at)
  }

  /**
   * Takes in a look, and reads the ages if that is due. A failure does not fail the look: the ages are then not
   * known.
   *
   * @param old - whether the process was replaced: a drain waits for its work, whatever its state
   */
  async note(sights: Iterable<Sight>, old: boolean, channel: Channel, ctx: Within): Promise<void> {
    const now = ctx.clock.now()
    const waiting = [...sights].filter((sight) => this.#waitsLong(sight, old, now))
    const due = this.#askedAt + Math.max(AGES_LOOK, this.#cost * AGES_SHARE)
    if (waiting.length === 0 || this.#refused || now < due) return
    this.#askedAt = now
    const reply = await listed(
      waiting.map(({ ref }) => ref),
      channel,
      ctx,
    )
    this.#cost = ctx.clock.now() - now
    if (reply === undefined) return
    this.#refused = reply.startsWith('Permission denied')
    const oldest = oldestStreams(reply)
    for (const { ref, row } of waiting) {
      const age = oldest.get(keyOf(ref))
      if (age === undefined) this.#known.delete(keyOf(ref))
      else this.#known.set(keyOf(ref), { age, at: now, active: row.active })
    }
  }

  #waitsLong({ ref, row, own }: Sight, old: boolean, now: number): boolean {
    const key = keyOf(ref)
    const waits = row.active > 0 && (old || own !== 'ready')
    // A request has ended: it may have been the oldest.
    if (!waits || row.active < (this.#known.get(key)?.active ?? 0)) this.#known.delete(key)
    if (!waits) {
      this.#since.delete(key)
      return false
    }
    const since = this.#since.get(key) ?? now
    this.#since.set(key, since)
    return now - since >= WAITS_LONG
  }
}

/** Reads the stream lines of these servers, and perhaps of others; undefined if that failed. */
async function listed(
  refs: readonly MemberRef[],
  channel: Channel,
  ctx: Within,
): Promise<string | undefined> {
  const [first, ...more] = refs
  const command = first && more.length === 0 ? showStreamsOf(first) : SHOW_STREAM_LINES
  const limit = new AbortController()
  const cancel = ctx.clock.setTimeout(() => limit.abort(), LONGEST_LIST)
  const signal = AbortSignal.any([ctx.signal, limit.signal])
  try {
    const { replies } = await channel.run([command], { ...ctx, signal })
    return replies[0] ?? ''
  } catch (error) {
    ctx.signal.throwIfAborted()
    const another = error instanceof AnotherProcess || error instanceof WorkerGone
    if (!another && !limit.signal.aborted && !isDrainableError(error)) throw error
    return undefined
  } finally {
    cancel()
  }
}
