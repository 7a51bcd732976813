import * as z from 'zod/mini'
import type { AdminState, DrainableProvider, Health, MemberRef } from '../../provider/contract.js'
import { systemClock } from '../../provider/clock.js'
import { parseDuration, type Duration } from '../../provider/duration.js'
import { DrainableError, isDrainableError } from '../../provider/error.js'
import { once, parseOptions } from '../../provider/options.js'
import type { DrainReport, MemberReport } from '../../provider/report.js'
import { combinedOf } from '../combined.js'
import type { LeaseTerm } from '../balancer/owner.js'
import { settledWithin } from '../../provider/abort.js'
import { balancerOf } from '../balancer/balancer.js'
import { openGoal, type Goal } from '../member/wanted.js'
import { LATER_ANSWER } from '../tickets/calls.js'
import { LAST_LOOK } from '../balancer/look/call.js'
import { startFaults } from '../telemetry.js'
import { Run } from './run/run.js'
import type { OwnHealthCheck } from './run/run-spec.js'
import { callShape, checkProvider, type Call } from './call-options.js'
import { durationOption } from '../../provider/option-schemas.js'
import { claimsOn, firstLook } from './prepare-drain.js'
import { parsePolicy, type ResolvedPolicy } from './policy.js'
import { baseSpec, newKeeper } from './drain-run.js'
import { parseTarget, type ResolvedTarget, type Target } from './target.js'
import { openPolicy } from './watch-policy.js'

/** Options of {@link ready}. */
export interface ReadyOptions extends Call {
  /**
   * Whether to wait until the member is healthy: `true` waits up to 30 s, a duration up to that long. A function is
   * the caller's own check, called before the member is opened. `false` and the default only make sure that the
   * balancer has checked a member that comes out of maint.
   *
   * Healthy means that a check of the balancer passed; a member that it does not check is reported as `unchecked` at
   * once. The caller's own check is called once for each member, and fails if it
   * throws or gives `false`. When the {@link ReadyOptions.timeout} is over, its
   * signal fires and the member counts as not healthy.
   */
  readonly waitHealthy?: boolean | Duration | OwnHealthCheck | undefined
  /**
   * How long it may take until the members are ready, from the call on. `Infinity` is allowed; a bare number from 1
   * to 999 is refused. Not allowed beside a `waitHealthy` that is a duration, which means the same.
   * @defaultValue `'30s'`
   */
  readonly timeout?: Duration | undefined
}

/** The state in which {@link ready} found and left each member. */
export interface ReadyReport {
  readonly members: readonly {
    readonly ref: MemberRef
    /** The own state it was found in. */
    readonly wasAdmin: AdminState
    readonly health: Health
    /** What of it can come back, or what else a person should know: the balancer's hints at the last look. */
    readonly hints?: readonly string[]
  }[]
}

const DEFAULT_LIMIT = 30_000

/** Whether to wait for health, for how long, and the caller's own check. */
interface HealthWish {
  readonly must: boolean
  readonly limit: number
  readonly check?: OwnHealthCheck
}

const schema = once(() =>
  z.strictObject({
    ...callShape(),
    waitHealthy: z.optional(z.unknown()),
    timeout: z.exactOptional(durationOption({ infinite: true })),
  }),
)

/**
 * How long a check is waited for, in milliseconds; may be Infinity.
 *
 * @param instead - what to do where none is to be waited for
 */
export function toHealthLimit(wish: unknown, field: string, instead: string): number {
  const limit = parseDuration(wish, field, { bareSeconds: 'refuse', infinite: true })
  return limit === 0 ? refuseZero(field, instead) : limit
}

function refuseZero(field: string, instead: string): never {
  const words = `${field} is 0, in which no member is made ready: give a time such as '30s', or ${instead}`
  throw new DrainableError('INVALID_OPTIONS', words)
}

function toHealthWish(wish: unknown, timeout: number | undefined): HealthWish {
  const limit = timeout ?? DEFAULT_LIMIT
  if (limit === 0) refuseZero('ready(): timeout', 'leave it out for 30 s')
  if (wish === undefined || wish === false) return { must: false, limit }
  if (wish === true) return { must: true, limit }
  if (typeof wish === 'function')
    return { must: true, limit, check: wish as NonNullable<HealthWish['check']> }
  const waited = toHealthLimit(wish, 'ready(): waitHealthy', 'leave it out to wait for none')
  if (timeout === undefined) return { must: true, limit: waited }
  throw new DrainableError(
    'INVALID_OPTIONS',
    'ready(): timeout: waitHealthy is a duration, which says the same: give one of the two, or waitHealthy: true',
  )
}

/**
 * Makes members ready, whichever client drained them; every drain of this process lets go of them.
 *
 * A member in maint goes through drain: no checks run in maint and HAProxy calls a server UP the moment it leaves it,
 * so the call waits for the first check before it opens the member. If a hold of this process has no answer yet, the
 * call keeps looking until that hold can't be carried out any more.
 *
 * @param provider - the balancer, or several as one ({@link combineProviders})
 * @param target - what to make ready: one member, a list, a pool, or an address in all pools
 * @param options - whether to wait for a passed check, and how long
 * @throws `NOT_FOUND` if the target matches nothing
 * @throws `HEALTH_TIMEOUT` if no check passed in time; the member then stays as it is, in drain
 * @throws `CONFLICT` if another client sets it back, `DRAIN_OVERRULED` if a later drain of this process took it
 *
 * @example
 * ```ts
 * import { ready, type DrainableProvider } from 'drainable'
 *
 * export async function back(lb: DrainableProvider, answers: () => Promise<void>): Promise<void> {
 *   await ready(lb, { pool: 'web', member: 'web1' }, { waitHealthy: '60s' }) // a check of the balancer
 *   await ready(lb, { pool: 'web', member: 'web2' }, { waitHealthy: answers, timeout: '60s' }) // one of our own
 * }
 * ```
 */
