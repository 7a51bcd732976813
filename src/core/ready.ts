import { z } from 'zod'
import type { AdminState, DrainableProvider, Health, MemberRef } from '../provider/contract.js'
import { systemClock } from '../provider/clock.js'
import { parseDuration, type Duration } from '../provider/duration.js'
import { parseOptions } from '../provider/options.js'
import { yieldClaims } from './claims.js'
import { firstLook } from './first-look.js'
import { laneOf } from './lane.js'
import { callShape, type Call } from './policy.js'
import { QUIET_LIMIT, reopen } from './reopen.js'
import { parseTarget, type Target } from './target.js'

/** Options of {@link ready}. */
export interface ReadyOptions extends Call {
  /**
   * Whether to wait until the member is healthy: `true` waits 30 s, a duration that long, a function
   * is the caller's own check, asked before the door is opened. `false`, and the default, only make
   * sure that the balancer has looked at a member that comes out of maint.
   *
   * Healthy means that a check of the balancer passed; a member it does not check is reported as
   * `unchecked` at once.
   */
  readonly waitHealthy?:
    boolean | Duration | ((ref: MemberRef, signal: AbortSignal) => Promise<void>)
}

/** What {@link ready} found and left. */
export interface ReadyReport {
  readonly members: readonly {
    readonly ref: MemberRef
    /** The own state it was found in. */
    readonly wasAdmin: AdminState
    readonly health: Health
  }[]
}

const DEFAULT_LIMIT = 30_000

/** Whether to wait, for how long, and the caller's own check. */
interface HealthWish {
  readonly must: boolean
  readonly limit: number
  readonly check?: (ref: MemberRef, signal: AbortSignal) => Promise<void>
}

const schema = z.strictObject({ ...callShape, waitHealthy: z.unknown().optional() })

function toHealthWish(wish: unknown): HealthWish {
  if (wish === undefined || wish === false) return { must: false, limit: DEFAULT_LIMIT }
  if (wish === true) return { must: true, limit: DEFAULT_LIMIT }
  if (typeof wish === 'function')
    return { must: true, limit: Infinity, check: wish as HealthWish['check'] & object }
  return {
    must: true,
    limit: parseDuration(wish, 'ready(): waitHealthy', { bareSeconds: 'refuse', infinite: true }),
  }
}

/**
 * Makes members ready, whoever drained them, and lets every drain of this process go of them.
 *
 * A member in maint goes by way of drain: no checks run in maint and HAProxy calls a server UP the
 * moment it leaves it, so the first check is waited for before the door is opened.
 *
 * @throws `NOT_FOUND` where the target hits nothing
 * @throws `HEALTH_TIMEOUT` where no check passed in time; the member stays as it is then, under drain
 */
export async function ready(
  p: DrainableProvider,
  target: Target,
  o: ReadyOptions = {},
): Promise<ReadyReport> {
  const given = parseOptions(schema, o, 'ready()')
  const { must, limit, check } = toHealthWish(given.waitHealthy)
  const signal = given.signal ?? new AbortController().signal
  const lane = laneOf(p, given.clock ?? systemClock)
  const { readings } = await firstLook(lane, parseTarget(target, 'ready()'), signal)
  for (const { ref } of readings) yieldClaims(p, ref)
  const refs = readings.map(({ ref }) => ref)
  await lane.quiet(refs, QUIET_LIMIT, signal)
  const wishes = readings.map(({ ref }) => ({ ref, to: 'ready' as const, from: 'any' as const }))
  const members = await reopen(lane, wishes, {
    signal,
    mustBeHealthy: must,
    limit,
    ...(check === undefined ? {} : { check }),
  })
  for (const member of members) if (member.error !== undefined) throw member.error
  return { members: members.map(({ ref, wasAdmin, health }) => ({ ref, wasAdmin, health })) }
}
