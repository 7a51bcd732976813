import { isAtLeast, parseVersion } from '../../../kit/version.js'
import type { MemberRef } from '../../../provider/contract.js'
import { DrainableError } from '../../../provider/error.js'
import { refKey } from '../../../provider/member-ref.js'
import { showServersState, SHOW_STREAMS } from '../codec/commands.js'
import { addressOf, parseServersState, type ServerState } from '../codec/state.js'
import { type Stream, streamsTo } from '../codec/streams.js'
import { AnotherProcess, type Channel } from '../session/channel.js'
import type { Within } from '../session/socket.js'
import { keyOf, type ProcessView } from './read.js'
import type { ShownProcess } from './shown.js'
import { PROVIDER } from '../name.js'

/** The shortest time between two lists of streams, ms, and the part of the time that lists can take. */
const OFF_ROW_LOOK = 500
const OFF_ROW_SHARE = 20

/** The process that is looked at. */
interface At {
  readonly shown: ShownProcess
  readonly view: ProcessView
  /** What the process that serves has, with the addresses that count; the same object for that process itself. */
  readonly serves: ShownProcess
  /** Whether clients can still come through it. */
  readonly isOpen: boolean
}

/** What is searched for: the address of a server. */
interface Searched {
  /** It with the address that was searched for, and how often servers had moved then. */
  readonly server: ServerState
  readonly moves: number
  /** Whether the process has it by this name and address: only then its row has its work. */
  readonly isOwn: boolean
}

/** What is known about one server. */
interface Known extends Searched {
  /** The streams at its address that are not in its row; undefined if the socket may not list them. */
  readonly streams: readonly Stream[] | undefined
  /** Whether clients can reach its address there by another name. */
  readonly isReached: boolean
}

/**
 * Finds the work at a server's address that is not in its row. Work belongs to an address.
 *
 * - If a server gets another address (by DNS, or `set server ... addr`), its streams stay at the address of before, and
 *   in its row. Another server of the backend can get that address meanwhile: it is at zero, and its machine is at work.
 * - A reload may give a server another name, or its name to another one. What the old process holds for it then stands
 *   under its name of before.
 *
 * Only the list of all streams shows that. It is read where a server is at zero and its address can have moved, or
 * where an old process does not have it by this name and address; and not again once it shows none: a new stream goes
 * to the address that its server has.
 */
export class OffRowWork {
  readonly #known = new Map<string, Known>()
  #askedAt = -Infinity
  #cost = 0

  /** How many requests at its address are not in its row. */
  of(ref: MemberRef): number {
    return this.#known.get(keyOf(ref))?.streams?.length ?? 0
  }

  /** Whether they could not be counted. */
  isBlind(ref: MemberRef): boolean {
    const known = this.#known.get(keyOf(ref))
    return known !== undefined && known.streams === undefined
  }

  /** Whether its row in this process is its own: by the same name, at the same address. */
  isOwn(ref: MemberRef): boolean {
    return this.#known.get(keyOf(ref))?.isOwn !== false
  }

  /** Whether clients can reach its address there by another name. */
  isReached(ref: MemberRef): boolean {
    return this.#known.get(keyOf(ref))?.isReached === true
  }

