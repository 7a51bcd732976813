import * as z from 'zod'
import { leaseSchema, leaseTtlOption } from '../core/lease/lease-option.js'
import type { Lease } from '../core/lease/lease.js'
import { fn } from '../core/verbs/call.js'
import { parsePolicy, policyNames, type Policy, type ResolvedPolicy } from '../core/verbs/policy.js'
import type { Reading } from '../provider/contract.js'
import type { Duration } from '../provider/duration.js'
import { DrainableError } from '../provider/error.js'
import { parseOptions } from '../provider/options.js'
import { once } from '../provider/once.js'

/** How `reconcile` is to go: what it speaks for, and how its drains go. */
export interface ReconcileOptions extends Omit<Policy, 'until' | 'id' | 'onTicket'> {
  /**
   * The pools that every set speaks for, each as a whole: a member of theirs that it does not name has no
   * endpoint any more. No other pool is touched. Named as the provider lists them (BIG-IP: `/Common/web`).
   */
  readonly pools: readonly string[]
  /**
   * Which members of these pools may be changed, beside those that this reconciler has added or drained:
   * by what only your members have, such as a prefix of their names. `() => true` claims every member.
   * What it added is listed beside its tickets: with a store that outlives the process it is taken out after a crash too.
   * @defaultValue none: only what it added itself is changed
   */
  readonly owns?: ((reading: Reading) => boolean) | undefined
  /**
   * `false`: a member that is to go is held and taken out at once, with no wait for its work; what it had in
   * flight is lost where the product cuts it. @defaultValue `true`
   */
  readonly drain?: boolean | undefined
  /**
   * Take an empty list as meant: every member of its pool is gone. Without it an empty list changes nothing,
   * because it may be the list of a wrong selector. @defaultValue `false`
   */
  readonly allowEmpty?: boolean | undefined
  /** How a member is held that does not answer any more. @defaultValue `maint` where that keeps established work, else `drain` */
  readonly gone?: 'maint' | 'drain' | undefined
  /** Changes nothing; `status()` says what would be done. @defaultValue `false` */
  readonly dryRun?: boolean | undefined
  /**
   * Only its holder changes anything; the others wait for it. With it the floor is exact across controllers.
   * @defaultValue none: it changes at once
   */
  readonly lease?: Lease | undefined
  /** For how long the lease is taken. Nothing is changed once two thirds of it have passed without a renewal. At least `'1s'`. @defaultValue `'15s'` */
  readonly leaseTtl?: Duration | undefined
}

const ownShape = once(() => ({
  pools: z.array(z.string().min(1)).min(1, 'expected the names of one pool or more'),
  owns: fn().exactOptional() as unknown as z.ZodType<ReconcileOptions['owns']>,
  drain: z.boolean().default(true),
  allowEmpty: z.boolean().default(false),
  gone: z.enum(['maint', 'drain']).exactOptional(),
  dryRun: z.boolean().default(false),
  lease: leaseSchema().exactOptional(),
  leaseTtl: leaseTtlOption(),
}))
const ownSchema = once(() => z.strictObject(ownShape()))

/** The options, checked and with their defaults. */
export interface ResolvedReconcile extends Omit<z.infer<ReturnType<typeof ownSchema>>, 'pools'> {
  readonly pools: readonly string[]
  readonly policy: ResolvedPolicy
  readonly keepReady: number | undefined
}

/** Set by the reconciler itself, for each member. */
const OWN_BUSINESS = ['until', 'id', 'onTicket']

const ownNames = once(() => Object.keys(ownShape()))
const names = once(() => [
  ...ownNames(),
  ...policyNames().filter((name) => !OWN_BUSINESS.includes(name)),
])

/** Whether it is an object with options at all; which ones is looked at afterwards. */
const anyOptions = once(() => z.looseObject({}))

/**
 * Checks options.
 *
 * @throws `INVALID_OPTIONS` naming every wrong field
 */
export function parseReconcile(given: ReconcileOptions, subject: string): ResolvedReconcile {
  const all = Object.entries(parseOptions(anyOptions(), given, subject, names()))
  const reserved = all.map(([name]) => name).filter((name) => OWN_BUSINESS.includes(name))
  if (reserved.length > 0) {
    const words = `${reserved.join(', ')}: the reconciler sets it for each member, leave it out`
    throw new DrainableError('INVALID_OPTIONS', `${subject}: ${words}`)
  }
  const [own, rest] = [true, false].map((mine) =>
    Object.fromEntries(all.filter(([name]) => ownNames().includes(name) === mine)),
  )
  const policy = parsePolicy(rest ?? {}, subject, names())
  const { pools, ...parsed } = parseOptions(ownSchema(), own, subject, names())
  return { ...parsed, pools: [...new Set(pools)], policy, keepReady: given.keepReady }
}
