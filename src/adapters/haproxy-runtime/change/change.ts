import type { CarefulAdapter, ChangeOutcome, SeenMember } from '../../../kit/change.js'
import { refusal } from '../../../kit/errors.js'
import { keepServing } from '../../../kit/haproxy/followers.js'
import { until } from '../../../kit/until.js'
import type { CallContext, Change, MemberRef } from '../../../provider/contract.js'
import { DrainableError } from '../../../provider/error.js'
import { formatRef } from '../../../provider/member-ref.js'
import {
  refusal as refusalOf,
  setState,
  SHOW_STREAM_LINES,
  shutdownSession,
  shutdownSessions,
} from '../codec/commands.js'
import { pointersOf } from '../codec/streams.js'
import { identityOf, ownState, type ServerState } from '../codec/state.js'
import { wouldServe } from '../read/shown.js'
import { AnotherProcess, type Channel, WorkerGone } from '../session/channel.js'
import type { OldProcess } from '../session/processes.js'
import { add, remove } from './membership.js'
import { restore } from './restore.js'
import { channelOf, type Done, Half, must, type Of, type Tools } from './tools.js'
import { PROVIDER } from '../name.js'

/** A server as just read, in the form that the rules of a change need. */
interface Found extends SeenMember {
  readonly state: ServerState
}

/** Makes changes by the rules of all adapters: how to look, and what to send for each kind. */
export function changesOf(given: Omit<Tools, 'facts' | 'process'>): CarefulAdapter<Found> {
  let looked: Tools | undefined
  const sent = async ({ ref }: Change, work: (tools: Tools) => Done): Promise<ChangeOutcome> => {
    if (looked === undefined) throw new TypeError('a change without a look')
    try {
      return (await work(looked)) ?? { status: 'applied' }
    } catch (cause) {
      if (cause instanceof Half) return { status: 'unknown', error: cause.error }
      if (!(cause instanceof AnotherProcess)) throw cause
      // It is not known whether the process that was read has carried it out.
      const data = { ref, provider: PROVIDER, cause }
      const words = `${given.point.label} was reloaded during the change`
      return { status: 'unknown', error: new DrainableError('CONFLICT', words, data) }
    }
  }
  return {
    provider: PROVIDER,
    absent: ({ ref }) =>
      `backend ${ref.pool} has no server ${ref.member}, check the names against the configuration`,
    async look(changes, ctx) {
      const facts = await given.point.connect(ctx)
      const pools = new Set(changes.map(({ ref }) => ref.pool))
      const { process, states } = await given.point.states(pools, ctx)
      looked = { ...given, facts, process }
      const stateOf = ({ ref }: Change): ServerState | undefined =>
        states.get(ref.pool)?.get(ref.member)
      // A first hold asks who goes along: those that track the server.
      const isFirst = ({ kind, ref }: Change): boolean => kind === 'hold' && !given.held.has(ref)
      if (changes.some(isFirst)) await given.point.learnFollowers(process, ctx)
      return (change) => toFound(stateOf(change))
    },
    hold: (change, { state }, ctx) => sent(change, (tools) => hold(tools, change, state, ctx)),
    restore: (change, { state }, ctx) =>
      sent(change, (tools) => restore(tools, change, state, ctx)),
    terminate: (change, _, ctx) => sent(change, (tools) => terminate(tools, change, ctx)),
    remove: (change, { state }, ctx) => sent(change, (tools) => remove(tools, change, state, ctx)),
    add: (change, _, ctx) => sent(change, (tools) => add(tools, change, ctx)),
  }
}

function toFound(state: ServerState | undefined): Found | undefined {
  if (state === undefined) return undefined
  const { address, port } = state
  return { identity: identityOf(state), own: ownState(state.admin), address, port, state }
}

async function hold(
  tools: Tools,
  { ref, to }: Of<'hold'>,
  found: ServerState,
  ctx: CallContext,
): Promise<undefined> {
  const { held, settings, point } = tools
  const isFirst = !held.has(ref)
  const blindness = point.unseen.blindness()
  if (isFirst && settings.oldWorkers === 'wait' && blindness?.refuses === true) {
    const words = `${formatRef(ref)} was not drained: ${blindness.why}`
    throw refusal('UNSUPPORTED', words, { provider: PROVIDER, ref })
  }
  if (isFirst && ownState(found.admin) === 'ready') await keepFollowers(tools, ref, ctx)
  held.add(ref)
  await must(tools, ref, setState(ref, to), ctx)
}

/** @throws `POOL_AT_MINIMUM` if the servers that track this one would leave too few in their backends */
async function keepFollowers(tools: Tools, ref: MemberRef, ctx: CallContext): Promise<void> {
  const followers = tools.point.followers.of(ref)
  const { keepFollowers: least } = tools.settings
  if (followers.length === 0 || least === 0) return
  const going = new Map<string, Set<string>>()
  for (const { pool, member } of [ref, ...followers])
    going.set(pool, (going.get(pool) ?? new Set()).add(member))
  const shown = await tools.process.view.read(going, channelOf(tools), ctx)
  const by = { factory: 'haproxyRuntime', provider: PROVIDER, least }
  keepServing(ref, followers, by, (pool) => {
    const serving = shown.pools.get(pool)?.serving ?? 0
    const lost = [...shown.members.values()].filter(
      (seen) => seen.ref.pool === pool && wouldServe(seen),
    ).length
    return { serving, lost }
  })
}

/** How long a cut can take to show in the counts, and the pause between two looks, in milliseconds. */
const SHOWS = { every: 20, within: 1_000 }

/** Cuts what is in flight, in every process that can be reached. */
export async function terminate(
  tools: Tools,
  { ref }: Of<'terminate'>,
  ctx: CallContext,
): Promise<{ status: 'applied'; terminated: number; atMost: boolean }> {
  const { point, process } = tools
  const channel = channelOf(tools)
  const wanted = new Map([[ref.pool, new Set([ref.member])]])
  const load = async (): Promise<number> => {
    const shown = await process.view.read(wanted, channel, ctx)
    return [...shown.members.values()][0]?.row.active ?? 0
  }
  const before = await load()
  const command = shutdownSessions(ref)
  const reply = before === 0 ? '' : await point.change(process, command, ctx)
  if (reply !== '') throw refusalOf(ref, command, reply)
  let elsewhere = await cut(await process.offRow.list(ref, channel, ctx), channel, ctx)
  for (const old of point.oldProcesses()) elsewhere += await cutOld(old, ref, ctx)
  // Queued requests become active next: a lower count shows the cut, and the caller asks again for the rest.
  const isLower = async (): Promise<true | undefined> => (await load()) < before || undefined
  if (before > 0) await until(ctx, SHOWS, isLower)
  return { status: 'applied', terminated: before + elsewhere, atMost: before > 0 }
}

/**
 * Cuts in an old process: it refuses `shutdown sessions server` because its proxies are disabled, but single streams
 * can be cut.
 */
async function cutOld(
  { process: { offRow }, channel }: OldProcess,
  ref: MemberRef,
  ctx: CallContext,
): Promise<number> {
  try {
    const pointers = [...(await offRow.list(ref, channel, ctx))]
    if (offRow.isOwn(ref)) {
      const { replies } = await channel.run([SHOW_STREAM_LINES], ctx)
      pointers.push(...pointersOf(replies[0] ?? '', ref))
    }
    return await cut(pointers, channel, ctx)
  } catch (error) {
    if (error instanceof WorkerGone) return 0
    throw error
  }
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
