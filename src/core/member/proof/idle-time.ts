import type { Sight } from '../sight.js'
import { isReportedIdle } from '../idle.js'

/**
 * Since when all members of a run have been idle, and until when that was seen, by the clock, in milliseconds. Null
 * if one of them has ended otherwise; `seen` is -Infinity if one can't be read.
 */
export function idleTime(
  sights: readonly Sight[],
): { readonly from: number; readonly seen: number } | null {
  let from = -Infinity
  let seen = Infinity
  for (const { claim, facts } of sights) {
    const { ending, proof } = claim
    const { last, unread } = facts
    const { ended } = ending
    if (ended === null || !isReportedIdle(claim) || last === null) return null
    // Nothing arrived since the first of its two samples.
    const [first] = proof.proof?.samples ?? []
    const proved = Math.max(...(first?.scopes ?? []).map(({ sampledAt }) => sampledAt))
    // An ended process is in no sample, and may have had work until shortly before the verdict.
    const alive = proof.ended === 0 ? -Infinity : (proof.verdict?.at ?? ended.at)
    from = Math.max(from, alive, Number.isFinite(proved) ? proved : ended.at)
    seen = Math.min(seen, unread === null ? last.askedAt : -Infinity)
  }
  return { from, seen }
}

/**
 * Whether a member was idle while others went on, but can't be read now: it is not known whether it is still idle.
 */
export function isUnseenIdle({ claim, facts }: Sight): boolean {
  return isReportedIdle(claim) && !claim.ending.settled && facts.unread !== null
}