  /** Takes in a look, and lists the streams if that is due. */
  async note(refs: readonly MemberRef[], at: At, channel: Channel, ctx: Within): Promise<void> {
    const now = ctx.clock.now()
    const due = refs.flatMap((ref) => this.#due(ref, at, now) ?? [])
    if (due.length === 0) return
    this.#askedAt = now
    const lists = await read(channel, ctx)
    this.#cost = ctx.clock.now() - now
    for (const { ref, ...known } of due) {
      const there = find(ref, known, lists)
      this.#known.set(keyOf(ref), { ...known, ...there, isReached: there.isReached && at.isOpen })
    }
  }

  /** The pointers of the streams at its address that are not in its row. They are to be cut: the next look lists anew. */
  async list(ref: MemberRef, channel: Channel, ctx: Within): Promise<readonly string[]> {
    const known = this.#known.get(keyOf(ref))
    if (known === undefined || this.of(ref) === 0) return []
    this.#askedAt = -Infinity
    const lists = await read(channel, ctx)
    const { streams = [] } = find(ref, known, lists)
    return streams.map(({ pointer }) => pointer)
  }

  #due(
    ref: MemberRef,
    { shown, view, serves, isOpen }: At,
    now: number,
  ): (Searched & { readonly ref: MemberRef }) | undefined {
    const known = this.#known.get(keyOf(ref))
    const named = serves.members.get(keyOf(ref))?.state
    // A server whose name has lost its address still has the machine of before.
    const server = addressOf(named) === undefined ? known?.server : named
    if (server === undefined) return undefined
    const there = shown.members.get(keyOf(ref))
    const isOwn = shown === serves || addressOf(there?.state) === addressOf(server)
    const moves = view.moves(ref.pool)
    // It is back at this address: the row counts for it again.
    if (isOwn && known?.isOwn === false) this.#known.delete(keyOf(ref))
    if (isOwn && !server.resolved && moves === 0) return undefined
    const isBusy = there !== undefined && there.row.active + there.row.queued > 0
    if (isOwn && isBusy) return undefined
    const found = { ref, server, moves, isOwn }
    // The last clients have gone since: what they left is looked for before that counts.
    if (known?.isReached === true && !isOpen) return found
    return this.#isDue(known, found, now) ? found : undefined
  }

  /** Its address of now is searched for once without a wait, and then until it shows none. */
  #isDue(known: Known | undefined, found: Searched, now: number): boolean {
    const isSame =
      addressOf(known?.server) === addressOf(found.server) &&
      known?.moves === found.moves &&
      known.isOwn === found.isOwn
    if (!isSame) return true
    if (known.streams?.length === 0 && !known.isReached) return false
    return now >= this.#askedAt + Math.max(OFF_ROW_LOOK, this.#cost * OFF_ROW_SHARE)
  }
}

interface Lists {
  /** Undefined if the socket may not list them. */
  readonly streams: string | undefined
  readonly states: readonly ServerState[]
}

async function read(channel: Channel, ctx: Within): Promise<Lists> {
  try {
    const { replies } = await channel.run([SHOW_STREAMS, showServersState()], ctx)
    const [streams = '', states = ''] = replies
    const isRefused = streams.startsWith('Permission denied')
    return { streams: isRefused ? undefined : streams, states: parseServersState(states) }
  } catch (cause) {
    if (!(cause instanceof AnotherProcess)) throw cause
    const data = { provider: PROVIDER, cause }
    throw new DrainableError('CONFLICT', 'a reload has just replaced the process', data)
  }
}

/** In its own row are the streams of every server that has this address: only those of others are off its row. */
function find(
  { pool }: MemberRef,
  { server, isOwn }: Searched,
  { streams, states }: Lists,
): Pick<Known, 'streams' | 'isReached'> {
  const there = states.filter((state) => addressOf(state) === addressOf(server))
  const names = new Set(there.map((state) => refKey({ pool: state.pool, member: state.name })))
  const all =
    streams === undefined ? undefined : streamsTo(streams, isOwn ? pool : undefined, server)
  return {
    streams: isOwn ? all?.filter((stream) => !names.has(keyOf(stream))) : all,
    isReached: !isOwn && there.length > 0,
  }
}

/**
 * Why requests of another server can still come to its address; undefined if they can't. Before 3.0, HAProxy does not
 * close connections to the address that a server had, and sends further requests over them (seen on 2.6: pooled ones
 * after a change by DNS, with `http-reuse never` also those of a client after `set server ... addr`).
 */
export function whyReused(
  { info }: ShownProcess,
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
