import { formatAddress } from '../provider/address.js'
import type { MemberRef, PresentReading, Snapshot } from '../provider/contract.js'
import type { DesiredMember, HeldBack, Plan, PlannedChange } from '../provider/desired.js'
import { matchPool, PoolMembers } from './match-members.js'
import { planAdd, planMember, ReadyFloor, refOf } from './plan-member.js'
import {
  answer,
  checkPlanOptions,
  checkSnapshot,
  SUBJECT,
  type PlanOptions,
  type Wish,
} from './plan.js'
import * as s from './shape.js'
import { desiredShape } from './to-desired.js'

/**
 * Compares desired members with a balancer's snapshot and plans the changes: hold, make ready again, add, remove.
 * Pure and level-triggered: call it again with the next snapshot.
 *
 * Members are matched by address and port; all spellings of an IPv6 address are equal, and addresses in different
 * route domains are different. The snapshot must contain all members (`observe('all')`).
 *
 * - It touches only the named `pools`, and of their members only those that `owns` claims.
 * - A member that still serves is held in drain. A member that does not answer, or whose endpoint vanished, is held
 *   as gone: in maint if that keeps established work, because a dead server in drain answers its sticky clients with
 *   503. A member is removed only after it was held and proved idle.
 * - A name that a member at another address has blocks no address: the endpoint is added under another name that
 *   begins the same. A pod of a StatefulSet comes back under its name.
 * - An empty or unsynced list changes nothing unless an option allows it.
 * - A hold is only the beginning of a drain. Carry out a restore as `ready()` does: out of maint through drain, so
 *   that the first health check has passed before the member opens.
 *
 * @throws `INVALID_OPTIONS` with the path, for input of a shape the types do not allow
 *
 * @example
 * ```ts
 * import { mapEndpoints, planChanges, formatPlan, toDesired } from 'drainable/endpoints'
 * import type { Snapshot } from 'drainable/provider'
 *
 * export function dryRun(snapshot: Snapshot): string {
 *   const decisions = mapEndpoints([{ addresses: ['10.0.0.1'], port: 80 }])
 *   const name = ({ address }: { address: string }) => `ctl-${address}`
 *   const desired = toDesired(decisions, { pool: 'web', name })
 *   const owns = (one: { ref: { member: string } }) => one.ref.member.startsWith('ctl-')
 *   return formatPlan(planChanges(desired, snapshot, { pools: ['web'], owns }))
 * }
 * ```
 */
export function planChanges(
  desired: readonly DesiredMember[],
  snapshot: Snapshot,
  options: PlanOptions,
): Plan {
  checkPlanOptions(options)
  s.check(SUBJECT, 'desired', desired, desiredShape(options.pools))
  const { changes, steps, held } = planWithWishes(desired, snapshot, options)
  return { changes, steps, held }
}

/** A plan, and what it was made of: for a loop that has drains of its own under way. */
export interface WishedPlan extends Plan {
  /** What is to be down, whatever state it is in. */
  readonly down: readonly Wish[]
  /** The members by pool that nothing is said about, and why: their list is empty or not complete. */
  readonly unsaid: ReadonlyMap<string, string>
  /** The pools that the balancer does not have, and in what words. */
  readonly missing: ReadonlyMap<string, string>
  /** What is asked for, by the ref in `held`, where no wish can be followed: it is foreign, or its pool is missing. */
  readonly asked: ReadonlyMap<MemberRef, 'drain' | 'absent'>
}

/** The same as {@link planChanges}, with its wishes. Members and options were checked when they were given. */
export function planWithWishes(
  desired: readonly DesiredMember[],
  snapshot: Snapshot,
  options: PlanOptions,
  noPool = (pool: string) => `there is no pool ${pool}`,
): WishedPlan {
  checkSnapshot(snapshot)
  const findings: Findings = {
    steps: [],
    held: [],
    down: [],
    unsaid: new Map(),
    missing: new Map(),
    asked: new Map(),
  }
  const { pools } = options
  const byPool = pools.length === 1 ? undefined : Map.groupBy(desired, ({ pool }) => pool)
  for (const [pool, balancers] of membersByPool(snapshot, pools)) {
    const own = byPool === undefined ? desired : (byPool.get(pool) ?? [])
    if (balancers.size === 0) {
      const reason = noPool(pool)
      findings.missing.set(pool, reason)
      for (const one of own) holdBack({ ref: refOf(one), reason }, one.state, findings)
    }
    for (const [balancer, readings] of balancers)
      planPool({ pool, balancer, desired: own, readings }, options, findings)
  }
  return { ...findings, changes: findings.steps.map(({ change }) => change) }
}

/** What is found out, member by member. */
interface Findings {
  readonly steps: PlannedChange[]
  readonly held: HeldBack[]
  readonly down: Wish[]
  readonly unsaid: Map<string, string>
  readonly missing: Map<string, string>
  readonly asked: Map<MemberRef, 'drain' | 'absent'>
}

