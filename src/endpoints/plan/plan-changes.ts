import type { DesiredMember } from '../../core/desired.js'
import type { PresentReading, Reading, Snapshot } from '../../provider/contract.js'
import { poolKey } from '../../provider/member-ref.js'
import { formatAddress } from '../address.js'
import { checkPlanInput } from './check-plan.js'
import { matchPool, type PoolMatch } from './match-members.js'
import type { HeldBack, Plan, PlannedChange, PlanOptions } from './plan.js'
import { planAdd, refOf } from './plan-add.js'
import { planMember } from './plan-member.js'
import type { Wish } from './wish.js'
import { ReadyFloor } from './ready-floor.js'

/**
 * Compares what members should be with what a balancer has, and says what to change: hold, make
 * ready again, add, remove. Pure, and level-triggered: call it again with the next snapshot.
 *
 * Members are matched by address and port; IPv6 compares equal however it is spelled, route domains
 * are different addresses. The snapshot must be of all members (`observe('all')`).
 *
 * - What still serves is held in drain. What does not answer, or vanished, is held as gone: in maint
 *   where that keeps established work, because a dead server in drain answers its sticky clients
 *   with 503. It is removed only after it was held and proved idle.
 * - An empty or unsynced list changes nothing unless told.
 * - A restore is to be carried out as `ready()` does: out of maint by way of drain, so that the
 *   first health check is passed before the door opens.
 *
 * @throws `INVALID_OPTIONS` with the path, for input of a shape the types do not allow
 *
 * @example
 * ```ts
 * import { mapEndpoints, planChanges, formatPlan, toDesired } from 'drainable/endpoints'
 * import type { Snapshot } from 'drainable/provider'
 *
 * export function dryRun(snapshot: Snapshot): string {
 *   const desired = toDesired(mapEndpoints([{ addresses: ['10.0.0.1'], port: 80 }]), { pool: 'web' })
 *   return formatPlan(planChanges(desired, snapshot))
 * }
 * ```
 */
export function planChanges(
  desired: readonly DesiredMember[],
  snapshot: Snapshot,
  options: PlanOptions = {},
): Plan {
  checkPlanInput(desired, snapshot, options)
  const pools = options.pools ?? poolsOf(desired, snapshot)
  const steps: PlannedChange[] = []
  const held: HeldBack[] = []
  const wanted = Map.groupBy(desired, ({ pool }) => pool)
  const found = Map.groupBy(snapshot.readings.filter(isPresent), ({ ref }) => poolKey(ref))
  for (const pool of new Set(pools)) {
    const balancers = balancersOf(pool, snapshot)
    const own = wanted.get(pool) ?? []
    if (balancers.size === 0) {
      for (const one of own)
        held.push({ ref: refOf(one), reason: `there is no pool ${pool} in the snapshot` })
    }
    for (const balancer of balancers) {
      const readings = found.get(poolKey(keyed(pool, balancer))) ?? []
      const plan = planPool(own, readings, balancer, options)
      steps.push(...plan.steps)
      held.push(...plan.held)
    }
  }
  return { changes: steps.map(({ change }) => change), steps, held }
}

interface PoolPlan {
  readonly steps: PlannedChange[]
  readonly held: HeldBack[]
}

function planPool(
  desired: readonly DesiredMember[],
  readings: readonly PresentReading[],
  balancer: string | undefined,
  options: PlanOptions,
): PoolPlan {
  const refuseAll = whyNothing(desired, options)
  if (refuseAll !== undefined) {
    return { steps: [], held: readings.map(({ ref }) => ({ ref, reason: refuseAll })) }
  }
  const steps: PlannedChange[] = []
  const held: HeldBack[] = []
  const owns = options.owns ?? ((): boolean => true)
  const match = matchPool(desired, readings)
  const wishes: Wish[] = []
  for (const wish of wishesOf(match)) {
    if (owns(wish.reading)) wishes.push(wish)
    else held.push({ ref: wish.reading.ref, reason: foreign(wish) })
  }
  for (const reading of match.unaddressed) {
    held.push({
      ref: reading.ref,
      reason:
        'the snapshot has no address for it, so no endpoint can be told to be it: it is left alone',
    })
  }
  const floor = new ReadyFloor(readings, wishes, options, desired.length === 0)
  for (const wish of inOrder(wishes)) {
    const step = planMember(wish, floor, options)
    if (step === undefined) continue
    if ('change' in step) steps.push(step)
    else held.push(step)
  }
  const adds = match.missing.map((one) => planAdd(one, readings, balancer, options))
  for (const add of adds) {
    if (add === undefined) continue
    if ('change' in add) steps.push(add)
    else held.push(add)
  }
  return { steps, held }
}

function whyNothing(desired: readonly DesiredMember[], options: PlanOptions): string | undefined {
  if (options.synced === false)
    return 'the list of endpoints is not complete yet: nothing is changed'
  if (desired.length === 0 && options.allowEmpty !== true) {
    return 'the list of endpoints is empty, which may be an empty cache: nothing is changed without allowEmpty'
  }
  return undefined
}

function wishesOf({ matched, vanished }: PoolMatch): Wish[] {
  return [
    ...matched.map(([one, reading]): Wish => {
      const { state, serving = true, reason = state } = one
      if (state === 'serve') return { reading, state, reason, remove: false }
      if (state === 'absent') return { reading, state: 'gone', reason, remove: true }
      return { reading, state: serving ? 'drain' : 'gone', reason, remove: false }
    }),
    ...vanished.map((reading): Wish => ({
      reading,
      state: 'gone',
      reason: `no endpoint has its address ${formatAddress(reading.address ?? '', reading.port)} any more`,
      remove: true,
    })),
  ]
}

/** What is gone keeps nothing ready, so it goes first; then drains in the order they were asked for. */
function inOrder(wishes: readonly Wish[]): Wish[] {
  const rank = { serve: 0, gone: 1, drain: 2 } as const
  return wishes.toSorted((a, b) => rank[a.state] - rank[b.state])
}

function foreign({ reading, state, reason }: Wish): string {
  const asWished = (state === 'serve') === (reading.own === 'ready')
  return asWished
    ? 'foreign: left alone'
    : `foreign: left alone in ${reading.own}, although: ${reason}`
}

function poolsOf(desired: readonly DesiredMember[], snapshot: Snapshot): string[] {
  if (desired.length > 0) return desired.map(({ pool }) => pool)
  return [
    ...snapshot.pools.map(({ pool }) => pool),
    ...snapshot.readings.map(({ ref }) => ref.pool),
  ]
}

/** The balancers that have the pool; `undefined` stands for the only one. */
function balancersOf(pool: string, snapshot: Snapshot): Set<string | undefined> {
  return new Set([
    ...snapshot.pools.filter((one) => one.pool === pool).map(({ balancer }) => balancer),
    ...snapshot.readings
      .filter(({ ref, present }) => present && ref.pool === pool)
      .map(({ ref }) => ref.balancer),
  ])
}

function keyed(pool: string, balancer: string | undefined): { pool: string; balancer?: string } {
  return balancer === undefined ? { pool } : { pool, balancer }
}

function isPresent(reading: Reading): reading is PresentReading {
  return reading.present
}
