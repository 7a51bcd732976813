import * as z from 'zod/mini'
import { fn, whole } from '../../provider/option-schemas.js'
import type { MemberRef, PresentReading } from '../../provider/contract.js'
import type { Duration } from '../../provider/duration.js'
import { DrainableError } from '../../provider/error.js'
import { once, parseOptions } from '../../provider/options.js'
import type { DrainReport } from '../../provider/report.js'
import type { Lease } from '../lease/lease.js'
import { checkLeaseTtl, leaseSchema, leaseTtlOption } from '../lease/lease-option.js'
import type { OwnHealthCheck } from '../../core/calls/run/run-spec.js'
import type { RollData } from '../../core/tickets/ticket.js'
import { toHealthLimit } from '../../core/calls/ready.js'
import { callShape, splitOptions } from '../../core/calls/call-options.js'
import {
  parsePolicy,
  policyNames,
  ticketShape,
  type Policy,
  type ResolvedPolicy,
} from '../../core/calls/policy.js'
import type { RollEvent } from './events.js'

/** One server that a roll has drained: the argument of `act`. */
export interface ServerDrained {
  /** All members of the roll that belong to this server. */
  readonly refs: readonly MemberRef[]
  /** The first of them, for servers with only one member. */
  readonly ref: MemberRef
  /** Its address; absent if the balancer reports none. */
  readonly address?: string
  /** How its drain went. */
  readonly drained: DrainReport
  /** The number of the call for this server: 1 at first, one more after a crash or another try. */
  readonly attempt: number
  /**
   * Fires when the server is no longer idle and held (`IDLE_LOST`, `DRAIN_OVERRULED`), and when the roll is aborted.
   * The roll still waits for `act`.
   */
  readonly signal: AbortSignal
}

/** The options of a roll. Those of {@link Policy} apply to the drain of each server. */
export interface RollOptions extends Omit<Policy, 'until' | 'onEvent' | 'onTimeout'> {
  /**
   * The work on a drained server: called once for each server, and again with the next `attempt` after a crash in
   * between. The roll holds the server, also through reloads, until `act` has ended.
   */
  readonly act: (server: ServerDrained) => Promise<void>
  /**
   * How many servers go first and must be healthy before the others begin. A canary that fails stops the roll,
   * whatever `onFailure` says. @defaultValue `0`
   */
  readonly canary?: number | undefined
  /**
   * How many servers can be out at once: a number, or a percentage of the servers, rounded down and at least 1. A
   * failed server that is left drained counts. @defaultValue `1`
   */
  readonly maxUnavailable?: number | `${number}%` | undefined
  /**
   * Which members are one server: those with the same `address`, each member for itself (`ref`), or those for which a
   * function returns the same text. A member without an address is its own server.
   * @defaultValue `'address'`
   */
  readonly group?: 'address' | 'ref' | ((member: PresentReading) => string) | undefined
  /**
   * How the roll checks a server's health after it was made ready: by a check of its balancer, within 30 s (`true`)
   * or a duration; by the caller's own function; or not at all (`false`). Unless it is a function or `false`, members
   * that no balancer checks are refused at the beginning.
   * @defaultValue `true`
   */
  readonly waitHealthy?: boolean | Duration | OwnHealthCheck | undefined
  /**
   * Whether each server is brought back after `act` (`'idle'`), or taken out of its pools for good before it
   * (`'removed'`), as where machines are given back. Nothing is opened then, so there is no `waitHealthy`; the floor
   * (`keepReady`) counts what is left after each server. @defaultValue `'idle'`
   */
  readonly until?: Policy['until']
  /**
   * What to do with work left at the deadline of one server's drain. `postpone`: the server is put back, tried once
   * more after all others, and counts as failed only then. The other values are as in {@link Policy.onTimeout}:
   * `fail` leaves the server drained, and it counts as failed at once; `remove` needs `until: 'removed'`.
   * @defaultValue `'postpone'`
   */
  readonly onTimeout?: 'postpone' | 'fail' | 'terminate' | 'proceed' | 'remove' | undefined
  /**
   * What a failed server means for those that have not begun. `stop`: none begins. `continue`: the roll goes on.
   * `maxFailed`: it goes on until more than this many have failed. It goes on only while `maxUnavailable` has room
   * beside the servers that are left drained.
   * @defaultValue `'stop'`
   */
  readonly onFailure?: 'stop' | 'continue' | { readonly maxFailed: number } | undefined
  /**
   * A lease that only one roll at a time holds (`redisLease`, `natsLease`, or your own). If another contender holds
   * it, `startRoll` is refused with `NOT_LEADER`; `resumeRoll` waits for a {@link leaseTtl} and one try more, for the
   * lease of a process that died. If the roll loses the lease, nothing is changed any more, and the signal of every
   * `act` fires.
   * @defaultValue none: the floor is exact within one process only
   */
  readonly lease?: Lease | undefined
  /**
   * How long the lease is taken for. Nothing is changed once two thirds of it have passed without a renewal. At least
   * `'1s'`; a resumed roll should use the same value. @defaultValue `'15s'`
   */
  readonly leaseTtl?: Duration | undefined
  /** Called with every event. */
  readonly onEvent?: ((e: RollEvent) => void) | undefined
}

