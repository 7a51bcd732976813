import * as z from 'zod'
import type { Capabilities, MaintEffect } from '../../provider/contract.js'
import { systemClock, type Clock } from '../../provider/clock.js'
import { formatDuration, type Duration } from '../../provider/duration.js'
import { DrainableError } from '../../provider/error.js'
import { isPromise, missingMethods, parseOptions } from '../../provider/options.js'
import type { DrainEvent } from '../events.js'
import type { LeaseTerm } from '../lease/permit.js'
import type { MachinePolicy } from '../machine/policy.js'
import type { TicketStore } from '../tickets/store.js'
import type { PolicyData, Ticket } from '../tickets/ticket.js'
import { callShape, fn, type Call } from './call.js'
import { durationOption } from '../../provider/duration-option.js'
import { once } from '../../provider/once.js'

/** How a drain is to go. Every field has a default that is safe. */
export interface Policy extends Call {
  /**
   * How long to wait for idle, counted from the call: it bounds the first look too. `Infinity` is
   * allowed; a bare number from 1 to 999 is refused (seconds?). Refused where it can't hold
   * max(`settle`, the product's blind time), the product's freshness and, where the first look was
   * slow, two more looks like it, unless `onTimeout` is `proceed` or `terminate`.
   * @defaultValue `'30s'`
   */
  readonly timeout?: Duration | undefined
  /**
   * What to do with work left at the deadline: `fail` leaves the member drained, `terminate` cuts it,
   * `proceed` ends as `proceeded`.
   * @defaultValue `'fail'`
   */
  readonly onTimeout?: 'fail' | 'terminate' | 'proceed' | undefined
  /**
   * The state to hold the member in. `maint` keeps persistent clients out from the start; where the
   * product's maint is not gentle it needs `onTimeout: 'terminate'` as well.
   * @defaultValue `'drain'`
   */
  readonly hold?: 'drain' | 'maint' | undefined
  /** Raise from drain to maint that long after the start: for persistence that never lets go. A bare number from 1 to 999 is refused. @defaultValue off */
  readonly escalateAfter?: Duration | undefined
  /** For how long nothing may arrive before a member is called idle. A bare number from 1 to 999 is refused: write `'500ms'`. @defaultValue `'1s'` */
  readonly settle?: Duration | undefined
  /** Whether to take the member out of its pool once idle. @defaultValue `'idle'` */
  readonly until?: 'idle' | 'removed' | undefined
  /**
   * On the verdict, close the door to persistent clients too: raise to maint, look once more.
   * @defaultValue where maint is gentle
   */
  readonly seal?: boolean | undefined
  /** How many serving members each pool of each balancer must keep. @defaultValue `1` */
  readonly keepReady?: number | undefined
  /** What to do where `keepReady` would not hold: refuse, or wait for a replacement. @defaultValue `'fail'` */
  readonly onMinimum?: 'fail' | 'wait' | undefined
  /**
   * What to do when another client sets another state: end, or set ours again, at most three times.
   * What a reload or failover forgot is always put back.
   * @defaultValue `'fail'`
   */
  readonly onOverrule?: 'reapply' | 'fail' | undefined
  /**
   * What to do on abort: leave the member as it is, or undo. A member is always left once the action of
   * `drain()` has begun. The undo waits at most 5 s for a hold whose
   * answer was lost; then the member's `error` says that it may still come, and the ticket is kept.
   * @defaultValue `'leave'`
   */
  readonly onAbort?: 'leave' | 'restore' | undefined
  /** What to do where the product can't do a part of the policy: refuse, or go on without that part. @defaultValue `'fail'` */
  readonly ifUnsupported?: 'fail' | 'proceed' | undefined
  /** Where tickets are kept, for a resume after a crash. */
  readonly tickets?: TicketStore | undefined
  /** The ticket's id. @defaultValue a random one */
  readonly id?: string | undefined
  /** Who drains, in your own words (a job, a user): `findOrphans` shows it. Never a secret. @defaultValue host and pid alone */
  readonly owner?: string | undefined
  /**
   * The shortest time between two `load` events of one member, for a log: each change is said without it. Other
   * events always come.
   * @defaultValue off
   */
  readonly every?: Duration | undefined
  /**
   * The shortest pause between two looks, to spare a busy balancer. What is due by time (the end of a quiet time, the
   * deadline) still gets its look in that moment, and a reload while the action runs is still seen soon. The end of
   * the last request is seen up to that much later.
   * @defaultValue about thirty times what a look costs, from 10 ms to 1 s
   */
  readonly pace?: Duration | undefined
  /** Called with the ticket before and after each change; the first change waits for it. */
  readonly onTicket?: ((t: Ticket) => Promise<void> | void) | undefined
}

