import { pause } from '../../../provider/clock.js'
import type { CallContext, Change, ChangeResult, MemberRef } from '../../../provider/contract.js'
import { DrainableError } from '../../../provider/error.js'
import { formatRef } from '../../../provider/member-ref.js'
import { type Channel, WorkerGone } from '../session/channel.js'
import { refusal, setState, shutdownSession, shutdownSessions } from '../codec/commands.js'
import { identityOf, isSameServer, ownState, type ServerState } from '../codec/state.js'
import { add, remove } from './membership.js'
import { wouldServe } from '../read/read.js'
import { restore } from './restore.js'
import { conflict, rejected, tell, type Of, type Workshop } from './workshop.js'

const ORDER = { ready: 0, drain: 1, maint: 2 } as const
/** How long a cut may take to show in the counts, and between two looks. */
const CUT_PATIENCE = 1_000
const CUT_LOOK = 20
/**
 * One change, judged against what is there now.
 *
 * @param found - the server as just read; undefined where it is not there
 */
export async function applyChange(
  shop: Workshop,
  change: Change,
  found: ServerState | undefined,
  ctx: CallContext,
): Promise<ChangeResult> {
  const { ref } = change
  if (change.kind === 'add') return add(shop, change, found, ctx)
  if (found === undefined) {
    return rejected(
      ref,
      new DrainableError(
        'NOT_FOUND',
        `backend ${ref.pool} has no server ${ref.member}, check the names against the configuration`,
        { ref, provider: 'haproxy-runtime' },
      ),
    )
  }
  if (!isSameServer(change.identity, found)) {
    return conflict(
      ref,
      `is ${identityOf(found)} now, it was ${change.identity ?? ''}: another server has its place, nothing was touched`,
    )
  }
  switch (change.kind) {
    case 'hold':
      return hold(shop, change, found, ctx)
    case 'restore':
      return restore(shop, change, found, ctx)
    case 'terminate':
      return terminate(shop, change, ctx)
    case 'remove':
      return remove(shop, change, found, ctx)
    default:
      throw change satisfies never
  }
}

async function hold(
  shop: Workshop,
  change: Of<'hold'>,
  found: ServerState,
  ctx: CallContext,
): Promise<ChangeResult> {
  const { ref, to } = change
  // The own bit is set whatever is inherited: the parent's release would open this one.
  if (ORDER[ownState(found.admin)] >= ORDER[to]) return { ref, status: 'unchanged' }
  const short = ownState(found.admin) === 'ready' ? await leavesTooFew(shop, ref, ctx) : undefined
  if (short !== undefined) return rejected(ref, short)
  const command = setState(ref, to)
  const reply = await tell(shop, ref, command, ctx)
  return reply === '' ? { ref, status: 'applied' } : rejected(ref, refusal(ref, command, reply))
}

/** Whether the servers that track this one would leave too few in their backends. */
async function leavesTooFew(
  shop: Workshop,
  ref: MemberRef,
  ctx: CallContext,
): Promise<DrainableError | undefined> {
  const followers = shop.followers(ref)
  if (followers.length === 0 || shop.keepFollowers === 0) return undefined
  const going = new Map<string, Set<string>>([[ref.pool, new Set([ref.member])]])
  for (const { pool, member } of followers) {
    going.set(pool, (going.get(pool) ?? new Set()).add(member))
  }
  const sight = await shop.view.read(going, shop.channel, ctx.clock, ctx.signal)
  for (const pool of new Set(followers.map((follower) => follower.pool))) {
    const serving = sight.pools.get(pool)?.serving ?? 0
    const lost = [...sight.members.values()].filter(
      (seen) => seen.ref.pool === pool && wouldServe(seen),
    ).length
    if (lost === 0 || serving - lost >= shop.keepFollowers) continue
    const names = followers.map(({ pool: of, member }) => `${of}/${member}`).join(', ')
    return new DrainableError(
      'POOL_AT_MINIMUM',
      `${formatRef(ref)} was not drained: ${names} ${followers.length === 1 ? 'tracks' : 'track'} it and would go along, which leaves ${Math.max(0, serving - lost)} serving in ${pool}; the option keepFollowers of haproxyRuntime() is ${shop.keepFollowers}`,
      { ref, provider: 'haproxy-runtime' },
    )
  }
  return undefined
}

async function terminate(
  shop: Workshop,
  change: Of<'terminate'>,
  ctx: CallContext,
): Promise<ChangeResult> {
  const { ref } = change
  const wanted = new Map([[ref.pool, new Set([ref.member])]])
  const load = async (): Promise<number> => {
    const sight = await shop.view.read(wanted, shop.channel, ctx.clock, ctx.signal)
    return [...sight.members.values()][0]?.row.active ?? 0
  }
  const before = await load()
  const command = shutdownSessions(ref)
  const reply = before === 0 ? '' : await shop.send(command, ctx.signal)
  if (reply !== '') return rejected(ref, refusal(ref, command, reply))
  let elsewhere = 0
  for (const other of shop.others) elsewhere += await cutOld(other, ref, ctx)
  const until = ctx.clock.now() + CUT_PATIENCE
  // Queued requests come next: less than before is the cut showing, the caller asks again for the rest.
  while (before > 0 && ctx.clock.now() < until) {
    if ((await load()) < before) break
    await pause(ctx.clock, CUT_LOOK, ctx.signal)
  }
  return { ref, status: 'applied', terminated: before + elsewhere, atMost: before > 0 }
}

/** An old process refuses `shutdown sessions server` (its proxies are disabled), single streams can be cut. */
async function cutOld(channel: Channel, ref: MemberRef, ctx: CallContext): Promise<number> {
  try {
    return await cutStreams(channel, ref, ctx)
  } catch (error) {
    if (error instanceof WorkerGone) return 0
    throw error
  }
}

async function cutStreams(channel: Channel, ref: MemberRef, ctx: CallContext): Promise<number> {
  const [reply = ''] = await channel.run(['show sess'], ctx.signal)
  const pointers = reply
    .split('\n')
    .filter((line) => {
      const words = line.split(' ')
      return words.includes(`be=${ref.pool}`) && words.includes(`srv=${ref.member}`)
    })
    .map((line) => line.slice(0, line.indexOf(':')))
    .filter((pointer) => pointer.startsWith('0x'))
  if (pointers.length === 0) return 0
  const replies = await channel.run(pointers.map(shutdownSession), ctx.signal)
  return replies.filter((text) => text === '').length
}
