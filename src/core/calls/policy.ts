import * as z from 'zod/mini'
import { durationOption, fn, matching } from '../../provider/option-schemas.js'
import type { Capabilities, MaintEffect } from '../../provider/contract.js'
import { type Clock, systemClock } from '../../provider/clock.js'
import { type Duration, formatDuration } from '../../provider/duration.js'
import { DrainableError } from '../../provider/error.js'
import { once, parseOptions } from '../../provider/options.js'
import type { DrainEvent } from '../events.js'
import type { LeaseTerm } from '../balancer/owner.js'
import type { MachinePolicy } from '../member/record.js'
import { storeSchema, type TicketStore } from '../tickets/store.js'
import { givenShape, toKept } from '../tickets/options-table.js'
import type { PolicyData, Ticket } from '../tickets/ticket.js'
import type { WholeTicket } from '../tickets/writing/writer.js'
import { type Call, callShape } from './call-options.js'

/** The options of a drain. Every field has a safe default. */
export interface Policy extends Call {
  /**
   * How long to wait for idle, from the call on; it includes the first look. `Infinity` is allowed; a bare number
   * from 1 to 999 is refused (seconds?). It must have room for the longer of `settle` and the product's blind time,
   * for the product's freshness and for its changes, by what the product states. A shorter one is refused unless
   * `onTimeout` is `proceed`, `terminate` or `remove`.
   * @defaultValue `'30s'`
   */
  readonly timeout?: Duration | undefined
  /**
   * What to do with work left at the deadline: `fail` leaves the member drained, `terminate` cuts it, `proceed` ends
   * as `proceeded`. `remove`, only with `until: 'removed'`, takes the member out all the same: the work goes on where
   * the product keeps it, and is cut and counted in the report's `terminated` where a removal cuts or needs a cut. Such
   * a removal is never verified.
   * @defaultValue `'fail'`
   */
  readonly onTimeout?: 'fail' | 'terminate' | 'proceed' | 'remove' | undefined
  /**
   * The state to hold the member in. `maint` keeps persistent clients out from the start; if the product's maint is
   * not gentle, it needs `onTimeout: 'terminate'` as well.
   * @defaultValue `'drain'`
   */
  readonly hold?: 'drain' | 'maint' | undefined
  /**
   * How long after the start to raise from drain to maint, for persistent clients that never leave. A bare number
   * from 1 to 999 is refused. @defaultValue off
   */
  readonly escalateAfter?: Duration | undefined
  /**
   * How long nothing must arrive before a member counts as idle. A bare number from 1 to 999 is refused: write
   * `'500ms'`. @defaultValue `'1s'`
   */
  readonly settle?: Duration | undefined
  /**
   * Whether to take the member out of its pool once it is idle (`'removed'`). Where each removal reloads the balancer
   * (HAProxy Data Plane API), it waits for the other members of this call, at the longest until the deadline.
   * @defaultValue `'idle'`
   */
  readonly until?: 'idle' | 'removed' | undefined
  /**
   * Whether to keep persistent clients out of an idle member too: raise it to maint and look once more.
   * @defaultValue true if maint is gentle
   */
  readonly seal?: boolean | undefined
  /** How many serving members each pool of each balancer must keep. @defaultValue `1` */
  readonly keepReady?: number | undefined
  /** What to do if the drain would break `keepReady`: refuse it, or wait for a replacement. @defaultValue `'fail'` */
  readonly onMinimum?: 'fail' | 'wait' | undefined
  /**
   * What to do when another client sets another state: end, or set ours again, at most three times. A state lost in a
   * reload or failover is always put back.
   * @defaultValue `'fail'`
   */
  readonly onOverrule?: 'reapply' | 'fail' | undefined
  /**
   * What to do on abort: leave the member as it is, or undo. Once the action of `drain()` has begun, the member is
   * always left. The undo waits at most 5 s for a hold whose answer was lost; then the member's `error` says that the
   * hold may still take effect, and the ticket is kept. A balancer that does not answer is given up after about 30 s.
   * @defaultValue `'leave'`
   */
  readonly onAbort?: 'leave' | 'restore' | undefined
  /**
   * What to do with a balancer that can't be read when the drain begins. `fail`: try again for 5 s, for 1 s if nothing
   * listens there, then refuse; nothing is changed. `wait`: try again until the `timeout`. Over several balancers
   * `wait` drains the others meanwhile, about a second after the call; the drain reports idle once this one was read,
   * drained and idle too. If it never comes, the drain ends as `unreachable`, or as `proceeded` under `onTimeout:
   * 'proceed'`, and the report has a row for it. A balancer that can't be read later is always waited for. A roll
   * lists its servers first, and needs every balancer for that.
   * @defaultValue `'fail'`
   */
  readonly onUnreachable?: 'wait' | 'fail' | undefined
  /**
   * What to do if the product can't do a part of the policy: refuse, or go on without that part. @defaultValue
   * `'fail'`
   */
  readonly ifUnsupported?: 'fail' | 'proceed' | undefined
  /** The store for tickets, for a resume after a crash. */
  readonly tickets?: TicketStore | undefined
  /** The ticket's id. @defaultValue a random one */
  readonly id?: string | undefined
  /**
   * The name of the client that drains (a job, a user), in your own words: `findOrphans` shows it. Never a secret.
   * @defaultValue only host and pid
   */
  readonly owner?: string | undefined
  /**
   * The shortest time between two `load` events of one member, for a log. Without it, each change gives an event.
   * Other events are not limited.
   * @defaultValue off
   */
  readonly every?: Duration | undefined
  /**
   * The shortest pause between two looks, to spare a busy balancer. The end of a quiet time and the deadline still
   * get their look on time, and a reload while the action runs is still seen soon. The end of the last request is
   * seen up to that much later.
   * @defaultValue about thirty times the duration of a look, from 10 ms to 1 s
   */
  readonly pace?: Duration | undefined
  /** Called with the ticket before and after each change; the first change waits for it. */
  readonly onTicket?: ((t: Ticket) => Promise<void> | void) | undefined
}

