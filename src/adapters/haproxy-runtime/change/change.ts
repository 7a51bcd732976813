import type { CarefulAdapter, ChangeOutcome, Sight } from '../../../kit/change.js'
import { isRefusal, refusal } from '../../../kit/errors.js'
import { keepServing } from '../../../kit/haproxy/followers.js'
import type { CallContext, Change, MemberRef } from '../../../provider/contract.js'
import { DrainableError, isDrainableError } from '../../../provider/error.js'
import { formatRef } from '../../../provider/member-ref.js'
import { setState } from '../codec/commands.js'
import { identityOf, ownState, type ServerState } from '../codec/state.js'
import { mayLead, readFollowers } from '../read/followers.js'
import { keyOf, wouldServe } from '../read/read.js'
import { AnotherProcess } from '../session/channel.js'
import { add, remove } from './membership.js'
import { restore } from './restore.js'
import { terminate } from './terminate.js'
import { channelOf, type Done, Half, must, type Of, type Tools } from './tools.js'

/** A server as just read, in the form that the rules of a change need. */
interface Found extends Sight {
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
      await learnFollowers(looked, changes.filter(({ kind }) => kind === 'hold').map(stateOf), ctx)
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

const PROVIDER = 'haproxy-runtime'

function toFound(state: ServerState | undefined): Found | undefined {
  if (state === undefined) return undefined
  const { address, port } = state
  return { identity: identityOf(state), own: ownState(state.admin), address, port, state }
}

/** A first hold asks who goes along: those that track the server. */
async function learnFollowers(
  tools: Tools,
  states: readonly (ServerState | undefined)[],
  ctx: CallContext,
): Promise<void> {
  const { process, followers, held } = tools
  const leads = states.some((state) => {
    if (state === undefined) return false
    const ref = { pool: state.pool, member: state.name }
    return !held.has(keyOf(ref)) && mayLead(state, process.view.tracks(ref))
  })
  await readFollowers(followers, process.scope, leads, channelOf(tools), ctx)
}

async function hold(
  tools: Tools,
  { ref, to }: Of<'hold'>,
  found: ServerState,
  ctx: CallContext,
): Promise<undefined> {
  const { held, settings, point } = tools
  const isFirst = !held.has(keyOf(ref))
  const blindness = point.unseen.blindness()
  if (isFirst && settings.oldWorkers === 'wait' && blindness?.refuses === true) {
    const words = `${formatRef(ref)} was not drained: ${blindness.why}`
    throw refusal('UNSUPPORTED', words, { provider: PROVIDER, ref })
  }
  if (isFirst && ownState(found.admin) === 'ready') await keepFollowers(tools, ref, ctx)
  held.add(keyOf(ref))
  try {
    await must(tools, ref, setState(ref, to), ctx)
  } catch (error) {
    if (isFirst && isDrainableError(error) && isRefusal(error)) held.delete(keyOf(ref))
    throw error
  }
}

/** @throws `POOL_AT_MINIMUM` if the servers that track this one would leave too few in their backends */
async function keepFollowers(tools: Tools, ref: MemberRef, ctx: CallContext): Promise<void> {
  const followers = tools.followers.of(ref)
  const { keepFollowers: least } = tools.settings
  if (followers.length === 0 || least === 0) return
  const going = new Map<string, Set<string>>()
  for (const { pool, member } of [ref, ...followers])
    going.set(pool, (going.get(pool) ?? new Set()).add(member))
  const sight = await tools.process.view.read(going, channelOf(tools), ctx)
  const by = { factory: 'haproxyRuntime', provider: PROVIDER, least }
  keepServing(ref, followers, by, (pool) => {
    const serving = sight.pools.get(pool)?.serving ?? 0
    const lost = [...sight.members.values()].filter(
      (seen) => seen.ref.pool === pool && wouldServe(seen),
    ).length
    return { serving, lost }
  })
}
