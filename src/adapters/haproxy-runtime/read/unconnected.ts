import { pause } from '../../../provider/clock.js'
import type { MemberRef } from '../../../provider/contract.js'
import { isDrainableError } from '../../../provider/error.js'
import { refKey } from '../../../provider/member-ref.js'
import { quote } from '../../../provider/quote.js'
import { showBackendStreams, SHOW_STREAM_LINES } from '../codec/commands.js'
import type { StatRow } from '../codec/stat.js'
import { countUnconnected, isStreamList, NO_SERVER, slotsOf } from '../codec/streams.js'
import { AnotherProcess, type Channel, WorkerGone } from '../session/channel.js'
import type { Within } from '../session/socket.js'
import { keyOf, type Sight } from './read.js'

/** No verdict comes sooner after an arrival that was seen, ms: until then the streams are not listed. */
const QUIET = 900
/** The time between two lists for one server, ms: so many times as long as a list took, within these bounds. */
const AGAIN_TIMES = 10
const AGAIN = 100
const AGAIN_MOST = 2_000
/** For so long a slot that may be another server's is looked at before it counts as everyone's, and how often, ms. */
const SLOT_LASTS = 100
const SLOT_LOOK = 10

/** What is known of one server. */
interface Known {
  /** As in its row when the streams were listed, or since when it is so. */
  readonly arrivals: number
  /** When it was seen to change; -Infinity where it was not. */
  readonly since: number
  /** How many requests waited without being counted; undefined if that is not known. */
  count: number | undefined
  askedAt: number
}

/** A server whose row is looked at, with the names under which its process knows it. */
export interface LookedAt {
  readonly sight: Sight
  readonly names: readonly MemberRef[]
}

/**
 * Finds the requests that wait in one process for their connection to a server, and are in none of its counts.
 *
 * - A queued request that gets its slot leaves `qcur` at once. It is in `scur` and `stot` only when its own thread has
 *   run it, and that thread can be busy with other work (handshakes, regular expressions, Lua).
 * - A request whose connection failed waits a second for its retry, and then for its thread.
 *
 * Only the list of streams has them, each with its server (seen on 2.6, 3.0, 3.2 and 3.4). It is asked for where a
 * verdict may come: once a held server is at zero and its row says that it can have such a request. Where the list had
 * none, none can come before something arrives: nothing is queued for a server without work.
 */
export class Unconnected {
  readonly #known = new Map<string, Known>()
  #cost = 0
  /** Why the streams could not be listed last, in words for a sentence. */
  #blind: string | undefined
  /** Whether the socket may not list streams (`level user`). */
  #isRefused = false

  /** How many requests wait for a server beside those that its row counts. */
  of(ref: MemberRef, row: StatRow): number {
    return this.#last(ref, row)?.count ?? 0
  }

  /** Whether a request can be in none of the counts. */
  mayHide(ref: MemberRef, row: StatRow): boolean {
    return row.mayHide && this.#last(ref, row)?.count === undefined
  }

  /** Why it can't be known whether a request is in none of the counts; undefined if it is known, or not asked yet. */
  blindness(ref: MemberRef, row: StatRow): string | undefined {
    return this.mayHide(ref, row) ? this.#blind : undefined
  }

  /**
   * Takes in a look, and lists the streams if that is due.
   *
   * @param old - whether the process was replaced: a drain waits for its work, whatever its state
   */
  async note(
    servers: readonly LookedAt[],
    old: boolean,
    channel: Channel,
    ctx: Within,
  ): Promise<void> {
    const now = ctx.clock.now()
    const due = servers.filter(({ sight }) => {
      const known = this.#follow(sight, now)
      const { own, inherited, row } = sight
      const isHeld = old || own !== 'ready' || inherited !== undefined
      // An open server takes what waits for any server.
      if (!isHeld) known.count = undefined
      const again = known.askedAt + within(AGAIN, this.#cost * AGAIN_TIMES, AGAIN_MOST)
      const isZero = row.active + row.queued === 0
      const isOpen = row.mayHide && known.count !== 0
      return isHeld && isZero && isOpen && now >= Math.max(known.since + QUIET, again)
    })
    if (due.length === 0 || this.#isRefused) return
    const counts = await this.#count(due, channel, ctx)
    for (const { sight, names } of due) {
      const known = this.#known.get(keyOf(sight.ref))
      if (known === undefined) continue
      known.askedAt = now
      known.count = counts && names.reduce((sum, name) => sum + countOf(counts, name), 0)
    }
  }

  #last(ref: MemberRef, row: StatRow): Known | undefined {
    const known = this.#known.get(keyOf(ref))
    return known?.arrivals === row.arrivals ? known : undefined
  }

  #follow({ ref, row }: Sight, now: number): Known {
    const before = this.#known.get(keyOf(ref))
    if (before?.arrivals === row.arrivals) return before
    const since = before === undefined ? -Infinity : now
    const known = { arrivals: row.arrivals, since, count: undefined, askedAt: -Infinity }
    this.#known.set(keyOf(ref), known)
    return known
  }

  /**
   * The counts by server, undefined if they could not be had. A stream whose server is not named yet can have the slot
   * of any of them: in a busy backend there is nearly always one. It is named as soon as it runs, so that is waited for.
   */
  async #count(
    servers: readonly LookedAt[],
    channel: Channel,
    ctx: Within,
  ): Promise<ReadonlyMap<string, number> | undefined> {
    const { clock, signal } = ctx
    const pools = new Set(servers.flatMap(({ names }) => names.map(({ pool }) => pool)))
    let reply = await this.#list(pools, channel, ctx)
    const slots = slotsOf(reply ?? '', pools)
    const end = clock.now() + SLOT_LASTS
    // One that is in each list: its pointer goes to the next stream once it is over.
    let unnamed = slots
    while (reply !== undefined && unnamed.size > 0 && clock.now() < end) {
      await pause(clock, SLOT_LOOK, signal)
      reply = await this.#list(pools, channel, ctx)
      unnamed = unnamed.intersection(slotsOf(reply ?? '', pools))
    }
    return reply === undefined ? undefined : countUnconnected(reply, slots, unnamed)
  }

  /** The list of streams, undefined if it could not be had. */
  async #list(
    pools: ReadonlySet<string>,
    channel: Channel,
    ctx: Within,
  ): Promise<string | undefined> {
    const [pool, ...more] = pools
    const isOne = pool !== undefined && more.length === 0
    const from = ctx.clock.now()
    try {
      const command = isOne ? showBackendStreams(pool) : SHOW_STREAM_LINES
      const reply = (await channel.run([command], ctx)).replies[0] ?? ''
      this.#isRefused = reply.startsWith('Permission denied')
      this.#blind = isStreamList(reply) ? undefined : `HAProxy answered '${quote(reply.trim())}'`
      return this.#blind === undefined ? reply : undefined
    } catch (error) {
      ctx.signal.throwIfAborted()
      const another = error instanceof AnotherProcess || error instanceof WorkerGone
      if (!another && !isDrainableError(error)) throw error
      this.#blind = error.message
      return undefined
    } finally {
      this.#cost = ctx.clock.now() - from
    }
  }
}

/**
 * How many there are for a server under one of its names. One whose server is not named yet can be any server's.
 */
function countOf(counts: ReadonlyMap<string, number>, name: MemberRef): number {
  const anybody = counts.get(refKey({ pool: name.pool, member: NO_SERVER })) ?? 0
  return (counts.get(keyOf(name)) ?? 0) + anybody
}

function within(least: number, value: number, most: number): number {
  return Math.min(most, Math.max(least, value))
}
