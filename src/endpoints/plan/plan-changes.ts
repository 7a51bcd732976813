import type { DesiredMember } from '../../provider/desired.js'
import type { PresentReading, Snapshot } from '../../provider/contract.js'
import { formatAddress } from '../address.js'
import { check, checkOptions } from '../shape.js'
import { matchPool, Names } from './match-members.js'
import type { HeldBack, Plan, PlannedChange, PlanOptions, Wish } from './plan.js'
import { planAdd, refOf } from './plan-add.js'
import { planMember } from './plan-member.js'
import { answer, desiredShape, planOptionShapes, snapshotShape, SUBJECT } from './plan-shapes.js'
import { ReadyFloor } from './ready-floor.js'

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
  checkOptions(SUBJECT, options, planOptionShapes())
  check(SUBJECT, 'desired', desired, desiredShape(options.pools))
  const { changes, steps, held } = planWithWishes(desired, snapshot, options)
  return { changes, steps, held }
}

/** A plan, and what it was made of: for a loop that has drains of its own under way. */
export interface WishedPlan extends Plan {
  /** What is to be down, whatever state it is in. */
  readonly down: readonly Wish[]
  /** The members by pool that nothing is said about, and why: their list is empty or not complete. */
  readonly unsaid: ReadonlyMap<string, string>
}

/** The same as {@link planChanges}, with its wishes. Members and options were checked when they were given. */
export function planWithWishes(
  desired: readonly DesiredMember[],
  snapshot: Snapshot,
  options: PlanOptions,
): WishedPlan {
  check(SUBJECT, 'snapshot', snapshot, snapshotShape())
  const findings = new Findings()
  const [only, ...more] = options.pools
  const wanted =
    only !== undefined && more.length === 0
      ? new Map([[only, desired]])
      : Map.groupBy(desired, ({ pool }) => pool)
  const found = membersByPool(snapshot, new Set(options.pools))
  for (const [pool, balancers] of found) {
    const own = wanted.get(pool) ?? []
    if (balancers.size === 0) {
      for (const one of own)
        findings.hold({ ref: refOf(one), reason: `there is no pool ${pool} in the snapshot` })
    }
    for (const [balancer, readings] of balancers)
      planPool({ pool, desired: own, readings, balancer, options }, findings)
  }
  return findings.plan()
}

/** The members of each pool by balancer; `undefined` stands for the only one. */
type Balancers = Map<string | undefined, PresentReading[]>

/** Each of the pools, in their order, with the balancers that have it. */
function membersByPool(
  { pools, readings }: Snapshot,
  named: ReadonlySet<string>,
): ReadonlyMap<string, Balancers> {
  const found = new Map<string, Balancers>()
  for (const pool of named) found.set(pool, new Map())
  for (const { pool, balancer } of pools) {
    const balancers = found.get(pool)
    if (balancers?.has(balancer) === false) balancers.set(balancer, [])
  }
  for (const reading of readings) {
    const balancers = found.get(reading.ref.pool)
    if (!reading.present || balancers === undefined) continue
    const { balancer } = reading.ref
    const members = balancers.get(balancer)
    if (members === undefined) balancers.set(balancer, [reading])
    else members.push(reading)
  }
  return found
}

/** What is found out, member by member. */
class Findings {
  readonly #steps: PlannedChange[] = []
  readonly #held: HeldBack[] = []
  readonly #down: Wish[] = []
  readonly #unsaid = new Map<string, string>()

  wish(one: Wish): void {
    if (one.state !== 'serve') this.#down.push(one)
  }

  say(pool: string, nothing: string): void {
    this.#unsaid.set(pool, nothing)
  }

  add(one: PlannedChange | HeldBack | undefined): void {
    if (one === undefined) return
    if ('change' in one) this.#steps.push(one)
    else this.#held.push(one)
  }

  hold(one: HeldBack): void {
    this.#held.push(one)
  }