/** The option `every`. */
export const everyShape = once(() => ({
  every: z.exactOptional(durationOption()),
}))

/** The option `pace`. */
export const paceShape = once(() => ({
  pace: z.exactOptional(durationOption()),
}))

/** The options for tickets. */
export const ticketShape = once(() => ({
  tickets: z.exactOptional(storeSchema()),
  onTicket: z.exactOptional(fn<NonNullable<Policy['onTicket']>>()),
}))

/** What to do with work that is left, and when: without defaults. */
export const endingShape = once(() => {
  const { timeout, onTimeout } = givenShape()
  return { timeout: timeout.def.innerType, onTimeout: onTimeout.def.innerType }
})

const policySchema = once(() =>
  z.strictObject({
    ...callShape(),
    ...ticketShape(),
    ...givenShape(),
    ...everyShape(),
    ...paceShape(),
    id: z.exactOptional(
      matching(/^[\w.:@-]{1,200}$/, 'expected 1 to 200 letters, digits or _ . : @ -'),
    ),
    owner: z.exactOptional(
      matching(/^\P{Cc}{1,200}$/u, 'expected 1 to 200 characters, none of them control characters'),
    ),
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
  /** In place of a store and a listener: the ticket that this drain's is a part of. */
  readonly whole?: WholeTicket | undefined
  readonly id: string | undefined
  /** The ticket of this id as the last call knows it, where that was of this process: the store may not have it yet. */
  readonly earlier?: (() => Ticket | undefined) | undefined
  readonly owner?: string | undefined
  /** Present if changes are made under a lease. */
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
  checkRemoval(given, subject)
  return {
    data: toKept(given),
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
 * Makes the policy of a claim, once the product's capabilities are known.
 *
 * @param maint - what maint does to these members, if a reading said so
 * @throws `INVALID_OPTIONS`, `UNSUPPORTED` if the product can't do what the policy asks for
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

/** The parts of a policy that the product can't do, one text each. */
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
 * Makes the policy of a claim for a drain that continues from its ticket. It was checked when it began. The effect of
 * maint on the members is not read yet, so a step checks before each raise whether the caller allowed it.
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

/**
 * Checks that the timeout is long enough for a proof, by what the product states. A measured look says nothing: a
 * machine that stood still for a moment must not refuse a drain.
 *
 * @param changes - the time for the changes, one after the other, in milliseconds
 * @throws `INVALID_OPTIONS` with the time that is needed
 */
export function checkTimeout(
  data: PolicyData,
  capabilities: Capabilities,
  subject: string,
  changes = 0,
): void {
  if (data.timeout === null || data.onTimeout !== 'fail') return
  const { settle } = data
  const { blind, freshness } = capabilities
  const need = proofTime(data, capabilities, changes)
  if (data.timeout >= need) return
  const writes = changes > 0 ? `, its changes ${formatDuration(Math.ceil(changes))}` : ''
  throw new DrainableError(
    'INVALID_OPTIONS',
    `${subject}: timeout is ${formatDuration(data.timeout)}, expected at least ${formatDuration(roundedUp(need))}: this balancer can't prove idle faster (settle ${formatDuration(settle)}, blind ${formatDuration(blind)}, freshness ${formatDuration(freshness)}${writes}); set a longer timeout, or onTimeout: 'proceed'`,
  )
}

/** As long as what is shown: rounded down it would be refused again. */
function roundedUp(ms: number): number {
  const shown = ms < 1_000 ? 1 : ms < 60_000 ? 100 : ms < 3_600_000 ? 1_000 : 60_000
  return Math.ceil(ms / shown) * shown
}

/** The shortest time in which a member without work can be proved idle, in milliseconds. */
export function proofTime(
  { settle }: Pick<PolicyData, 'settle'>,
  { blind, freshness, minTimeout = 0 }: Capabilities,
  changes = 0,
): number {
  const proof = Math.max(settle, blind) + freshness + changes
  return Math.ceil(Math.max(proof, minTimeout))
}

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
  onTimeout = fitRemoval({ until, onTimeout }, capabilities, can)
  if (data.seal === true) can(hasMaint, `seal: ${noMaint}`)
  const seal = data.seal === null ? 'gentle' : data.seal ? 'always' : 'never'
  return { hold, seal, until, onTimeout, escalateAfter }
}

// --- `onTimeout: 'remove'`: what it needs of the other options, and of the product

type Ending = Pick<PolicyData, 'onTimeout' | 'until'>

/** @throws `INVALID_OPTIONS` for a removal at the deadline of what is not to be removed */
export function checkRemoval({ onTimeout, until }: Ending, subject: string): void {
  if (onTimeout !== 'remove' || until === 'removed') return
  const words = `onTimeout: 'remove' takes the member out at the deadline, and until is '${until}', which keeps it: add until: 'removed', or use onTimeout: 'terminate'`
  throw new DrainableError('INVALID_OPTIONS', `${subject}: ${words}`)
}

/**
 * What is to be done at the deadline, as far as the product can: one that neither removes a busy member nor cuts does nothing.
 *
 * @param can - tells what the product lacks
 */
export function fitRemoval(
  { onTimeout, until }: Ending,
  capabilities: Capabilities,
  can: (what: boolean, lack: string) => boolean,
): Ending['onTimeout'] {
  if (onTimeout !== 'remove') return onTimeout
  return until === 'removed' && can(removesAtWork(capabilities), KEEPS_WORK) ? 'remove' : 'fail'
}

/** Whether a member can be taken out with work on it, if need be by a cut. */
export function removesAtWork({ removal, terminate }: Capabilities): boolean {
  return removal !== 'refuses' || terminate
}

export const KEEPS_WORK = `onTimeout: 'remove': this balancer removes no member that has work, and can't cut it; use onTimeout: 'fail' and remove it once it is idle (HAProxy's Data Plane API: or set membership: 'configuration' or maintCuts: true)`
