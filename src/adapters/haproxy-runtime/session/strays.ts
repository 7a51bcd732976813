import { isAtLeast, parseVersion } from '../../../kit/version.js'
import type { MemberRef } from '../../../provider/contract.js'
import { DrainableError } from '../../../provider/error.js'
import { refKey } from '../../../provider/member-ref.js'
import { showServersState, SHOW_STREAMS } from '../codec/commands.js'
import { addressOf, parseServersState, type ServerState } from '../codec/state.js'
import { streamsTo } from '../codec/streams.js'
import type { ProcessSight, ProcessView, Wanted } from '../read/read.js'
import { AnotherProcess, type Channel } from './channel.js'
import type { Process } from './process.js'
import type { Within } from './socket.js'

/** The shortest time between two lists of streams, ms, and the part of the time that lists can take. */
const STRAYS_LOOK = 500
const STRAYS_SHARE = 20

/** What is known about one server. */
interface Known {
  /** It with the address that was searched for, and how often servers had moved then. */
  readonly server: ServerState
  readonly moves: number
  /** How many streams were found; undefined if the socket may not list them. */
  readonly count: number | undefined
}

/**
 * Finds the work at a server's address that stands in the row of another server. If a server gets another address (by
 * DNS, or `set server ... addr`), its streams stay at the address of before, and in its row. Another server of the
 * backend can get that address meanwhile: it is at zero, and its machine is at work.
 *
 * Only the list of all streams shows that. It is read where a server is at zero and its address can have moved, and
 * not again once it shows none: a new stream goes to the address that its server has.
 */
export class Strays {
  readonly #known = new Map<string, Known>()
  #askedAt = -Infinity
  #cost = 0

  /** How many requests of other servers are at its address. */
  of(ref: MemberRef): number {
    return this.#known.get(keyOf(ref))?.count ?? 0
  }

  /** Whether they could not be counted. */
  isBlind(ref: MemberRef): boolean {
    const known = this.#known.get(keyOf(ref))
    return known !== undefined && known.count === undefined
  }

  /**
   * Takes in a look, and lists the streams if that is due.
   *
   * @param serves - the servers of the process that serves, with the addresses that count
   */
  async note(
    refs: readonly MemberRef[],
    { members }: Pick<ProcessSight, 'members'>,
    { view, serves, channel }: { view: ProcessView; serves: ProcessView; channel: Channel },
    ctx: Within,
  ): Promise<void> {
    for (const ref of refs) {
      const server = this.#lastPlaced(ref, serves.known(ref))
      const { moves } = view.backend(ref.pool)
      if (server === undefined) continue
      // Another address there, or another name: HAProxy was reloaded with other servers.
      const isMoved = moves > 0 || addressOf(view.known(ref)) !== addressOf(serves.known(ref))
      if (!server.resolved && !isMoved) continue
      const row = members.get(keyOf(ref))?.row
      const isBusy = row !== undefined && row.active + row.queued > 0
      if (!isBusy && this.#isDue(ref, server, moves, ctx.clock.now()))
        await this.#list(ref, server, moves, channel, ctx)
    }
  }

  /** A server whose name has lost its address still has the machine of before. */
  #lastPlaced(ref: MemberRef, server: ServerState | undefined): ServerState | undefined {
    return addressOf(server) === undefined ? this.#known.get(keyOf(ref))?.server : server
  }

  /** Its address of now is searched for once without a wait, and then until it shows none. */
  #isDue(ref: MemberRef, server: ServerState, moves: number, now: number): boolean {
    const known = this.#known.get(keyOf(ref))
    if (addressOf(known?.server) !== addressOf(server) || known?.moves !== moves) return true
    if (known.count === 0) return false
    return now >= this.#askedAt + Math.max(STRAYS_LOOK, this.#cost * STRAYS_SHARE)
  }

  async #list(
    ref: MemberRef,
    server: ServerState,
    moves: number,
    channel: Channel,
    ctx: Within,
  ): Promise<void> {
    this.#askedAt = ctx.clock.now()
    const found = await listStrays(ref, server, channel, ctx)
    this.#cost = ctx.clock.now() - this.#askedAt
    this.#known.set(keyOf(ref), { server, moves, count: found?.length })
  }
}

/** The streams of other servers at its address, by pointer; undefined if the socket may not list them. */
export async function listStrays(
  ref: MemberRef,
  server: ServerState,
  channel: Channel,
  ctx: Within,
): Promise<readonly string[] | undefined> {
  const { replies } = await channel
    .run([showServersState(ref.pool), SHOW_STREAMS], ctx)
    .catch((error: unknown) => {
      if (!(error instanceof AnotherProcess)) throw error
      const data = { ref, provider: 'haproxy-runtime', cause: error }
      throw new DrainableError('CONFLICT', 'a reload has just replaced the process', data)
    })
  const [states = '', streams = ''] = replies
  if (/^Can't find backend/.test(states)) return []
  // A socket of level user may not list them.
  if (streams.startsWith('Permission denied')) return undefined
  const there = new Set(
    parseServersState(states)
      .filter((state) => addressOf(state) === addressOf(server))
      .map(({ name }) => name),
  )
  // Its own are among them where an old process had its name for another address.
  return streamsTo(streams, ref.pool, server)
    .filter(({ member }) => !there.has(member))
    .map(({ pointer }) => pointer)
}

/**
 * Why requests of another server can still come to its address; undefined if they can't. Before 3.0, HAProxy does not
 * close connections to the address that a server had, and sends further requests over them (seen on 2.6: pooled ones
 * after a change by DNS, with `http-reuse never` also those of a client after `set server ... addr`).
 */
export function whyReused(
  { info }: ProcessSight,
  { pool, name, source }: ServerState,
  { servers, moves }: ReturnType<ProcessView['backend']>,
): string | undefined {
  const version = parseVersion(info.version)
  if (version === undefined || isAtLeast(version, 3, 0)) return undefined
  const isShared =
    source !== undefined && servers.some((other) => other.name !== name && other.source === source)
  if (!isShared && moves === 0) return undefined
  return `HAProxy ${info.version} does not close a server's connections to its address of before, and still sends requests over them: another server of ${pool} can have had this address${isShared ? ` (both are ${source})` : ''}; 3.0 and later close them`
}

/** What the list of streams tells about the work of servers, beside the counts: its age, and where it strayed. */
export async function noteStreams(
  process: Process,
  sight: ProcessSight,
  { wanted, serves, old }: { wanted: Wanted; serves: ProcessView; old: boolean },
  channel: Channel,
  ctx: Within,
): Promise<void> {
  await process.ages.note(sight.members.values(), old, channel, ctx)
  const refs = [...wanted].flatMap(([pool, names]) =>
    names === 'all' ? [] : [...names].map((member) => ({ pool, member })),
  )
  await process.strays.note(refs, sight, { view: process.view, serves, channel }, ctx)
}

function keyOf({ pool, member }: MemberRef): string {
  return refKey({ pool, member })
}