const storeSchema = once(() =>
  z.custom<TicketStore>((value) => missingMethods(value, ['get', 'set', 'delete']).length === 0, {
    error: ({ input }) =>
      isPromise(input)
        ? 'found a promise; await it first'
        : `expected a store with get, set and delete${typeof input === 'string' ? ', such as fileTickets(path)' : ''}`,
  }),
)

/**
 * Checks that something is a ticket store.
 *
 * @throws `INVALID_OPTIONS`
 */
export function checkStore(value: unknown, subject: string): TicketStore {
  return parseOptions(z.strictObject({ store: storeSchema() }), { store: value }, subject).store
}

/** How often loads are said. */
export const everyShape = once(() => ({
  every: durationOption({ bareSeconds: 'refuse' }).exactOptional(),
}))

/** How often it is looked. */
export const paceShape = once(() => ({
  pace: durationOption({ bareSeconds: 'refuse' }).exactOptional(),
}))

/** Where tickets go. */
export const ticketShape = once(() => ({
  tickets: storeSchema().exactOptional(),
  onTicket: fn().exactOptional() as unknown as z.ZodType<Policy['onTicket']>,
}))

/** A share of the pool is what a roll takes. */
const WHOLE_NUMBER = 'expected a whole number of members from 0, such as 2'

/** The fields of {@link Policy} that are plain data; they go into the ticket. */
const dataShape = once(() => ({
  timeout: durationOption({ bareSeconds: 'refuse', infinite: true }).default(30_000),
  onTimeout: z.enum(['fail', 'terminate', 'proceed']).default('fail'),
  hold: z.enum(['drain', 'maint']).default('drain'),
  escalateAfter: durationOption({ bareSeconds: 'refuse' }).exactOptional(),
  settle: durationOption({ bareSeconds: 'refuse' }).default(1_000),
  until: z.enum(['idle', 'removed']).default('idle'),
  seal: z.boolean().exactOptional(),
  keepReady: z.number(WHOLE_NUMBER).int(WHOLE_NUMBER).min(0, WHOLE_NUMBER).default(1),
  onMinimum: z.enum(['fail', 'wait']).default('fail'),
  onOverrule: z.enum(['reapply', 'fail']).default('fail'),
  onAbort: z.enum(['leave', 'restore']).default('leave'),
  ifUnsupported: z.enum(['fail', 'proceed']).default('fail'),
}))

const policySchema = once(() =>
  z.strictObject({
    ...callShape(),
    ...ticketShape(),
    ...dataShape(),
    ...everyShape(),
    ...paceShape(),
    id: z
      .string()
      .regex(/^[\w.:@-]{1,200}$/, 'expected 1 to 200 letters, digits or _ . : @ -')
      .exactOptional(),
    owner: z
      .string()
      .regex(/^\P{Cc}{1,200}$/u, 'expected 1 to 200 characters, none of them control characters')
      .exactOptional(),
  }),
)

