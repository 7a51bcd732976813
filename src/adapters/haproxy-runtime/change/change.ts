import type { CarefulAdapter, Sight } from '../../../kit/change.js'
import { refusal } from '../../../kit/errors.js'
import { pause } from '../../../provider/clock.js'
import type { CallContext, Change, ChangeResult, MemberRef } from '../../../provider/contract.js'
import { DrainableError } from '../../../provider/error.js'
import { formatRef } from '../../../provider/member-ref.js'
import { AnotherProcess, type Channel, WorkerGone } from '../session/channel.js'
import {
  refusal as refused,
  setState,
  SHOW_STREAM_LINES,
  shutdownSession,
  shutdownSessions,
} from '../codec/commands.js'
import { identityOf, ownState, type ServerState } from '../codec/state.js'
import { listStrays } from '../session/strays.js'
import type { OldChannel } from '../session/other-processes.js'
import { add, remove } from './membership.js'
import { wouldServe } from '../read/read.js'
import { restore } from './restore.js'
import { rejected, tell, type Of, type Workshop } from './workshop.js'

/** How long a cut can take to show in the counts, and the pause between two looks, in milliseconds. */
const CUT_PATIENCE = 1_000
const CUT_LOOK = 20
/** A server as just read, in the form that the rules of a change need. */
export interface Found extends Sight {
  readonly state: ServerState
}

/** Makes it. */
export function toFound(state: ServerState): Found {
  const { address, port } = state
  return {
    identity: identityOf(state),
    own: ownState(state.admin),
    address,
    port,
    state,
  }
}

/** The commands for each kind of change. */
export function sends(
  shop: () => Workshop,
  instance: string,
): Omit<CarefulAdapter<Found>, 'provider' | 'look'> {
  const guarded = async (
    { ref }: Change,
    work: () => Promise<ChangeResult>,
  ): Promise<ChangeResult> => {
    try {
      return await work()
    } catch (cause) {
      if (!(cause instanceof AnotherProcess)) throw cause
      // It is not known whether the process that was read has carried it out.
      const data = { ref, provider: 'haproxy-runtime', cause }
      const words = `${instance} was reloaded during the change`
      return { ref, status: 'unknown', error: new DrainableError('CONFLICT', words, data) }
    }
  }
  return {
    absent: ({ ref }) =>
      `backend ${ref.pool} has no server ${ref.member}, check the names against the configuration`,
    hold: (change, { state }, ctx) => guarded(change, () => hold(shop(), change, state, ctx)),
    restore: (change, { state }, ctx) => guarded(change, () => restore(shop(), change, state, ctx)),
    terminate: (change, _, ctx) => guarded(change, () => terminate(shop(), change, ctx)),
    remove: (change, { state }, ctx) => guarded(change, () => remove(shop(), change, state, ctx)),
    add: (change, _, ctx) => guarded(change, () => add(shop(), change, ctx)),
  }
}

async function hold(
  shop: Workshop,
  change: Of<'hold'>,
  found: ServerState,
  ctx: CallContext,
): Promise<ChangeResult> {
  const { ref, to } = change
  const first = !shop.isHeld(ref)
  if (first && shop.unseen !== undefined) {
    const words = `${formatRef(ref)} was not drained: ${shop.unseen}`
    return rejected(ref, refusal('UNSUPPORTED', words, { provider: 'haproxy-runtime', ref }))
  }
  const short =
    first && ownState(found.admin) === 'ready' ? await leavesTooFew(shop, ref, ctx) : undefined
  if (short !== undefined) return rejected(ref, short)
  shop.passed(ref)
  const command = setState(ref, to)
  const reply = await tell(shop, ref, command, ctx)
  return reply === '' ? { ref, status: 'applied' } : rejected(ref, refused(ref, command, reply))
}

/** Why a drain is refused if the servers that track this one would leave too few in their backends. */
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
  const sight = await shop.view.read(going, shop.channel, ctx)
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
    const sight = await shop.view.read(wanted, shop.channel, ctx)
    return [...sight.members.values()][0]?.row.active ?? 0
  }
  const before = await load()
  const command = shutdownSessions(ref)
  const reply = before === 0 ? '' : await shop.send(command, ctx)
  if (reply !== '') return rejected(ref, refused(ref, command, reply))
  const moved = shop.hasStrays(ref) ? shop.view.known(ref) : undefined
  let elsewhere = await cutStrays({ channel: shop.channel, replaced: undefined }, ref, moved, ctx)
  for (const other of shop.others) elsewhere += await cutOld(shop, other, ref, moved, ctx)
  const until = ctx.clock.now() + CUT_PATIENCE
  // Queued requests become active next: a lower count shows the cut, and the caller asks again for the rest.
  while (before > 0 && ctx.clock.now() < until) {
    if ((await load()) < before) break
    await pause(ctx.clock, CUT_LOOK, ctx.signal)
  }
  return { ref, status: 'applied', terminated: before + elsewhere, atMost: before > 0 }
}

/**
 * Cuts in an old process: it refuses `shutdown sessions server` because its proxies are disabled, but single streams
 * can be cut.
 */
async function cutOld(
  { channel: serves }: Workshop,
  { channel, namesOf }: OldChannel,
  ref: MemberRef,
  moved: ServerState | undefined,
  ctx: CallContext,
): Promise<number> {
  try {
    const names = namesOf(ref)
    let cut = 0
    for (const name of names.length === 0 ? [ref] : names)
      cut += await cutStreams(channel, name, ctx)
    return cut + (await cutStrays({ channel, replaced: { names, serves } }, ref, moved, ctx))
  } catch (error) {
    if (error instanceof WorkerGone) return 0
    throw error
  }
}

/** Cuts what is at its address and belongs to another server. */
async function cutStrays(
  at: Parameters<typeof listStrays>[2],
  ref: MemberRef,
  moved: ServerState | undefined,
  ctx: CallContext,
): Promise<number> {
  if (moved === undefined) return 0
  return cut((await listStrays(ref, moved, at, ctx)) ?? [], at.channel, ctx)
}

async function cutStreams(channel: Channel, ref: MemberRef, ctx: CallContext): Promise<number> {
  const {
    replies: [reply = ''],
  } = await channel.run([SHOW_STREAM_LINES], ctx)
  const pointers = reply
    .split('\n')
    .filter((line) => {
      const words = line.split(' ')
      return words.includes(`be=${ref.pool}`) && words.includes(`srv=${ref.member}`)
    })
    .map((line) => line.slice(0, line.indexOf(':')))
    .filter((pointer) => pointer.startsWith('0x'))
  return cut(pointers, channel, ctx)
}

async function cut(
  pointers: readonly string[],
  channel: Channel,
  ctx: CallContext,
): Promise<number> {
  if (pointers.length === 0) return 0
  const { replies } = await channel.run(pointers.map(shutdownSession), ctx)
  return replies.filter((text) => text === '').length
}