  plan(): WishedPlan {
    return {
      down: this.#down,
      unsaid: this.#unsaid,
      changes: this.#steps.map(({ change }) => change),
      steps: this.#steps,
      held: this.#held,
    }
  }
}

/** One pool of one balancer. */
interface PoolInput {
  readonly pool: string
  readonly desired: readonly DesiredMember[]
  readonly readings: readonly PresentReading[]
  readonly balancer: string | undefined
  readonly options: PlanOptions
}

function planPool(
  { pool, desired, readings, balancer, options }: PoolInput,
  findings: Findings,
): void {
  const refuseAll = whyNothing(desired, options)
  if (refuseAll !== undefined) {
    findings.say(pool, refuseAll)
    for (const { ref } of readings) findings.hold({ ref, reason: refuseAll })
    return
  }
  const names = new Names(readings)
  const { wanted, missing } = matchPool(desired, readings, names)
  const wishes = wishesOf(readings, wanted, options, findings)
  const floor = new ReadyFloor(readings, wishes, options, desired.length === 0)
  for (const state of ORDER) {
    for (const wish of wishes)
      if (wish.state === state) findings.add(planMember(wish, floor, options))
  }
  const adding = { names, given: new Set<string>(), balancer, options }
  for (const one of missing) findings.add(planAdd(one, adding))
}

/** What is gone keeps nothing ready, so it goes first; then drains in the order they were asked for. */
const ORDER: readonly Wish['state'][] = ['serve', 'gone', 'drain']

/** What is to be done about members that `owns` claims; what is left alone is reported. */
function wishesOf(
  readings: readonly PresentReading[],
  wanted: readonly (DesiredMember | undefined)[],
  { owns }: PlanOptions,
  findings: Findings,
): readonly Wish[] {
  const wishes: Wish[] = []
  let at = 0
  for (const reading of readings) {
    const one = wanted[at++]
    const { ref, address = '' } = reading
    if (one === undefined && address === '') {
      findings.hold({ ref, reason: UNADDRESSED })
      continue
    }
    const ours = answer('owns', owns(reading), reading)
    // Nearly all of them, nearly always.
    if (ours && one?.state === 'serve' && servesAsWished(reading)) continue
    const wish = one === undefined ? vanished(reading) : wishOf(reading, one)
    if (ours) {
      wishes.push(wish)
      findings.wish(wish)
    } else findings.hold(foreign(wish))
  }
  return wishes
}

const UNADDRESSED =
  'the snapshot has no address for it, so no endpoint can be told to be it: it is left alone'

function servesAsWished({ own, inherited }: PresentReading): boolean {
  return own === 'ready' && (inherited === undefined || inherited === 'ready')
}

function whyNothing(desired: readonly DesiredMember[], options: PlanOptions): string | undefined {
  if (options.synced === false)
    return 'the list of endpoints is not complete yet: nothing is changed'
  if (desired.length === 0 && options.allowEmpty !== true) {
    return 'the list of endpoints is empty, which may be an empty cache: nothing is changed without allowEmpty'
  }
  return undefined
}

function vanished(reading: PresentReading): Wish {
  const at = formatAddress(reading.address ?? '', reading.port)
  const reason = `no endpoint has its address ${at} any more`
  return { reading, state: 'gone', reason, remove: true }
}

function wishOf(reading: PresentReading, one: DesiredMember): Wish {
  const { state, serving = true, reason = state } = one
  if (state === 'serve') return { reading, state, reason, remove: false }
  if (state === 'absent') return { reading, state: 'gone', reason, remove: true }
  return { reading, state: serving ? 'drain' : 'gone', reason, remove: false }
}

function foreign({ reading: { ref, own }, state, reason }: Wish): HeldBack {
  const asWished = (state === 'serve') === (own === 'ready')
  return asWished
    ? { ref, reason: 'foreign: left alone', asWished }
    : {
        ref,
        reason: `foreign: left alone in ${own}, although: ${reason}; only what owns claims is changed`,
      }
}
