import type { ChangeOf, ChangeOutcome } from '../../../kit/change.js'
import { leftBehind as half } from '../../../kit/errors.js'
import type { HeldMembers } from '../../../kit/haproxy/held.js'
import { until } from '../../../kit/until.js'
import type { CallContext, Change, MemberRef } from '../../../provider/contract.js'
import type { DrainableError } from '../../../provider/error.js'
import { refusal } from '../codec/commands.js'
import type { ServerState } from '../codec/state.js'
import type { Settings } from '../options.js'
import { AnotherProcess, type Channel } from '../session/channel.js'
import type { Facts } from '../session/master.js'
import { type Process, scopeOf } from '../session/process.js'
import type { ControlPoint } from '../session/session.js'

/** What changes are made with. */
export interface Tools {
  readonly point: ControlPoint
  readonly settings: Settings
  readonly held: HeldMembers
  readonly facts: Facts
  /** The process that was read: every change goes to it. */
  readonly process: Process
}

/** A change of one kind. */
export type Of<K extends Change['kind']> = ChangeOf<K>

/** What came of it; nothing: it is applied. A refusal is thrown. */
export type Done = Promise<ChangeOutcome | undefined>

/**
 * How often, and for how long, to retry: a process that is being replaced refuses, and the next connection reaches
 * the new one.
 */
const REPLACED = { every: 5, within: 500 }

export function channelOf({ point, process }: Tools): Channel {
  return point.channel(process)
}

/**
 * Sends a repeatable change until the process that was read has executed it: while a reload hands the socket over,
 * its predecessor accepts connections too, and executes or refuses commands.
 *
 * @throws `AnotherProcess` if a new process, which was not read, has executed it
 */
export async function tell(
  { point, process }: Tools,
  ref: MemberRef,
  line: string,
  ctx: CallContext,
): Promise<string> {
  let last: { readonly reply: string } | { readonly thrown: AnotherProcess } | undefined
  const done = await until(ctx, REPLACED, async () => {
    try {
      const reply = await point.change(process, line, ctx)
      process.view.touch(ref)
      last = { reply }
      return reply.startsWith('Proxy is disabled') ? undefined : reply
    } catch (error) {
      const isOld = error instanceof AnotherProcess && point.others.isOld(scopeOf(error.info))
      if (!isOld) throw error
      last = { thrown: error }
      return undefined
    }
  })
  if (done !== undefined) return done
  if (last !== undefined && 'reply' in last) return last.reply
  throw last?.thrown ?? new TypeError('nothing was sent')
}

/** Sends a change that is refused with words. @throws the refusal */
export async function must(
  tools: Tools,
  ref: MemberRef,
  line: string,
  ctx: CallContext,
): Promise<void> {
  const reply = await tell(tools, ref, line, ctx)
  if (reply !== '') throw refusal(ref, line, reply)
}

/** Reads one server; undefined if it is not there. */
export async function readState(
  tools: Tools,
  { pool, member }: MemberRef,
  ctx: CallContext,
): Promise<ServerState | undefined> {
  const states = await tools.process.view.states([pool], channelOf(tools), ctx)
  return states.get(pool)?.get(member)
}

/** A change that was refused, and of which a part is left: what came of it is not known. */
export class Half extends Error {
  override readonly name = 'Half'
  readonly error: DrainableError

  constructor(refused: DrainableError, left: string) {
    super(left)
    this.error = half(refused, left)
  }
}
