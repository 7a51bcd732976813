import type { MemberRef, Reading } from '../../provider/contract.js'
import { DrainableError } from '../../provider/error.js'
import { formatRef } from '../../provider/member-ref.js'
import { quote } from '../../provider/quote.js'
import type { SeenLook } from '../runner/look/look.js'
import type { RunContext } from '../runner/run-spec.js'
import type { Scheduler } from '../runner/look/scheduler.js'
import { pick, type ResolvedTarget } from './target.js'

/**
 * The first look at a target: what it hits, and the look itself.
 *
 * @throws `NOT_FOUND` where nothing is hit, or what the balancer failed with
 */
export async function firstLook(
  scheduler: Scheduler,
  target: ResolvedTarget,
  { signal, limit }: Pick<RunContext, 'signal' | 'limit'>,
): Promise<{ readonly look: SeenLook; readonly readings: readonly Reading[] }> {
  if (target.kind === 'members' && target.planned !== undefined) {
    const { look, identity } = target.planned
    const readings = pick(target, look.snapshot)
    for (const reading of readings) checkIdentity(reading, identity)
    return { look, readings }
  }
  const refs = await refsOf(scheduler, target, signal, limit())
  const look = await scheduler.look(refs, signal, limit())
  return { look, readings: pick(target, look.snapshot) }
}

/** A name that another server has got since is another member: nothing was decided about that one. */
function checkIdentity(reading: Reading, identity: string | undefined): void {
  if (identity === undefined || !reading.present || reading.identity === identity) return
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