/** A policy, checked and with its defaults. */
export interface ResolvedPolicy {
  readonly data: PolicyData
  readonly clock: Clock
  readonly signal: AbortSignal | undefined
  readonly onEvent: ((e: DrainEvent) => void) | undefined
  readonly every?: number | undefined
  readonly pace?: number | undefined
  readonly tickets: TicketStore | undefined
  readonly onTicket: ((t: Ticket) => Promise<void> | void) | undefined
  readonly id: string | undefined
  readonly owner?: string | undefined
  /** Where changes are made under a lease. */
  readonly term?: LeaseTerm | undefined
}

/** The name of every option of a drain. */
export const policyNames = once(() => Object.keys(policySchema().shape))

/**
 * Checks a policy.
 *
 * @param names - every option that the caller can give, where it is more or less than a policy
 * @throws `INVALID_OPTIONS` naming every wrong field
 */
export function parsePolicy(
  policy: Policy,
  subject: string,
  names?: readonly string[],
): ResolvedPolicy {
  const given = parseOptions(policySchema(), policy, subject, names)
  const { timeout, escalateAfter, seal } = given
  return {
    data: {
      timeout: timeout === Infinity ? null : timeout,
      onTimeout: given.onTimeout,
      hold: given.hold,
      escalateAfter: escalateAfter ?? null,
      settle: given.settle,
      until: given.until,
      seal: seal ?? null,
      keepReady: given.keepReady,
      onMinimum: given.onMinimum,
      onOverrule: given.onOverrule,
      onAbort: given.onAbort,
      ifUnsupported: given.ifUnsupported,
    },
    clock: given.clock ?? systemClock,
    signal: given.signal,
    onEvent: given.onEvent,
    every: given.every,
    pace: given.pace,
    tickets: given.tickets,
    onTicket: given.onTicket,
    id: given.id,
    owner: given.owner,
  }
}

/**
 * What the machine is told, once the product's capabilities are known.
 *
 * @param maint - what maint does to the members at hand, where a reading said so
 * @throws `INVALID_OPTIONS`, `UNSUPPORTED` where the product can't do what the policy asks for
 */
export function toMachinePolicy(
  data: PolicyData,
  capabilities: Capabilities,
  maint: readonly MaintEffect[],
  subject: string,
): MachinePolicy {
  const fits = fitLadder(data, capabilities, maint, (lack) => {
    if (data.ifUnsupported === 'fail')
      throw new DrainableError('UNSUPPORTED', `${subject}: ${lack}`)
  })
  return {
    hold: fits.hold,
    seal: fits.seal,
    settle: data.settle,
    until: fits.until,
    onTimeout: fits.onTimeout,
    onOverrule: data.onOverrule,
    onMinimum: data.onMinimum,
    escalateAfter: fits.escalateAfter,
    capabilities,
  }
}

/** What the product can't do of a policy, one text each. */
export function lacksOf(
  data: PolicyData,
  capabilities: Capabilities,
  maint: readonly MaintEffect[],
): readonly string[] {
  const lacks: string[] = []
  fitLadder(data, capabilities, maint, (lack) => lacks.push(lack))
  return lacks
}

/**
 * The same for a drain that goes on from its ticket: it was checked when it began. What maint does to
 * the members is not read yet, so the machine itself asks for the caller's word before each raise.
 */
export function toResumedPolicy(
  data: PolicyData,
  capabilities: Capabilities,
  subject: string,
): MachinePolicy {
  const policy = toMachinePolicy({ ...data, ifUnsupported: 'proceed' }, capabilities, [], subject)
  if (!capabilities.ladder.includes('maint')) return policy
  return { ...policy, hold: data.hold, escalateAfter: data.escalateAfter }
}

/** What a proof costs beside quiet time, as far as the first look tells: in milliseconds. */
export interface Costs {
  /** One look. */
  readonly cost: number
  /** What preparing took. */
  readonly spent: number
  /** The changes, one after the other. */
  readonly changes: number
}

const NO_COSTS: Costs = { cost: 0, spent: 0, changes: 0 }