/** The options of a resumed roll; the rest is in its ticket. */
export interface ResumeRollOptions extends Pick<
  RollOptions,
  'act' | 'signal' | 'onEvent' | 'tickets' | 'onTicket' | 'clock' | 'owner' | 'lease' | 'leaseTtl'
> {
  /** The caller's own check, if the roll began with one. */
  readonly waitHealthy?: OwnHealthCheck | undefined
  /** The ticket's id, allowed so that both calls can take the same options. */
  readonly id?: string | undefined
}

/** A lease, and how long it is taken for, in milliseconds. */
export interface LeaseWish {
  readonly lease: Lease
  readonly ttl: number
}

/** How members are grouped into servers. */
type Grouping = 'address' | 'ref' | ((member: PresentReading) => string)

/** The checked options of a roll, before its size is known. */
export interface RollSettings {
  readonly act: RollOptions['act']
  readonly policy: ResolvedPolicy
  readonly onEvent: ((e: RollEvent) => void) | undefined
  readonly check: OwnHealthCheck | undefined
  readonly lease: LeaseWish | undefined
  readonly grouping: Grouping
  /** Makes the plan for a roll of that many servers. */
  readonly planFor: (size: number, subject: string) => RollData['plan']
}

const DEFAULT_HEALTH_LIMIT = 30_000
const PERCENT = /^\d{1,3}(?:\.\d{1,6})?%$/

const SERVERS = 'expected a whole number of servers from 0, such as 1'

const rollSchema = /* @__PURE__ */ once(() =>
  z.strictObject({
    act: fn(),
    onEvent: z.exactOptional(fn<NonNullable<RollOptions['onEvent']>>()),
    canary: z._default(whole(0, Infinity, SERVERS), 0),
    maxUnavailable: z._default(
      z.custom<number | string>(
        isShare,
        "expected a whole number from 1, or a percentage above 0% and up to 100% such as '10%'",
      ),
      1,
    ),
    group: z._default(
      z.union([z.enum(['address', 'ref']), fn()], "expected 'address', 'ref' or a function"),
      'address',
    ),
    waitHealthy: z.optional(z.unknown()),
    onTimeout: z._default(
      z.enum(['postpone', 'fail', 'terminate', 'proceed', 'remove']),
      'postpone',
    ),
    onFailure: z._default(
      z.union(
        [z.enum(['stop', 'continue']), z.strictObject({ maxFailed: whole(0, Infinity, SERVERS) })],
        "expected 'stop', 'continue' or { maxFailed: 2 }",
      ),
      'stop',
    ),
    lease: z.exactOptional(leaseSchema()),
    leaseTtl: leaseTtlOption(),
  }),
)

const resumeSchema = /* @__PURE__ */ once(() =>
  z.strictObject({
    act: fn(),
    ...callShape(),
    ...ticketShape(),
    id: z.exactOptional(z.string()),
    owner: z.exactOptional(z.string()),
    waitHealthy: z.exactOptional(fn()),
    lease: z.exactOptional(leaseSchema()),
    leaseTtl: leaseTtlOption(),
  }),
)

/** Every option of a roll. */
export const rollNames = /* @__PURE__ */ once(() => [
  ...new Set([...Object.keys(rollSchema().shape), ...policyNames()]),
])

function isShare(value: unknown): boolean {
  if (typeof value !== 'string') return Number.isSafeInteger(value) && Number(value) >= 1
  const percent = Number.parseFloat(value)
  return PERCENT.test(value) && percent > 0 && percent <= 100
}

