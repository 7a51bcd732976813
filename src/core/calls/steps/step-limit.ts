import type { Capabilities } from '../../../provider/contract.js'
import { formatDuration } from '../../../provider/duration.js'
import { DrainableError } from '../../../provider/error.js'
import { proofTime, type ResolvedPolicy } from '../policy.js'

/** Beyond the proof itself a step waits for slow answers, and for a cut to show, in milliseconds. */
const SLACK = 2_000
const CUT_SLACK = 6_000
/** The quiet time of a product that does not count arrivals, in milliseconds. */
const WITHOUT_ARRIVALS = 3_000

/** How long a step goes on, in milliseconds: for as long as one proof can need. */
export function stepLimit(
  { data }: ResolvedPolicy,
  capabilities: Capabilities,
  limit: number | undefined,
  subject: string,
): number {
  const { settle, onTimeout, until } = data
  const { blind, freshness, lateBound } = capabilities
  const proof = Math.max(proofTime(data, capabilities), Math.max(settle, blind) + 2 * freshness)
  if (limit !== undefined && limit < proof) {
    const words = `limit is ${formatDuration(limit)}, expected at least ${formatDuration(proof)}: one proof needs that long here, and the next step begins anew`
    throw new DrainableError('INVALID_OPTIONS', `${subject}: ${words}`)
  }
  // A removal waits for lost changes, and the next step would wait anew.
  const late = until === 'removed' ? lateBound : 0
  const slack = onTimeout === 'terminate' || onTimeout === 'remove' ? CUT_SLACK : SLACK
  return limit ?? Math.max(proof, WITHOUT_ARRIVALS) + slack + late
}
