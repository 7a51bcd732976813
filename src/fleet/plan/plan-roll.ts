import type { DrainableProvider, MemberRef } from '../../provider/contract.js'
import { toDrainableError, type DrainableError } from '../../provider/error.js'
import { refKey } from '../../provider/member-ref.js'
import { readGiven } from '../../provider/options.js'
import { parseRoll, rollNames, type RollOptions, type RollSettings } from '../roll/options.js'
import { checkTargets, refuseEarlier, refuseUnchecked } from '../roll/refuse.js'
import { findServers, type RollTarget, type Server } from '../roll/servers.js'
import { Spread, type ServerPlace } from '../roll/spread.js'
import { askedFirst } from '../../core/tickets/calls.js'
import type { PolicyData, RollData } from '../../core/tickets/ticket.js'
import { policyNames, type Policy } from '../../core/calls/policy.js'
import {
  expectation,
  notesOf,
  planMember,
  refusal,
  toPlan,
  type DrainPlan,
  type Planned,
} from './assemble.js'
import { judge, type JudgedMember } from './judge.js'

type Given = Policy | Omit<RollOptions, 'act'>

/** Whether only a roll can take these arguments. */
export function isRoll(
  target: RollTarget,
  o: Given,
  subject: string,
): o is Omit<RollOptions, 'act'> {
  return readGiven(`${subject}: the options`, () => {
    const given = Object(o) as Partial<Record<string, unknown>>
    const isMixed =
      Array.isArray(target) && target.some((one: unknown) => !('member' in (Object(one) as object)))
    const ofDrain = policyNames()
    const own = rollNames().filter((name) => !ofDrain.includes(name))
    const hasOwn = own.some((name) => given[name] !== undefined)
    return isMixed || hasOwn || given['onTimeout'] === 'postpone'
  })
}

/** Makes the plan of a roll: the servers in their order, each as its drain would find it now. */
export async function planRoll(
  provider: DrainableProvider,
  target: RollTarget,
  o: Omit<RollOptions, 'act'>,
  subject: string,
): Promise<DrainPlan> {
  const { act = () => Promise.resolve() } = o as Partial<RollOptions>
  const settings = parseRoll({ ...o, act }, subject)
  const { policy } = settings
  const signal = policy.signal ?? new AbortController().signal
  signal.throwIfAborted()
  const targets = checkTargets(provider, target, subject)
  const { clock } = policy
  const { grouping } = settings
  const search = { clock, signal, grouping, subject, patience: 0, say: () => undefined }
  const servers = await findServers(provider, targets, search)
  const data = settings.planFor(servers.length, subject)
  const own = await refusalsOf(servers, settings, data, subject)
  const places = new Map(
    servers.flatMap(({ members }, n) => members.map(({ ref }) => [refKey(ref), n] as const)),
  )
  const placeOf = (ref: MemberRef): string => String(places.get(refKey(ref)))
  const refs = servers.flatMap(({ members }) => members.map(({ ref }) => ref))
  // The ticket of this id is the roll's, checked above.
  const drains = { ...policy, tickets: undefined }
  const judged = await judge(provider, refs, drains, placeOf, subject)
  const byServer = Map.groupBy(judged.members, ({ reading }) => placeOf(reading.ref))
  const refused = [...own, ...judged.refused]
  const [all] = refused
  const spread = new Spread(provider, clock, policy.data.keepReady, servers.map(toPlace))
  const planned: Planned[] = []
  const short = new Map<number, DrainableError>()
  for (const [n, server] of servers.entries()) {
    const members = byServer.get(String(n)) ?? []
    const floor = all === undefined ? await shortOf(server, members, spread, signal) : undefined
    if (floor !== undefined) short.set(n, floor)
    // The notes say once what refuses the whole roll.
    const unbegun = all === undefined ? floor?.message : `the roll is refused with ${all.code}`
    const title = `server ${n + 1} of ${servers.length}${n < data.canary ? ', canary' : ''}`
    for (const member of members) {
      const said = member.short === floor ? member : { ...member, short: undefined }
      planned.push(planMember(said, policy.data, unbegun, title))
    }
  }
  const { timeout, onMinimum, until } = policy.data
  const batches = batchesOf(servers.length, data)
  const least = batches * Math.max(0, ...judged.members.map((one) => one.least))
  const most = timeout === null ? null : batches * timeout
  const stop = onMinimum === 'fail' ? stopOf([...short.keys()], data) : undefined
  const last = stop === undefined ? servers.length : begunBy(stop, data)
  const tried = [...servers.keys()].slice(0, last)
  const isBegun = onMinimum === 'wait' || tried.some((n) => !short.has(n))
  if (!isBegun) refused.push(...tried.flatMap((n) => short.get(n) ?? []))
  const notes = [
    outlineOf(servers, batches, data, until),
    ...notesOf(judged, policy.data),
    ...own.map(refusal),
    ...(stop === undefined
      ? []
      : [`as things are now the roll stops at server ${stop + 1}, and no other one begins`]),
    ...(refused.length > 0
      ? []
      : [`${expectation(least, most)}, without what act and health checks take`]),
  ]
  return toPlan('roll', planned, { refused, expected: { least, most }, notes })
}

