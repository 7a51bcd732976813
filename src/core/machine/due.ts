import { idleRule } from './proof.js'
import { judgeScope } from './scopes.js'
import type { DrainState, MachinePolicy } from './state.js'

/**
 * Milliseconds until this member can change by time alone: a quiet time that runs out, a deadline, an
 * escalation, a wait before something is sent again. Null: only the balancer can bring news.
 */
export function dueIn(state: DrainState, policy: MachinePolicy, now: number): number | null {
  const moments: number[] = []
  if (state.ended === null) {
    if (state.deadline !== null && now < state.deadline) moments.push(state.deadline)
    const { escalateAfter } = policy
    if (escalateAfter !== null && !state.escalated) moments.push(state.startedAt + escalateAfter)
    if (state.terminateUntil !== null) moments.push(state.terminateUntil)
  }
  if (state.notBefore > now) moments.push(state.notBefore)
  if (state.pending?.lateUntil != null) moments.push(state.pending.lateUntil)
  const quiet = quietAt(state, policy, now)
  if (quiet !== null) moments.push(quiet)
  return moments.length === 0 ? null : Math.max(0, Math.min(...moments) - now)
}

/** The earliest moment the whole rule can be satisfied, where that is a matter of time alone. */
function quietAt(state: DrainState, policy: MachinePolicy, now: number): number | null {
  const rule = idleRule(state, policy)
  if (rule === null || state.phase === 'idle') return null
  let latest: number | null = null
  for (const track of Object.values(state.scopes)) {
    const verdict = judgeScope(track, rule, now)
    if (verdict.idle) continue
    if (verdict.lacks !== 'quiet' && verdict.lacks !== 'second-sample') return null
    latest = Math.max(latest ?? now, now + verdict.wait)
  }
  return latest
}

/** In flight and queued as last read; null where that is not known. */
export function workOf(state: DrainState): number | null {
  const tracks = Object.values(state.scopes)
  if (state.blind !== null || tracks.length === 0) return null
  let sum = 0
  for (const { last } of tracks) {
    if (last.state === 'unread') return null
    if (last.state === 'read') sum += last.active + last.queued
  }
  return sum
}

/** For how long the number of {@link workOf} has not moved, in milliseconds. */
export function unchangedFor(state: DrainState, now: number): number {
  const since = Object.values(state.scopes).map((track) =>
    Math.max(track.steadySince, track.quietFrom),
  )
  return since.length === 0 ? 0 : Math.max(0, now - Math.max(...since))
}
