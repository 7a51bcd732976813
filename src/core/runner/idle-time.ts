import type { DrainState } from '../machine/state.js'

/**
 * Since when all members of a run have been idle, and until when that was seen: by the clock, in milliseconds. Null where
 * one of them has ended otherwise; `seen` is -Infinity where one can't be read.
 */
export function idleTime(
  states: readonly DrainState[],
): { readonly from: number; readonly seen: number } | null {
  let from = -Infinity
  let seen = Infinity
  for (const { ending, last, proof, unread } of states) {
    const { ended } = ending
    if (ended?.outcome !== 'idle' || last === null) return null
    // From the first of its two samples on nothing arrived.
    const [first] = proof.proof?.samples ?? []
    const proved = Math.max(...(first?.scopes ?? []).map(({ sampledAt }) => sampledAt))
    // A process that has ended is in no sample, and may have worked until shortly before the verdict.
    const alive = proof.ended === 0 ? -Infinity : (proof.verdict?.at ?? ended.at)
    from = Math.max(from, alive, Number.isFinite(proved) ? proved : ended.at)
    seen = Math.min(seen, unread === null ? last.askedAt : -Infinity)
  }
  return { from, seen }
}

/** Idle while others went on, and not readable now: whether it is so still is not known. */
export function isUnseenIdle({ ending, unread }: DrainState): boolean {
  return ending.ended?.outcome === 'idle' && !ending.settled && unread !== null
}