/**
 * Checks the options of a roll.
 *
 * @throws `INVALID_OPTIONS` naming every wrong field
 */
export function parseRoll(o: RollOptions, subject: string): RollSettings {
  const { own, rest } = splitOptions(o, Object.keys(rollSchema().shape), rollNames(), subject)
  const given = { ...own, ...rest } as unknown as RollOptions
  const { act, waitHealthy } = given
  const isRemoved = given.until === 'removed'
  if (isRemoved) refuseNotRemoved(given, subject)
  const read = parseOptions(rollSchema(), own, subject)
  checkLeaseTtl(own, subject)
  const health = toHealth(isRemoved ? false : waitHealthy, subject)
  const late = read.onTimeout
  const failed = read.onFailure
  return {
    act,
    policy: parsePolicy(
      { ...rest, onTimeout: late === 'postpone' ? 'fail' : late },
      subject,
      rollNames(),
    ),
    onEvent: read.onEvent,
    check: typeof waitHealthy === 'function' ? waitHealthy : undefined,
    lease: toLeaseWish(read),
    grouping: read.group as Grouping,
    planFor: (size, about) => ({
      canary: checkCanary(read.canary, size, about),
      maxUnavailable: toNumber(read.maxUnavailable, size),
      maxFailed: failed === 'continue' ? null : failed === 'stop' ? 0 : failed.maxFailed,
      postpone: late === 'postpone',
      health,
    }),
  }
}

/** What has no meaning beside a removal, or would leave a server drained for good, and call it done. */
function refuseNotRemoved(
  { waitHealthy, onTimeout, ifUnsupported }: RollOptions,
  subject: string,
): void {
  const fail = (words: string): never => {
    throw new DrainableError('INVALID_OPTIONS', `${subject}: ${words}`)
  }
  if (waitHealthy !== undefined && waitHealthy !== false)
    fail(
      `waitHealthy: with until: 'removed' no server is brought back, so none is waited for; leave it out`,
    )
  if (onTimeout === 'proceed')
    fail(
      `onTimeout: 'proceed' would leave a busy server drained, and until: 'removed' takes it out: use 'remove' or 'terminate'`,
    )
  if (ifUnsupported === 'proceed')
    fail(
      `ifUnsupported: 'proceed' would leave each server drained where the balancer removes none, and until is 'removed': leave it out`,
    )
}

/** The checked options of a resumed roll. */
export interface ResumeSettings extends Omit<ResumeRollOptions, 'lease' | 'leaseTtl'> {
  readonly lease: LeaseWish | undefined
}

/** @throws `INVALID_OPTIONS` naming every wrong field */
export function parseResume(o: ResumeRollOptions, subject: string): ResumeSettings {
  const { lease, leaseTtl: ttl, ...rest } = parseOptions(resumeSchema(), o, subject)
  checkLeaseTtl(o, subject)
  const settings = rest as unknown as Omit<ResumeSettings, 'lease'>
  return { ...settings, lease: toLeaseWish({ lease, leaseTtl: ttl }) }
}

function toLeaseWish({
  lease,
  leaseTtl: ttl,
}: {
  readonly lease?: Lease | undefined
  readonly leaseTtl: number
}): LeaseWish | undefined {
  return lease === undefined ? undefined : { lease, ttl }
}

function toHealth(wish: unknown, subject: string): RollData['plan']['health'] {
  if (wish === false) return { by: 'nobody', limit: DEFAULT_HEALTH_LIMIT }
  if (wish === undefined || wish === true) return { by: 'balancer', limit: DEFAULT_HEALTH_LIMIT }
  if (typeof wish === 'function') return { by: 'caller', limit: DEFAULT_HEALTH_LIMIT }
  const limit = toHealthLimit(wish, `${subject}: waitHealthy`, 'waitHealthy: false for no check')
  return { by: 'balancer', limit: limit === Infinity ? null : limit }
}

function checkCanary(canary: number, size: number, subject: string): number {
  if (canary <= size) return canary
  throw new DrainableError(
    'INVALID_OPTIONS',
    `${subject}: canary: the roll has ${size} ${size === 1 ? 'server' : 'servers'}, found ${canary}; expected at most that many`,
  )
}

function toNumber(most: number | string, size: number): number {
  if (typeof most === 'number') return most
  return Math.max(1, Math.floor((size * Number.parseFloat(most)) / 100))
}
