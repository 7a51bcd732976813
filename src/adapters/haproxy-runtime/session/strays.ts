import { isAtLeast, parseVersion } from '../../../kit/version.js'
import type { MemberRef } from '../../../provider/contract.js'
import { DrainableError } from '../../../provider/error.js'
import { refKey } from '../../../provider/member-ref.js'
import { showServersState, SHOW_STREAMS } from '../codec/commands.js'
import { addressOf, parseServersState, type ServerState } from '../codec/state.js'
import { streamsTo } from '../codec/streams.js'
import { keyOf, type ProcessSight, type ProcessView, type Wanted } from '../read/read.js'
import { refsOf } from '../read/renamed.js'
import { AnotherProcess, type Channel } from './channel.js'
import type { Process } from './process.js'
import type { Within } from './socket.js'

/** The shortest time between two lists of streams, ms, and the part of the time that lists can take. */
const STRAYS_LOOK = 500
const STRAYS_SHARE = 20

/** What is to be known of a server in a process that was replaced. */
export interface Replaced {
  /** The names under which its work was counted there. */
  readonly names: readonly MemberRef[]
  /** The way to the process that serves: what is at the address there too has its work in its own row. */
  readonly serves: Channel
}

/** The process that is looked at. */
interface At {
  readonly view: ProcessView
  /** The servers of the process that serves, with the addresses that count. */
  readonly serves: ProcessView
  readonly channel: Channel
  /** Undefined for the process that serves. */
  readonly replaced: ((ref: MemberRef) => Replaced) | undefined
}

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
   */
  async note(
    refs: readonly MemberRef[],
    { members }: Pick<ProcessSight, 'members'>,
    { view, serves, channel, replaced }: At,
    ctx: Within,
  ): Promise<void> {
    for (const ref of refs) {
      const server = this.#lastPlaced(ref, serves.known(ref))
      const moves = view.moves(ref.pool)
      if (server === undefined) continue
      // Another address there, or another name: HAProxy was reloaded with other servers.
      const isMoved = moves > 0 || addressOf(view.known(ref)) !== addressOf(serves.known(ref))
      if (!server.resolved && !isMoved) continue
      const row = members.get(keyOf(ref))?.row
      const isBusy = row !== undefined && row.active + row.queued > 0
      if (!isBusy && this.#isDue(ref, server, moves, ctx.clock.now()))
        await this.#list(ref, server, moves, { channel, replaced: replaced?.(ref) }, ctx)
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
    at: { readonly channel: Channel; readonly replaced: Replaced | undefined },
    ctx: Within,
  ): Promise<void> {
    this.#askedAt = ctx.clock.now()
    const found = await listStrays(ref, server, at, ctx)
    this.#cost = ctx.clock.now() - this.#askedAt
    this.#known.set(keyOf(ref), { server, moves, count: found?.length })
  }
}

/**
 * The streams of other servers at its address, by pointer; undefined if the socket may not list them.
 *
 * In a process that was replaced the backend, too, can have another name.
 */
export async function listStrays(
  ref: MemberRef,
  server: ServerState,
  { channel, replaced }: { readonly channel: Channel; readonly replaced: Replaced | undefined },
  ctx: Within,
): Promise<readonly string[] | undefined> {
  const pool = replaced === undefined ? ref.pool : undefined
  const states = showServersState(pool)
  const [there = '', streams = ''] = await asked(ref, channel, [states, SHOW_STREAMS], ctx)
  if (/^Can't find backend/.test(there)) return []
  // A socket of level user may not list them.
  if (streams.startsWith('Permission denied')) return undefined
  const counted = namesAt(there, server)
  if (replaced !== undefined) {
    const [now = ''] = await asked(ref, replaced.serves, [states], ctx)
    const others = namesAt(now, server)
    const own = counted.has(keyOf(ref)) && replaced.names.length === 0 ? [ref] : replaced.names
    others.delete(keyOf(ref))
    counted.clear()
    for (const key of [...others, ...own.map(keyOf)]) counted.add(key)
  }
  return streamsTo(streams, pool, server)
    .filter((stream) => !counted.has(keyOf(stream)))
    .map(({ pointer }) => pointer)
}

async function asked(
  ref: MemberRef,
  channel: Channel,
  commands: readonly string[],
  ctx: Within,
): Promise<readonly string[]> {
  try {
    return (await channel.run(commands, ctx)).replies
  } catch (error) {
    if (!(error instanceof AnotherProcess)) throw error
    const data = { ref, provider: 'haproxy-runtime', cause: error }
    throw new DrainableError('CONFLICT', 'a reload has just replaced the process', data)
  }
}

/** What is at that address. */
function namesAt(states: string, server: ServerState): Set<string> {
  const there = parseServersState(states).filter((state) => addressOf(state) === addressOf(server))
  return new Set(there.map(({ pool, name }) => refKey({ pool, member: name })))
}

/**
 * Why requests of another server can still come to its address; undefined if they can't. Before 3.0, HAProxy does not
 * close connections to the address that a server had, and sends further requests over them (seen on 2.6: pooled ones
 * after a change by DNS, with `http-reuse never` also those of a client after `set server ... addr`).
 */
export function whyReused(
  { info }: ProcessSight,
  { pool, name, source }: ServerState,
  view: ProcessView,
): string | undefined {
  const version = parseVersion(info.version)
  if (version === undefined || isAtLeast(version, 3, 0)) return undefined
  const isShared =
    source !== undefined &&
    view.servers(pool).some((other) => other.name !== name && other.source === source)
  if (!isShared && view.moves(pool) === 0) return undefined
  return `HAProxy ${info.version} does not close a server's connections to its address of before, and still sends requests over them: another server of ${pool} can have had this address${isShared ? ` (both are ${source})` : ''}; 3.0 and later close them`
}

/**
 * What the list of streams tells about the work of servers, beside the counts: what is in none of them, its age, and
 * where it strayed.
 */
export async function noteStreams(
  process: Process,
  sight: ProcessSight,
  { watched, serves, replacedBy }: { watched: Wanted; serves: ProcessView; replacedBy?: Channel },
  channel: Channel,
  ctx: Within,
): Promise<void> {
  const refs = refsOf(watched)
  const sights = refs.flatMap((ref) => sight.members.get(keyOf(ref)) ?? [])
  const { renamed, view } = process
  const isOld = replacedBy !== undefined
  const servers = sights.map((of) => {
    const aliases = isOld ? renamed.namesOf(of.ref) : []
    return { sight: of, names: aliases.length === 0 ? [of.ref] : aliases }
  })
  await process.unconnected.note(servers, isOld, channel, ctx)
  await process.ages.note(sights, isOld, channel, ctx)
  const replaced =
    replacedBy === undefined
      ? undefined
      : (ref: MemberRef): Replaced => ({ names: renamed.namesOf(ref), serves: replacedBy })
  await process.strays.note(refs, sight, { view, serves, channel, replaced }, ctx)
}