/**
 * Whether the timeout can hold a proof at all.
 *
 * @throws `INVALID_OPTIONS` with the figure that is needed
 */
export function checkTimeout(
  data: PolicyData,
  capabilities: Capabilities,
  subject: string,
  costs: Costs = NO_COSTS,
): void {
  if (data.timeout === null || data.onTimeout !== 'fail') return
  const { settle } = data
  const { blind, freshness } = capabilities
  const need = proofTime(data, capabilities, costs)
  if (data.timeout >= need) return
  const slow = costs.cost > 0 ? `, a look ${formatDuration(costs.cost)}` : ''
  const writes =
    costs.changes > 0 ? `, its changes ${formatDuration(Math.ceil(costs.changes))}` : ''
  throw new DrainableError(
    'INVALID_OPTIONS',
    `${subject}: timeout is ${formatDuration(data.timeout)}, expected at least ${formatDuration(need)}: this balancer can't prove idle faster (settle ${formatDuration(settle)}, blind ${formatDuration(blind)}, freshness ${formatDuration(freshness)}${slow}${writes}); set a longer timeout, or onTimeout: 'proceed'`,
  )
}

/** The shortest time in which a member without work is proved idle, in milliseconds. */
export function proofTime(
  { settle }: Pick<PolicyData, 'settle'>,
  { blind, freshness, minTimeout = 0 }: Capabilities,
  { cost, spent, changes }: Costs = NO_COSTS,
): number {
  // One look has to see the hold, one more the end of the quiet time.
  const proof = Math.max(settle, blind) + freshness + spent + 2 * cost + changes
  return Math.ceil(Math.max(proof, minTimeout))
}

// eslint-disable-next-line complexity -- one option after the other: what the product lacks
function fitLadder(
  data: PolicyData,
  capabilities: Capabilities,
  maint: readonly MaintEffect[],
  lacks: (what: string) => void,
): Pick<MachinePolicy, 'hold' | 'seal' | 'until' | 'onTimeout' | 'escalateAfter'> {
  const can = (what: boolean, lack: string): boolean => {
    if (!what) lacks(lack)
    return what
  }
  const hasMaint = capabilities.ladder.includes('maint')
  const effects = maint.length > 0 ? maint : [capabilities.maint]
  const gentle = hasMaint && effects.every((effect) => effect === 'gentle')
  let { escalateAfter, until, onTimeout } = data
  const cuts = capabilities.terminate || (hasMaint && effects.includes('cuts'))
  if (
    onTimeout === 'terminate' &&
    !can(
      cuts,
      `onTimeout: 'terminate': this balancer can't cut connections; use 'fail' or 'proceed'`,
    )
  ) {
    onTimeout = 'fail'
  }
  const word = gentle || onTimeout === 'terminate'
  const rough = `maint is not known to keep established work here (${effects.join(', ')}), so it counts as terminate: add onTimeout: 'terminate' if that is meant, or stay with drain`
  const noMaint = `this balancer has no maint; use drain`
  let hold = data.hold
  if (
    hold === 'maint' &&
    !(can(hasMaint, `hold: 'maint': ${noMaint}`) && can(word, `hold: 'maint': ${rough}`))
  ) {
    hold = 'drain'
  }
  if (
    escalateAfter !== null &&
    !(can(hasMaint, `escalateAfter: ${noMaint}`) && can(word, `escalateAfter: ${rough}`))
  ) {
    escalateAfter = null
  }
  if (
    until === 'removed' &&
    !can(
      capabilities.remove,
      `until: 'removed': this balancer can't remove members; use until: 'idle' and remove it in the configuration`,
    )
  ) {
    until = 'idle'
  }
  if (data.seal === true) can(hasMaint, `seal: ${noMaint}`)
  const seal = data.seal === null ? 'gentle' : data.seal ? 'always' : 'never'
  return { hold, seal, until, onTimeout, escalateAfter }
}
