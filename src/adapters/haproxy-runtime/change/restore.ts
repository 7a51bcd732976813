import { isTakenForPassed } from '../../../kit/haproxy/checks.js'
import type { AdminState, CallContext, MemberRef } from '../../../provider/contract.js'
import { type DrainableError, isDrainableError } from '../../../provider/error.js'
import { isSameIdentity } from '../../../provider/member-ref.js'
import { refusal, setHealthDown, setLimit, setState, setWeight } from '../codec/commands.js'
import { identityOf, ownState, type ServerState } from '../codec/state.js'
import type { ShownProcess } from '../read/shown.js'
import { channelOf, Half, type Of, readState, tell, type Tools } from './tools.js'

/** Undoes a hold, if the expected state is found. */
export function restore(
  tools: Tools,
  { ref, to }: Of<'restore'>,
  found: ServerState,
  ctx: CallContext,
): Promise<undefined> {
  return move(tools, ref, found, to, ctx)
}

/** Sets the state by commands that cut nothing. */
async function move(
  tools: Tools,
  ref: MemberRef,
  from: ServerState,
  to: AdminState,
  ctx: CallContext,
): Promise<undefined> {
  const own = ownState(from.admin)
  const line = own === 'maint' ? await leaveMaint(tools, ref, to, from, ctx) : setState(ref, to)
  const reply = await tell(tools, ref, line, ctx)
  if (reply !== '') {
    const error = refusal(ref, 'set server', reply)
    if (!line.includes(';')) throw error
    // HAProxy runs the commands of a line one by one, even after a refused one.
    const now = await readState(tools, ref, ctx)
    const is = (state: AdminState): boolean =>
      now !== undefined && ownState(now.admin) === state && now.weight === from.weight
    if (now === undefined || is(own)) throw error
    if (!is(to)) {
      const left = `it is '${ownState(now.admin)}' with weight ${now.weight} now, it had ${from.weight}`
      throw new Half(error, left)
    }
  }
  if (own === 'maint' && to === 'drain') await distrustHealth(tools, ref, from, ctx)
  if (to === 'ready')
    for (const one of [ref, ...tools.point.followers.of(ref)]) await takeQueue(tools, one, ctx)
}

/** A limit for a moment: how much of the queue a server without one takes. */
const MANY = 1_000

/**
 * Gives an opened server its part of the queue. A server gets requests from there when it comes up, or when one of its own ends, and
 * what comes meanwhile joins them: one that leaves drain, or came up at weight 0, stays without any while the others are full (2.6,
 * 3.0, 3.2, 3.4). Setting its limit anew hands them out.
 */
async function takeQueue(tools: Tools, ref: MemberRef, ctx: CallContext): Promise<void> {
  try {
    const { members, pools } = await lookAt(tools, ref, ctx)
    const [shown] = members.values()
    if (shown === undefined || (pools.get(ref.pool)?.queued ?? 0) === 0) return
    const { limit } = shown.row
    // Where there is none, one that is set and taken away does the same.
    const line = limit > 0 ? setLimit(ref, limit) : `${setLimit(ref, MANY)};${setLimit(ref, 0)}`
    await tell(tools, ref, line, ctx)
  } catch {
    // it is open, whatever became of this
  }
}

/**
 * Restores a server that was put into maintenance for a change that was then refused. A state that another client set
 * meanwhile is left alone.
 *
 * @param before - the state as it was found
 * @throws `Half` if the server stays in maintenance
 */
export async function putBack(
  tools: Tools,
  ref: MemberRef,
  before: ServerState,
  refused: DrainableError,
  ctx: CallContext,
): Promise<void> {
  const now = await readState(tools, ref, ctx)
  const ours = now !== undefined && ownState(now.admin) === 'maint'
  if (!ours || !isSameIdentity(identityOf(before), identityOf(now))) return
  try {
    await move(tools, ref, now, ownState(before.admin), ctx)
  } catch (error) {
    const why = error instanceof Half ? error.error : error
    if (!isDrainableError(why)) throw error
    throw new Half(
      refused,
      `it was put into maintenance for it and could not be put back: ${why.message}`,
    )
  }
}

/**
 * The line that takes a server out of maintenance. `on-marked-up shutdown-backup-sessions` cuts the sessions on
 * backup servers at that moment, unless the server comes up at weight 0. The option can't be read, so this is done if
 * the backend has a backup server with work.
 */
async function leaveMaint(
  tools: Tools,
  ref: MemberRef,
  to: AdminState,
  found: ServerState,
  ctx: CallContext,
): Promise<string> {
  const shown = await lookAt(tools, ref, ctx)
  const backups = shown.pools.get(ref.pool)?.backups ?? 0
  if (backups === 0 || found.weight === 0) return setState(ref, to)
  // A static balance algorithm refuses absolute weights, but not percentages of the configured one.
  const weight = found.weight === found.initialWeight ? '100%' : found.weight
  const steps = [setWeight(ref, '0%'), setState(ref, 'ready')]
  if (to === 'drain') steps.push(setState(ref, 'drain'))
  return [...steps, setWeight(ref, weight)].join(';')
}

/** Marks a server down under drain where its counts would show a passed check before there is one. */
async function distrustHealth(
  tools: Tools,
  ref: MemberRef,
  found: ServerState,
  ctx: CallContext,
): Promise<void> {
  if (!found.checks) return
  const seen = [...(await lookAt(tools, ref, ctx)).members.values()][0]
  const check = seen?.row.check
  if (seen?.own !== 'drain' || check === undefined) return
  if (!isTakenForPassed(check)) return
  // Going down would cut what has come since it left maintenance.
  if (tools.settings.maintCuts && seen.row.active > 0) return
  // Coming up would cut what a backup server holds by then, see leaveMaint().
  const all = (await lookAt(tools, ref, ctx, 'all')).members.values()
  if ([...all].some(({ row }) => row.backupServers > 0)) return
  await tell(tools, ref, setHealthDown(ref), ctx)
}

function lookAt(
  tools: Tools,
  { pool, member }: MemberRef,
  ctx: CallContext,
  names: ReadonlySet<string> | 'all' = new Set([member]),
): Promise<ShownProcess> {
  return tools.process.view.read(new Map([[pool, names]]), channelOf(tools), ctx)
}
