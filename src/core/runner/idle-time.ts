import { isReportedIdle } from '../machine/decide/idle.js'
import type { DrainState } from '../machine/state.js'

/**
 * Since when all members of a run have been idle, and until when that was seen, by the clock, in milliseconds. Null
 * if one of them has ended otherwise; `seen` is -Infinity if one can't be read.
 */
export function idleTime(
  states: readonly DrainState[],
): { readonly from: number; readonly seen: number } | null {
  let from = -Infinity
  let seen = Infinity
  for (const state of states) {
    const { ending, last, proof, unread } = state
    const { ended } = ending
    if (ended === null || !isReportedIdle(state) || last === null) return null
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
export function isUnseenIdle(state: DrainState): boolean {
  return isReportedIdle(state) && !state.ending.settled && state.unread !== null
}
