import type { MemberRef } from '../../../provider/contract.js'
import { isDrainableError } from '../../../provider/error.js'
import { refKey } from '../../../provider/member-ref.js'
import { showStreamsOf, SHOW_STREAM_LINES } from '../codec/commands.js'
import { oldestStreams } from '../codec/streams.js'
import type { Sight } from '../read/read.js'
import { AnotherProcess, type Channel, WorkerGone } from './channel.js'
import type { Within } from './socket.js'

/** A drain that waits for less than that is told no age, ms. */
const WAITS_LONG = 10_000
/** Streams are listed at most that often, ms, and for at most one part in that many of the time. */
const AGES_LOOK = 2_000
const AGES_SHARE = 200
/** A list that takes longer is given up: the look does not wait for it, ms. */
const LONGEST_LIST = 1_000

interface Known {
  readonly age: number
  /** By the clock of the calls: when it was that old. */
  readonly at: number
  /** How many were in flight then. */
  readonly active: number
}

/**
 * How old the oldest work of a drained server is in one process. HAProxy tells it only in the list of all
 * streams (before 3.2 that of every server), and stops its threads while it writes a part of it: it is asked
 * seldom, and only for a server that has been drained and busy for long.
 */
export class Ages {
  /** Since when a server has been drained and busy, by its key. */
  readonly #since = new Map<string, number>()
  readonly #known = new Map<string, Known>()
  #askedAt = -Infinity
  #cost = 0
  /** The socket may not list streams (`level user`). */
  #refused = false

  /** The age of the oldest work of a server, ms; undefined: not known. */
  of(ref: MemberRef, now: number): number | undefined {
    const known = this.#known.get(keyOf(ref))
    return known && known.age + (now - known.at)
  }

  /**
   * Takes in what a look saw, and asks for the ages where that is due. A failure is none of the look: the
   * ages are then not known.
   *
   * @param old - whether the process was replaced: what it holds is waited for, whatever its state
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
    // One of them has ended: it may have been the oldest.
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

/** The lines of the streams of these servers, and perhaps of others; undefined where they could not be had. */
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

function keyOf({ pool, member }: MemberRef): string {
  return refKey({ pool, member })
}
