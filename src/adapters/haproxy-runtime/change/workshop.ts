import type { ChangeOf } from '../../../kit/change.js'
import { until } from '../../../kit/until.js'
import type { CallContext, Change, ChangeResult, MemberRef } from '../../../provider/contract.js'
import type { DrainableError } from '../../../provider/error.js'
import { leftBehind as half } from '../../../kit/errors.js'
import { AnotherProcess, type Channel } from '../session/channel.js'
import type { ServerState } from '../codec/state.js'
import type { OldChannel } from '../session/other-processes.js'
import type { ProcessView } from '../read/read.js'

/** The parts of the provider that a change uses. */
export interface Workshop {
  /**
   * Sends one changing command line on its own connection, read to the close.
   *
   * @throws `AnotherProcess` if a process other than the one that was read executed it
   */
  readonly send: (line: string, ctx: CallContext) => Promise<string>
  /** Whether that process is a predecessor of the one that was read. */
  readonly isPredecessor: (error: AnotherProcess) => boolean
  readonly view: ProcessView
  readonly channel: Channel
  /** Channels to the old processes that can be reached, for cuts there. */
  readonly others: readonly OldChannel[]
  /**
   * Whether this provider holds it already: a hold then only puts it back, takes no capacity, and is never refused.
   */
  readonly isHeld: (ref: MemberRef) => boolean
  /** Takes note that nothing stands against a hold of it. */
  readonly passed: (ref: MemberRef) => void
  /** Whether work at its address stands in the row of another server. */
  readonly hasStrays: (ref: MemberRef) => boolean
  /** Returns the servers that track this one and are drained along with it. */
  readonly followers: (ref: MemberRef) => readonly MemberRef[]
  /** How many servers of a follower's backend must keep serving. */
  readonly keepFollowers: number
  /** Why no hold can be made: an old process that can't be reached. */
  readonly unseen: string | undefined
  /** Whether `wait srv-removable` exists. */
  readonly canWait: boolean
}

/** A change of one kind. */
export type Of<K extends Change['kind']> = ChangeOf<K>

/**
 * How often, and for how long, to retry: a process that is being replaced refuses, and the next connection reaches
 * the new one.
 */
const REPLACED = { every: 20, within: 500 }

export function rejected(ref: MemberRef, error: DrainableError): ChangeResult {
  return { ref, status: 'rejected', error }
}

/**
 * Sends a repeatable change until the process that was read has executed it: while a reload hands the socket over,
 * its predecessor accepts connections too, and executes or refuses commands.
 *
 * @throws `AnotherProcess` if a new process, which was not read, has executed it
 */
export async function tell(
  shop: Workshop,
  ref: MemberRef,
  line: string,
  ctx: CallContext,
): Promise<string> {
  let last: { readonly reply: string } | { readonly thrown: AnotherProcess } | undefined
  const done = await until(ctx, REPLACED, async () => {
    try {
      const reply = await shop.send(line, ctx)
      shop.view.touch(ref)
      last = { reply }
      return reply.startsWith('Proxy is disabled') ? undefined : reply
    } catch (error) {
      if (!(error instanceof AnotherProcess) || !shop.isPredecessor(error)) throw error
      last = { thrown: error }
      return undefined
    }
  })
  if (done !== undefined) return done
  if (last !== undefined && 'reply' in last) return last.reply
  throw last?.thrown ?? new TypeError('nothing was sent')
}

/** Reads one server; undefined if it is not there. */
export async function readState(
  { view, channel }: Workshop,
  { pool, member }: MemberRef,
  ctx: CallContext,
): Promise<ServerState | undefined> {
  const states = await view.states([pool], channel, ctx)
  return states.get(pool)?.get(member)
}

/** The result of a refused change of which a part is left. */
export function leftBehind(ref: MemberRef, error: DrainableError, what: string): ChangeResult {
  return { ref, status: 'unknown', error: half(error, what) }
}
