import type { DrainableProvider, MemberRef, PresentReading } from '../../provider/contract.js'
import { toDrainableError, type DrainableError } from '../../provider/error.js'
import { refKey } from '../../provider/member-ref.js'
import { parseRoll, type RollOptions, type RollSettings } from '../roll/options.js'
import { checkTargets, refuseEarlier, refuseUnchecked } from '../roll/refuse.js'
import { findServers, type RollTarget, type Server } from '../roll/servers.js'
import { Spread, type ServerPlace } from '../roll/spread.js'
import { askedFirst } from '../../core/tickets/calls.js'
import type { PolicyData, RollData } from '../../core/tickets/ticket.js'
import type { Policy } from '../../core/calls/policy.js'
import { expectation, sort, toPlan, type DrainPlan, type Sorted } from './assemble.js'
import type { Judged } from './judge.js'
import { judgeAll } from './judge-all.js'
import { notesOf, refusal } from './words.js'

const ONLY_OF_A_ROLL = [
  'act',
  'canary',
  'maxUnavailable',
  'group',
  'waitHealthy',
  'onFailure',
  'lease',
  'leaseTtl',
] as const

type Given = Policy | Omit<RollOptions, 'act'>

/** Whether only a roll can take these arguments. */
export function isRoll(target: RollTarget, o: Given): o is Omit<RollOptions, 'act'> {
  const given = Object(o) as Partial<Record<string, unknown>>
  const mixed =
    Array.isArray(target) && target.some((one: unknown) => !('member' in (Object(one) as object)))
  return (
    mixed ||
    given['onTimeout'] === 'postpone' ||
    ONLY_OF_A_ROLL.some((name) => given[name] !== undefined)
  )
}

/** Makes the plan of a roll: the servers in their order, each as its drain would find it now. */
export async function planRoll(
  provider: DrainableProvider,
  target: RollTarget,
  o: Omit<RollOptions, 'act'>,
  subject: string,
): Promise<DrainPlan> {
  const settings = parseRoll({ ...o, act: () => Promise.resolve() }, subject)
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
  const places = placesOf(servers)
  const refs = servers.flatMap(({ members }) => members.map(({ ref }) => ref))
  const groupOf = (ref: MemberRef): string => String(places.get(refKey(ref)))
  // The ticket of this id is the roll's, checked above.
  const drains = { ...policy, tickets: undefined }
  const verdicts = await judgeAll(provider, refs, drains, groupOf, subject)
  const { judged } = verdicts
  const refused = [...own, ...judged.flatMap((one) => one.refused)]
  const found = new Map<string, { readonly reading: PresentReading; readonly judged: Judged }>()
  for (const one of judged)
    for (const reading of one.readings) found.set(refKey(reading.ref), { reading, judged: one })
  const sorted: Sorted = { steps: [], held: [] }
  const spread = Spread.of(provider, policy.clock, policy.data.keepReady, placeOf(servers))
  const short = new Map<number, DrainableError>()
  for (const [n, server] of servers.entries()) {
    const members = server.members.flatMap(({ ref }) => found.get(refKey(ref)) ?? [])
    const [all] = refused
    const floor = all === undefined ? await shortOf(server, members, spread, signal) : undefined
    if (floor !== undefined) short.set(n, floor)
    // The notes say once what refuses the whole roll.
    const unbegun = all === undefined ? floor?.message : `the roll is refused with ${all.code}`
    const title = `server ${n + 1} of ${servers.length}${n < data.canary ? ', canary' : ''}`
    for (const { reading, judged: one } of members)
      sort(sorted, reading, one, policy.data, { unbegun, title })
  }
  const { timeout } = policy.data
  const batches = batchesOf(servers.length, data)
  const least = batches * Math.max(0, ...judged.map((one) => one.least))
  const most = timeout === null ? null : batches * timeout
  const stop = policy.data.onMinimum === 'fail' ? stopOf([...short.keys()], data) : undefined
  const tried = [...servers.keys()].slice(
    0,
    stop === undefined ? servers.length : begunBy(stop, data),
  )
  const isBegun = policy.data.onMinimum === 'wait' || tried.some((n) => !short.has(n))
  refused.push(...(isBegun ? [] : tried.flatMap((n) => short.get(n) ?? [])))
  const notes = [
    outlineOf(servers, batches, data, policy.data.until),
    ...notesOf(verdicts, policy.data),
    ...own.map(refusal),
    ...(stop === undefined
      ? []
      : [`as things are now the roll stops at server ${stop + 1}, and no other one begins`]),
    ...(refused.length > 0
      ? []
      : [`${expectation(least, most)}, without what act and health checks take`]),
  ]
  return toPlan('roll', sorted, { refused, expected: { least, most }, notes })
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

function placesOf(servers: readonly Server[]): ReadonlyMap<string, number> {
  return new Map(
    servers.flatMap(({ members }, n) => members.map(({ ref }) => [refKey(ref), n] as const)),
  )
}

function placeOf(servers: readonly Server[]): readonly ServerPlace[] {
  return servers.map(({ address, members }) => ({ address, refs: members.map(({ ref }) => ref) }))
}

/** A server is drained as a whole: if the floor holds back one of its members, none is drained. */
async function shortOf(
  { address, members }: Server,
  own: readonly { readonly reading: PresentReading; readonly judged: Judged }[],
  spread: Spread,
  signal: AbortSignal,
): Promise<DrainableError | undefined> {
  for (const { reading, judged } of own) {
    const error = judged.short.get(refKey(reading.ref))
    if (error !== undefined) return error
  }
  return spread.ask({ address, refs: members.map(({ ref }) => ref) }, [], signal)
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