/** Says why a member is left alone that no wish is followed for. */
function holdBack(one: HeldBack, state: DesiredMember['state'], { held, asked }: Findings): void {
  held.push(one)
  if (state !== 'serve') asked.set(one.ref, state)
}

/** The members of each pool by balancer; `undefined` stands for the only one. */
type Balancers = Map<string | undefined, PresentReading[]>

/** Each of the pools, in their order, with the balancers that have it. */
function membersByPool(
  { pools, readings }: Snapshot,
  named: readonly string[],
): ReadonlyMap<string, Balancers> {
  const found = new Map(named.map((pool) => [pool, new Map() as Balancers]))
  for (const { pool, balancer } of pools) {
    const balancers = found.get(pool)
    if (balancers?.has(balancer) === false) balancers.set(balancer, [])
  }
  for (const reading of readings) {
    const { pool, balancer } = reading.ref
    const balancers = found.get(pool)
    if (!reading.present || balancers === undefined) continue
    const members = balancers.get(balancer)
    if (members === undefined) balancers.set(balancer, [reading])
    else members.push(reading)
  }
  return found
}

/** One pool of one balancer. */
interface PoolInput {
  readonly pool: string
  readonly balancer: string | undefined
  readonly desired: readonly DesiredMember[]
  readonly readings: readonly PresentReading[]
}

function planPool(
  { pool, balancer, desired, readings }: PoolInput,
  options: PlanOptions,
  findings: Findings,
): void {
  const nothing = whyNothing(desired, options)
  if (nothing !== undefined) {
    findings.unsaid.set(pool, nothing)
    for (const { ref } of readings) findings.held.push({ ref, reason: nothing })
    return
  }
  const members = new PoolMembers(readings)
  const { wanted, missing } = matchPool(desired, members)
  const wishes = wishesOf(readings, wanted, options, findings)
  const floor = new ReadyFloor(readings, wishes, options, desired.length === 0)
  const add = (one: PlannedChange | HeldBack | undefined): void => {
    if (one === undefined) return
    if ('change' in one) findings.steps.push(one)
    else findings.held.push(one)
  }
  for (const state of ORDER) {
    for (const wish of wishes) if (wish.state === state) add(planMember(wish, floor, options))
  }
  for (const one of missing) add(planAdd(one, balancer, members, options))
}

/** What is gone keeps nothing ready, so it goes first; then drains in the order they were asked for. */
const ORDER: readonly Wish['state'][] = ['serve', 'gone', 'drain']

function whyNothing(desired: readonly DesiredMember[], options: PlanOptions): string | undefined {
  if (options.synced === false)
    return 'the list of endpoints is not complete yet: nothing is changed'
  if (desired.length > 0 || options.allowEmpty === true) return undefined
  return 'the list of endpoints is empty, which may be an empty cache: nothing is changed without allowEmpty'
}

/** What is to be done about members that `owns` claims; what is left alone is reported. */
function wishesOf(
  readings: readonly PresentReading[],
  wanted: readonly (DesiredMember | undefined)[],
  { owns }: PlanOptions,
  findings: Findings,
): readonly Wish[] {
  const { held, down } = findings
  const wishes: Wish[] = []
  let at = 0
  for (const reading of readings) {
    const one = wanted[at++]
    const { ref, address = '', own, inherited = 'ready' } = reading
    if (one === undefined && address === '') {
      held.push({ ref, reason: UNADDRESSED })
      continue
    }
    const ours = answer('owns', owns(reading), reading)
    // Nearly all of them, nearly always.
    if (ours && one?.state === 'serve' && own === 'ready' && inherited === 'ready') continue
    const wish = wishOf(reading, one)
    if (!ours) holdBack(foreign(wish), askedOf(wish), findings)
    else {
      wishes.push(wish)
      if (wish.state !== 'serve') down.push(wish)
    }
  }
  return wishes
}

const UNADDRESSED =
  'the snapshot has no address for it, so no endpoint can be told to be it: it is left alone'

function wishOf(reading: PresentReading, one: DesiredMember | undefined): Wish {
  if (one === undefined) {
    const at = formatAddress(reading.address ?? '', reading.port)
    const reason = `no endpoint has its address ${at} any more`
    return { reading, state: 'gone', reason, remove: true }
  }
  const { state, serving = true, reason = state } = one
  if (state === 'serve') return { reading, state, reason, remove: false }
  const isDrain = state === 'drain' && serving
  return { reading, state: isDrain ? 'drain' : 'gone', reason, remove: state === 'absent' }
}

/** What a wish asks for, in the words of a set. */
export function askedOf({ state, remove }: Wish): DesiredMember['state'] {
  if (state === 'serve') return 'serve'
  return remove ? 'absent' : 'drain'
}

function foreign({ reading: { ref, own }, state, reason }: Wish): HeldBack {
  if ((state === 'serve') === (own === 'ready'))
    return { ref, reason: 'foreign: left alone', asWished: true }
  const left = `foreign: left alone in ${own}, although: ${reason}; only what owns claims is changed`
  return { ref, reason: left }
}
