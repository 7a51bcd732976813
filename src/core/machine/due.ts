import type { MachinePolicy } from './policy.js'
import { idleRule } from './proof.js'
import { ABSENCE_GAP, judgeScope } from './scopes.js'
import type { DrainState } from './state.js'

/**
 * Milliseconds until this member can change by time alone: a quiet time that runs out, a deadline, an
 * escalation, a wait before something is sent again. Null: only the balancer can bring news.
 */
export function dueIn(state: DrainState, policy: MachinePolicy, now: number): number | null {
  const { hold, goal, vanished } = state
  const moments: (number | null)[] = [
    ...endings(state, policy, now),
    hold.notBefore > now ? hold.notBefore : null,
    unseen(state, hold.yieldAt),
    ...hold.late.map((late) => unseen(state, late.until)),
    sampleAt(state, policy, now),
    vanished === null
      ? null
      : unseen(state, vanished.since + Math.max(ABSENCE_GAP, policy.capabilities.freshness)),
    ...(goal.kind === 'open' ? [later(goal.until, now), later(goal.lateUntil, now)] : []),
  ]
  const known = moments.filter((moment) => moment !== null)
  return known.length === 0 ? null : Math.max(0, Math.min(...known) - now)
}

function later(moment: number | null, now: number): number | null {
  return moment !== null && moment > now ? moment : null
}

/**
 * Drops a moment that a look asked for since has passed without a decision: only the balancer can bring news of it.
 */
function unseen({ last }: DrainState, moment: number | null): number | null {
  return moment !== null && (last === null || last.askedAt < moment) ? moment : null
}

function endings(state: DrainState, policy: MachinePolicy, now: number): (number | null)[] {
  if (state.ending.ended !== null || state.goal.kind !== 'drain') return []
  const { escalateAfter } = policy
  return [
    later(state.deadline, now),
    escalateAfter !== null && !state.hold.escalated
      ? unseen(state, state.startedAt + escalateAfter)
      : null,
    unseen(state, state.ending.terminateUntil),
  ]
}

/** The part of the freshness by which the numbers of one look can be older than those of the last. */
const JITTER = 1 / 400

/**
 * When to ask for the look whose numbers are from the awaited moment. If a product's numbers are old when they are
 * read, the look is that much later: an earlier one would show nothing.
 */
function sampleAt(state: DrainState, policy: MachinePolicy, now: number): number | null {
  const rule = idleRule(state, policy)
  if (rule === null || state.phase === 'idle' || state.last === null) return null
  const { askedAt } = state.last
  const { freshness } = policy.capabilities
  let latest: number | null = null
  for (const track of state.proof.scopes.values()) {
    const verdict = judgeScope(track, rule, now)
    const { sampledAt } = track.last
    if (verdict.idle) continue
    const { needs } = verdict
    if (needs === null) return null
    const age = Math.min(freshness, Math.max(0, askedAt - sampledAt))
    latest = Math.max(latest ?? now + 1, needs + (age > 0 ? age + freshness * JITTER : 0))
  }
  return latest
}

/** The earliest moment at which the whole rule can be met, if only time is missing. */
export function quietAt(state: DrainState, policy: MachinePolicy, now: number): number | null {
  const rule = idleRule(state, policy)
  if (rule === null || state.phase === 'idle') return null
  let latest: number | null = null
  for (const track of state.proof.scopes.values()) {
    const verdict = judgeScope(track, rule, now)
    if (verdict.idle) continue
    if (verdict.lacks !== 'quiet' && verdict.lacks !== 'second-sample') return null
    latest = Math.max(latest ?? now, now + verdict.wait)
  }
  return latest
}
