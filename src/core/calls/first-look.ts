import type { MemberRef, Reading, Snapshot } from '../../provider/contract.js'
import { DrainableError } from '../../provider/error.js'
import { formatRef, isSameIdentity } from '../../provider/member-ref.js'
import { quote } from '../../provider/quote.js'
import type { SeenLook } from '../balancer/look/look.js'
import type { Left } from '../member/input.js'
import { emptyLedger } from '../member/record.js'
import type { PreparedClaim, RunContext } from './run/run-spec.js'
import type { Scheduler } from '../balancer/look/scheduler.js'
import { notFound } from '../balancer/look/not-found.js'
import { pick, refuseKey, type ResolvedTarget } from './target.js'

/**
 * Takes the first look at a target: returns the members that it matches, and the look itself.
 *
 * @throws `NOT_FOUND` if nothing matches, `INVALID_OPTIONS` if the target names a balancer, or the balancer's own error
 */
export async function firstLook(
  scheduler: Scheduler,
  target: ResolvedTarget,
  { signal, limit }: Pick<RunContext, 'signal' | 'limit'>,
): Promise<{ readonly look: SeenLook; readonly readings: readonly Reading[] }> {
  if (target.kind === 'members' && target.planned !== undefined) {
    const { look, identity } = target.planned
    const hit = pick(target, look.snapshot)
    if ('missing' in hit) throw notFound(hit.missing, look.snapshot)
    const { readings } = hit
    for (const reading of readings) checkIdentity(reading, identity)
    return { look, readings }
  }
  refuseKey(target)
  const refs = await refsOf(scheduler, target, signal, limit())
  const look = await scheduler.look(refs, signal, limit())
  const hit = pick(target, look.snapshot)
  if ('readings' in hit) return { look, readings: hit.readings }
  const all = refs === 'all' ? undefined : await lookAtAll(scheduler, signal, limit())
  throw notFound(hit.missing, look.snapshot, all)
}

/** Takes one more look, only for the message: to suggest the name that was probably meant. */
async function lookAtAll(
  scheduler: Scheduler,
  signal: AbortSignal,
  limit: number,
): Promise<Snapshot | undefined> {
  try {
    return (await scheduler.look('all', signal, limit)).snapshot
  } catch {
    signal.throwIfAborted()
    return undefined
  }
}

/** Refuses a member whose name belongs to another server since the plan: the plan did not decide about that one. */
function checkIdentity(reading: Reading, identity: string | undefined): void {
  if (identity === undefined || !reading.present) return
  if (isSameIdentity(reading.identity, identity)) return
  const { ref } = reading
  throw new DrainableError(
    'CONFLICT',
    `${formatRef(ref)} is another member now: ${quote(reading.identity)}, and not ${quote(identity)}; nothing was changed, plan again`,
    { ref, retryable: true },
  )
}

async function refsOf(
  scheduler: Scheduler,
  target: ResolvedTarget,
  signal: AbortSignal,
  limit: number,
): Promise<readonly MemberRef[] | 'all'> {
  if (target.kind === 'members') return target.refs
  if (target.address === undefined) return 'all'
  return (await scheduler.find(target.address, signal, limit)) ?? 'all'
}

/**
 * The member that is meant. A record that waits for a lost change of ours may be of an earlier member with this name: then it
 * says nothing of this one.
 */
export function foundNow(reading: Reading, now: number): Left | undefined {
  if (!reading.present) return undefined
  const { identity, own, serves, native = null } = reading
  return { ledger: { ...emptyLedger(now), found: { identity, own, serves, native } } }
}

/** Claims on members as the first look found them. */
export function claimsOn(
  readings: readonly Reading[],
  start: PreparedClaim['start'],
): readonly PreparedClaim[] {
  return readings.map((reading) => {
    return { ref: reading.ref, start, left: foundNow(reading, start.startedAt) }
  })
}
