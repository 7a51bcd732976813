import type { MemberRef } from '../../../provider/contract.js'
import { isDrainableError } from '../../../provider/error.js'
import { quote } from '../../../provider/quote.js'
import { showBackendStreams, SHOW_STREAM_LINES } from '../codec/commands.js'
import type { StatRow } from '../codec/stat.js'
import { countUncounted, isStreamList, oldestStreams, slotsOf } from '../codec/streams.js'
import { AnotherProcess, type Channel, WorkerGone } from '../session/channel.js'
import type { Within } from '../session/socket.js'
import { keyOf } from './read.js'
import type { ShownServer } from './shown.js'

/** No verdict comes sooner after an arrival that was seen, ms: until then the streams are not listed. */
const QUIET = 900
/** The time between two lists for one server at zero, ms: so many times as long as a list took, within these bounds. */
const AGAIN_TIMES = 10
const AGAIN = 100
const AGAIN_MOST = 2_000
/** A drain that has waited for less than this gets no ages, ms. */
const WAITS_LONG = 10_000
/** The shortest time between two lists for ages, ms, and the part of the time that these can take. */
const AGES_LOOK = 2_000
const AGES_SHARE = 200

/** What is known of one server. */
interface Known {
  /** As in its row when it was looked at last, and when that was seen to change; -Infinity where it was not. */
  readonly arrivals: number
  readonly since: number
  /** When its streams were listed at zero; what was in none of its counts then, undefined if that is not known. */
  askedAt: number
  count: number | undefined
  /** The streams that had a slot at every list, and have no server that is named yet. */
  slots: ReadonlySet<string> | undefined
  /** Since when it has been held and busy. */
  busySince: number | undefined
  /** How old its oldest work was, when, and how many requests were in flight then. */
  oldest: { readonly age: number; readonly at: number; readonly active: number } | undefined
}

/**
 * What the lines of `show sess` tell of the servers in one process, beside their rows.
 *
 * **Requests that are in none of its counts.**
 *
 * - A queued request that gets its slot leaves `qcur` at once. It is in `scur` and `stot` only when its own thread has
 *   run it, and that thread can be busy with other work (handshakes, regular expressions, Lua).
 * - A request whose connection failed waits a second for its retry, and then for its thread.
 *
 * Only the list has them, each with its server (seen on 2.6, 3.0, 3.2 and 3.4). It is asked for where a verdict may
 * come: once a held server is at zero and its row says that it can have such a request. Where the list had none, none
 * can come before something arrives: nothing is queued for a server without work.
 *
 * **The age of its oldest work**, for a server that has been held and busy for long. HAProxy stops its threads while it
 * writes a part of the list, so that is read rarely.
 */
export class StreamLines {
  readonly #known = new Map<string, Known>()
  #agesAt = -Infinity
  #cost = 0
  /** Why the streams could not be listed last, in words for a sentence. */
  #blind: string | undefined
  /** Whether the socket may not list streams (`level user`). */
  #isRefused = false

  /** How many requests wait for a server beside those that its row counts. */
  hidden(ref: MemberRef, row: StatRow): number {
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

  /** The age of the oldest work of a server, ms; undefined if not known. */
  oldest(ref: MemberRef, now: number): number | undefined {
    const oldest = this.#known.get(keyOf(ref))?.oldest
    return oldest && oldest.age + (now - oldest.at)
  }

  /**
   * Takes in a look, and lists the streams if that is due. A failure does not fail the look.
   *
   * @param old - whether the process was replaced: a drain waits for its work, whatever its state
   */
  async note(
    shownServers: readonly ShownServer[],
    old: boolean,
    channel: Channel,
    ctx: Within,
  ): Promise<void> {
    const now = ctx.clock.now()
    const each = shownServers.map((shown) => ({ shown, known: this.#follow(shown, old, now) }))
    if (this.#isRefused) return
    const again = within(AGAIN, this.#cost * AGAIN_TIMES, AGAIN_MOST)
    const atZero = each.filter(({ shown, known }) => {
      const { row } = shown
      const isOpen = row.mayHide && known.count !== 0
      const isZero = row.active + row.queued === 0
      return (
        isHeld(shown, old) &&
        isZero &&
        isOpen &&
        now >= Math.max(known.since + QUIET, known.askedAt + again)
      )
    })
    const agesDue = now >= this.#agesAt + Math.max(AGES_LOOK, this.#cost * AGES_SHARE)
    const waiting = each.filter(
      ({ known: { busySince = now } }) => agesDue && now - busySince >= WAITS_LONG,
    )
    if (waiting.length > 0) this.#agesAt = now
    const asked = [...atZero, ...waiting]
    if (asked.length === 0) return
    const reply = await this.#list(new Set(asked.map(({ shown }) => shown.ref.pool)), channel, ctx)
    const counts = countUncounted(reply ?? '')
    for (const { shown, known } of atZero) {
      known.askedAt = now
      if (reply === undefined) known.count = undefined
      else {
        // In a busy backend there is nearly always one with a slot: one of this server stays until its thread runs.
        const slots = slotsOf(reply, shown.ref.pool)
        known.slots = known.slots?.intersection(slots) ?? slots
        known.count = (counts.get(keyOf(shown.ref)) ?? 0) + known.slots.size
      }
    }
    const ages = oldestStreams(reply ?? '')
    for (const { shown, known } of waiting) {
      const age = ages.get(keyOf(shown.ref))
      if (reply !== undefined)
        known.oldest = age === undefined ? undefined : { age, at: now, active: shown.row.active }
    }
  }

  #last(ref: MemberRef, row: StatRow): Known | undefined {
    const known = this.#known.get(keyOf(ref))
    return known?.arrivals === row.arrivals ? known : undefined
  }

  #follow(shown: ShownServer, old: boolean, now: number): Known {
    const { ref, row } = shown
    const before = this.#known.get(keyOf(ref))
    const same = before?.arrivals === row.arrivals ? before : undefined
    // An open server takes what waits for any server.
    const counted = isHeld(shown, old) ? same : undefined
    const waits = row.active > 0 && isHeld(shown, old)
    const known: Known = {
      arrivals: row.arrivals,
      since: same?.since ?? (before === undefined ? -Infinity : now),
      askedAt: same?.askedAt ?? -Infinity,
      count: counted?.count,
      slots: counted?.slots,
      busySince: waits ? (before?.busySince ?? now) : undefined,
      oldest: waits ? oldestOf(before, row) : undefined,
    }
    this.#known.set(keyOf(ref), known)
    return known
  }

  /** The list of streams, undefined if it could not be had. Of one backend alone from 3.2 on. */
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

/** Whether a drain may wait for it. */
function isHeld({ own, inherited }: ShownServer, old: boolean): boolean {
  return old || own !== 'ready' || inherited !== undefined
}

/** What was known of the oldest work; a request that has ended since may have been it. */
function oldestOf(known: Known | undefined, { active }: StatRow): Known['oldest'] {
  return active < (known?.oldest?.active ?? 0) ? undefined : known?.oldest
}

function within(least: number, value: number, most: number): number {
  return Math.min(most, Math.max(least, value))
}
