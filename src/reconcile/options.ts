import * as z from 'zod/mini'
import { checkLeaseTtl, leaseSchema, leaseTtlOption } from '../fleet/lease/lease-option.js'
import type { Lease } from '../fleet/lease/lease.js'
import { fn, nonEmpty } from '../provider/option-schemas.js'
import {
  endingShape,
  parsePolicy,
  policyNames,
  type Policy,
  type ResolvedPolicy,
} from '../core/calls/policy.js'
import { splitOptions } from '../core/calls/call-options.js'
import type { Reading } from '../provider/contract.js'
import { checkLists } from '../core/tickets/saved.js'
import type { Duration } from '../provider/duration.js'
import { DrainableError } from '../provider/error.js'
import { once, parseOptions } from '../provider/options.js'
import type { Ending } from './shape.js'

/** Options of `reconcile`: the pools and members that it manages, and how it drains. */
export interface ReconcileOptions extends Omit<Policy, 'until' | 'id' | 'onTicket' | 'onTimeout'> {
  /**
   * What to do with work left at the deadline, as in {@link Policy.onTimeout}. `remove` is for members that are to be
   * removed; one that is only to be drained stays drained then, as with `fail`.
   * @defaultValue `'fail'`
   */
  readonly onTimeout?: Policy['onTimeout']
  /**
   * The pools that every set describes, each completely: a member of these pools that the set does not name has no
   * endpoint any more. Other pools are not touched. Use the names that the provider lists (BIG-IP: `/Common/web`).
   */
  readonly pools: readonly string[]
  /**
   * Which members of these pools can be changed, beside those that this reconciler added or drained. Decide by
   * something that only your members have, such as a prefix of their names. `() => true` claims every member. The
   * reconciler lists the members it added beside its tickets: with a store that outlives the process, it can remove
   * them after a crash too.
   * @defaultValue none: it changes only members that it added itself
   */
  readonly owns?: ((reading: Reading) => boolean) | undefined
  /**
   * Whether to drain a member before it is removed. `false`: it is held and removed at once, without a wait for its
   * work; work in flight is lost if the product cuts it. @defaultValue `true`
   */
  readonly drain?: boolean | undefined
  /**
   * Whether an empty list means that every member of its pool is gone. Otherwise an empty list changes nothing,
   * because it can come from a wrong selector. @defaultValue `false`
   */
  readonly allowEmpty?: boolean | undefined
  /**
   * How a member that does not answer any more is held. @defaultValue `maint` if that keeps established work, else
   * `drain`
   */
  readonly gone?: 'maint' | 'drain' | undefined
  /** Whether to change nothing: `status()` then shows what would be done. @defaultValue `false` */
  readonly dryRun?: boolean | undefined
  /**
   * The lease whose holder alone makes changes; other contenders wait for it. It makes the floor exact across
   * controllers.
   * @defaultValue none: it makes changes at once
   */
  readonly lease?: Lease | undefined
  /**
   * How long the lease is taken for. Nothing is changed once two thirds of it have passed without a renewal. At least
   * `'1s'`. @defaultValue `'15s'`
   */
  readonly leaseTtl?: Duration | undefined
}

/** How the drains of one set end. What is left out is as `reconcile()` was given. */
export type SetOptions = Pick<ReconcileOptions, 'drain' | 'timeout' | 'onTimeout'>

const ownShape = /* @__PURE__ */ once(() => ({
  pools: z.array(nonEmpty()).check(z.minLength(1, 'expected the names of one pool or more')),
  owns: z.exactOptional(fn<NonNullable<ReconcileOptions['owns']>>()),
  drain: z._default(z.boolean(), true),
  allowEmpty: z._default(z.boolean(), false),
  gone: z.exactOptional(z.enum(['maint', 'drain'])),
  dryRun: z._default(z.boolean(), false),
  lease: z.exactOptional(leaseSchema()),
  leaseTtl: leaseTtlOption(),
}))
const ownSchema = /* @__PURE__ */ once(() => z.strictObject(ownShape()))

/** The checked options with their defaults. */
export interface ResolvedReconcile extends Omit<z.infer<ReturnType<typeof ownSchema>>, 'pools'> {
  readonly pools: readonly string[]
  readonly policy: ResolvedPolicy
  readonly keepReady: number | undefined
}

/** Options that the reconciler itself sets for each member. */
const OWN_BUSINESS = ['until', 'id', 'onTicket']

const ownNames = /* @__PURE__ */ once(() => Object.keys(ownShape()))
const names = /* @__PURE__ */ once(() => [
  ...ownNames(),
  ...policyNames().filter((name) => !OWN_BUSINESS.includes(name)),
])

/**
 * Checks options.
 *
 * @throws `INVALID_OPTIONS` naming every wrong field, `UNSUPPORTED` for a store that can't list its tickets
 */
export function parseReconcile(given: ReconcileOptions, subject: string): ResolvedReconcile {
  const { own, rest } = splitOptions(given, ownNames(), names(), subject)
  const reserved = Object.keys(rest).filter((name) => OWN_BUSINESS.includes(name))
  if (reserved.length > 0) {
    const words = `${reserved.join(', ')}: the reconciler sets it for each member, leave it out`
    throw new DrainableError('INVALID_OPTIONS', `${subject}: ${words}`)
  }
  // Which members go is the set's to say.
  const isRemoved = rest['onTimeout'] === 'remove' ? { until: 'removed' as const } : {}
  const policy = parsePolicy({ ...rest, ...isRemoved }, subject, names())
  if (policy.tickets !== undefined) checkLists(policy.tickets, subject)
  const { pools, ...parsed } = parseOptions(ownSchema(), own, subject, names())
  checkLeaseTtl(given, subject)
  return { ...parsed, pools: [...new Set(pools)], policy, keepReady: given.keepReady }
}

const setSchema = /* @__PURE__ */ once(() => {
  const { timeout, onTimeout } = endingShape()
  return z.strictObject({
    drain: z.exactOptional(z.boolean()),
    timeout: z.exactOptional(timeout),
    onTimeout: z.exactOptional(onTimeout),
  })
})

/**
 * How the drains of a set end.
 *
 * @throws `INVALID_OPTIONS` naming every wrong field
 */
export function parseEnding(
  given: SetOptions,
  { drain: waits, policy }: Pick<ResolvedReconcile, 'drain' | 'policy'>,
  subject: string,
): Ending {
  const { drain, timeout, onTimeout } = parseOptions(setSchema(), given, subject)
  return {
    waits: drain ?? waits,
    timeout: timeout === undefined ? policy.data.timeout : timeout === Infinity ? null : timeout,
    onTimeout: onTimeout ?? policy.data.onTimeout,
  }
}