export async function ready(
  provider: DrainableProvider,
  target: Target,
  options: ReadyOptions = {},
): Promise<ReadyReport> {
  const subject = 'ready()'
  checkProvider(provider, subject)
  return readyUnder(provider, target, options, subject)
}

/** Does the same on one balancer or on several, under a lease if there is one. @param ended - hears the report of each */
export async function readyUnder(
  provider: DrainableProvider,
  target: Target,
  options: ReadyOptions,
  subject: string,
  term?: LeaseTerm,
  ended?: (report: DrainReport) => void,
): Promise<ReadyReport> {
  const parsed = parseTarget(target, subject)
  const combined = combinedOf(provider)
  if (combined === undefined) return openReady(provider, parsed, options, subject, term, ended)
  const { clock = systemClock, signal = new AbortController().signal } = parseOptions(
    schema(),
    options,
    subject,
  )
  const its = { ...options, clock, signal }
  return combined.ready(target, its, subject, (part, own, call, tell) =>
    readyUnder(part, own, call, subject, term, tell),
  )
}

/** Makes a target ready; the target is already checked. */
export async function openReady(
  provider: DrainableProvider,
  target: ResolvedTarget,
  options: ReadyOptions,
  subject: string,
  term?: LeaseTerm,
  ended?: (report: DrainReport) => void,
): Promise<ReadyReport> {
  const { waitHealthy, timeout, ...call } = parseOptions(schema(), options, subject)
  const { must, limit, check } = toHealthWish(waitHealthy, timeout)
  const base = parsePolicy({}, subject)
  const resolved: ResolvedPolicy = {
    ...base,
    data: { ...base.data, timeout: limit === Infinity ? null : Math.max(limit, LAST_LOOK) },
    clock: call.clock ?? systemClock,
    signal: call.signal,
    onEvent: call.onEvent,
    term,
  }
  call.signal?.throwIfAborted()
  const keeper = newKeeper(resolved, provider)
  let opening: Promise<void> | undefined
  const run = new Run({
    ...baseSpec(provider, resolved, subject, startFaults(provider, resolved.onEvent)),
    side: 'open',
    refs: target.kind === 'members' ? target.refs : undefined,
    keeper: () => keeper,
    ...(check === undefined ? {} : { check }),
    prepare: async (context) => {
      const { scheduler, signal, startedAt } = context
      const info = await scheduler.describe(signal, context.limit())
      const { look, readings } = await firstLook(scheduler, target, context)
      const goal = openGoal({
        of: 'anybody',
        since: startedAt,
        until: limit === Infinity ? null : startedAt + limit,
        lateUntil: null,
        mustBeHealthy: must,
        check: check === undefined ? 'none' : 'due',
      })
      const closed = readings.filter((one) => one.present && one.own !== 'ready')
      // Not waited for here: its claims must be laid before a drain that is ending has its outcome.
      opening = balancerOf(provider, resolved.clock).left.opening(closed.map(({ ref }) => ref))
      const start = { goal, policy: openPolicy(info.capabilities), startedAt, deadline: null }
      return { claims: claimsOn(readings, start), keeper: undefined, first: look }
    },
  })
  const report = await run.done
  ended?.(report)
  if (report.outcome === 'aborted' && call.signal?.aborted === true) throw call.signal.reason
  throwUnlessOpened(report, subject)
  const { clock } = resolved
  const refs = report.members.map(({ ref }) => ref)
  const deleting = balancerOf(provider, clock).left.opened(refs)
  // A caller may delete a ticket that is not over by this, and no write of ours may come after.
  await settledWithin(Promise.all([opening, deleting]), clock, LATER_ANSWER)
  return {
    members: report.members.map((member, i) => opened(member, run.claimedMembers[i]?.claim.goal)),
  }
}

/**
 * Throws the error that kept a member from being opened; the error of an overruled opening carries the whole report.
 */
function throwUnlessOpened(report: DrainReport, subject: string): void {
  const error = report.error ?? report.members.find((member) => member.error !== undefined)?.error
  if (isDrainableError(error, 'DRAIN_OVERRULED')) {
    const { code, message, ref } = error
    const data = { report, cause: error, ...(ref === undefined ? {} : { ref }) }
    throw new DrainableError(code, message, data)
  }
  if (error !== undefined) throw error
  if (report.outcome !== 'restored')
    throw new DrainableError('CONFLICT', `${subject}: it ended as ${report.outcome}`)
}

function opened(member: MemberReport, goal: Goal | undefined): ReadyReport['members'][number] {
  const { ref, lastReading, wasAdmin } = member
  const { health = 'unknown', hints = [] } = lastReading?.present === true ? lastReading : {}
  return {
    ref,
    wasAdmin: (goal?.kind === 'open' ? goal.wasAdmin : null) ?? wasAdmin,
    health,
    ...(hints.length === 0 ? {} : { hints }),
  }
}
