import type { ChangeOf } from '../../../kit/change.js'
import { until } from '../../../kit/until.js'
import type { CallContext, Change, ChangeResult, MemberRef } from '../../../provider/contract.js'
import type { DrainableError } from '../../../provider/error.js'
import { leftBehind as half } from '../../../kit/errors.js'
import { AnotherProcess, type Channel } from '../session/channel.js'
import type { ServerState } from '../codec/state.js'
import type { ProcessView } from '../read/read.js'

/** What a change needs of the provider. */
export interface Workshop {
  /**
   * One changing command line on a connection of its own, read to the close.
   *
   * @throws `AnotherProcess` where another process executed it than the one that was read
   */
  readonly send: (line: string, ctx: CallContext) => Promise<string>
  /** Whether it was a process that the one that was read has replaced. */
  readonly isPredecessor: (error: AnotherProcess) => boolean
  readonly view: ProcessView
  readonly channel: Channel
  /** Old processes that can be spoken to, for what must be cut there too. */
  readonly others: readonly Channel[]
  /** Whether this provider holds it already: a hold of it is put back then, takes nothing, and is never refused. */
  readonly isHeld: (ref: MemberRef) => boolean
  /** Servers that track this one and go along with it. */
  readonly followers: (ref: MemberRef) => readonly MemberRef[]
  /** How many servers of a follower's backend must stay. */
  readonly keepFollowers: number
  /** Why no hold can be made: an old process that can't be spoken to. */
  readonly unseen: string | undefined
  /** Whether `wait srv-removable` exists. */
  readonly canWait: boolean
}

/** A change of one kind. */
export type Of<K extends Change['kind']> = ChangeOf<K>

/** A process that is being replaced refuses; the next connection finds the new one. */
const REPLACED = { every: 20, within: 500 }

export function rejected(ref: MemberRef, error: DrainableError): ChangeResult {
  return { ref, status: 'rejected', error }
}

/**
 * Sends a change that can be repeated, until the process that was read has executed it: while a
 * reload hands the socket over, its predecessor takes connections too, and obeys or refuses.
 *
 * @throws `AnotherProcess` where a new process has executed it, which was not looked at
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

/** One server as it is now; undefined where it is not there. */
export async function readState(
  { view, channel }: Workshop,
  { pool, member }: MemberRef,
  ctx: CallContext,
): Promise<ServerState | undefined> {
  const states = await view.states([pool], channel, ctx)
  return states.get(pool)?.get(member)
}

/** A change that was refused, and of which something is left. */
export function leftBehind(ref: MemberRef, error: DrainableError, what: string): ChangeResult {
  return { ref, status: 'unknown', error: half(error, what) }
}