/** The errors that would refuse the roll before its first server. */
async function refusalsOf(
  servers: readonly Server[],
  { policy }: RollSettings,
  data: RollData['plan'],
  subject: string,
): Promise<readonly DrainableError[]> {
  const refused: DrainableError[] = []
  const attempt = async (ask: () => unknown): Promise<void> => {
    try {
      await ask()
    } catch (thrown) {
      policy.signal?.throwIfAborted()
      refused.push(toDrainableError(thrown, 'plan', subject))
    }
  }
  await attempt(() => refuseEarlier(policy, policy.id, askedFirst(policy), subject))
  await attempt(() => refuseUnchecked(servers, data, subject))
  return refused
}

function toPlace({ address, members }: Server): ServerPlace {
  return { address, refs: members.map(({ ref }) => ref) }
}

/**
 * A server is drained as a whole: if the floor holds back one of its members, none is drained. As in a roll, servers are
 * counted before members: the refusal says that they can be taken one by one.
 */
async function shortOf(
  server: Server,
  members: readonly JudgedMember[],
  spread: Spread,
  signal: AbortSignal,
): Promise<DrainableError | undefined> {
  const member = members.find(({ short }) => short !== undefined)
  return (await spread.ask(toPlace(server), [], signal)) ?? member?.short
}

/** At which server the roll would stop, as things are now: those that the floor holds back fail. */
function stopOf(
  short: readonly number[],
  { canary, maxFailed }: RollData['plan'],
): number | undefined {
  return short.find((n, before) => before + 1 > (n < canary ? 0 : (maxFailed ?? Infinity)))
}

/** How many servers may have begun when the roll stops at one: those that go beside it, canaries among themselves. */
function begunBy(stop: number, { canary, maxUnavailable }: RollData['plan']): number {
  const beside = stop + maxUnavailable
  return stop < canary ? Math.min(canary, beside) : beside
}

/** The number of batches: canaries first, then as many servers at once as allowed. */
function batchesOf(size: number, { canary, maxUnavailable }: RollData['plan']): number {
  return Math.ceil(canary / maxUnavailable) + Math.ceil((size - canary) / maxUnavailable)
}

function outlineOf(
  servers: readonly Server[],
  batches: number,
  data: RollData['plan'],
  until: PolicyData['until'],
): string {
  const { canary, maxUnavailable, health } = data
  const first = canary > 0 ? `, ${canary} first` : ''
  const after = afterAct(servers, health)
  return `${count(servers.length, 'server')} in ${count(batches, 'batch', 'batches')}, ${maxUnavailable} at once${first}; after its drain each is ${until === 'removed' ? 'taken out of its pools, and acted on' : `acted on${after}`}`
}

/** What comes after `act`: a member that is out already is left out. */
function afterAct(servers: readonly Server[], { by }: RollData['plan']['health']): string {
  const opened = `made ready${by === 'nobody' ? '' : ' and seen healthy'}`
  const members = servers.flatMap((server) => server.members)
  const out = members.filter(({ own }) => own === 'drain' || own === 'maint').length
  if (out === 0) return `, ${opened}`
  if (out === members.length) return ' and left out, as it was found'
  return `; ${count(out, 'member')} already out ${out === 1 ? 'stays' : 'stay'} out, the others are ${opened}`
}

function count(n: number, one: string, many = `${one}s`): string {
  return `${n} ${n === 1 ? one : many}`
}
