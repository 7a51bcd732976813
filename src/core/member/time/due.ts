import { idleRule } from '../proof/prove.js'
import type { Claim, Facts } from '../record.js'
import type { Sight } from '../sight.js'
import { ABSENCE_GAP, judgeScope } from '../proof/scopes.js'

/**
 * Milliseconds until this member can change by time alone: a quiet time that runs out, a deadline, an
 * escalation, a wait before something is sent again. Null: only the balancer can bring news.
 */
export function dueIn(sight: Sight, now: number): number | null {
  const { claim, facts, ledger } = sight
  const { goal, policy } = claim
  const { vanished } = facts
  const moments: (number | null)[] = [
    ...endings(sight, now),
    later(ledger.notBefore, now),
    unseen(facts, claim.yieldAt),
    ...ledger.late.map((late) => unseen(facts, late.until)),
    sampleAt(sight, now),
    vanished === null
      ? null
      : unseen(facts, vanished.since + Math.max(ABSENCE_GAP, policy.capabilities.freshness)),
    ...(goal.kind === 'open' ? [later(goal.until, now), later(goal.lateUntil, now)] : []),
  ]
  const known = moments.filter((moment) => moment !== null)
  return known.length === 0 ? null : Math.max(0, Math.min(...known) - now)
}

/** When a claim gives up, whatever became of it by then; `Infinity`: never. */
export function givesUpAt({ goal, ending, deadline }: Claim): number {
  if (ending.ended !== null) return Infinity
  return (goal.kind === 'open' ? goal.until : goal.kind === 'drain' ? deadline : null) ?? Infinity
}

function later(moment: number | null, now: number): number | null {
  return moment !== null && moment > now ? moment : null
}

/**
 * Drops a moment that a look asked for since has passed without a decision: only the balancer can bring news of it.
 */
function unseen({ last }: Facts, moment: number | null): number | null {
  return moment !== null && (last === null || last.askedAt < moment) ? moment : null
}

function endings({ claim, facts }: Sight, now: number): (number | null)[] {
  const { ending, goal, policy, escalated, startedAt, deadline } = claim
  if (ending.ended !== null || goal.kind !== 'drain') return []
  const { escalateAfter } = policy
  return [
    later(deadline, now),
    escalateAfter !== null && !escalated ? unseen(facts, startedAt + escalateAfter) : null,
    unseen(facts, ending.terminateUntil),
  ]
}

/** The part of the freshness by which the numbers of one look can be older than those of the last. */
const JITTER = 1 / 400

/**
 * When to ask for the look whose numbers are from the awaited moment. If a product's numbers are old when they are
 * read, the look is that much later: an earlier one would show nothing.
 */
function sampleAt(sight: Sight, now: number): number | null {
  const { claim, facts } = sight
  const rule = idleRule(sight)
  if (rule === null || claim.phase === 'idle' || facts.last === null) return null
  const { askedAt } = facts.last
  const { freshness } = claim.policy.capabilities
  let latest: number | null = null
  for (const track of claim.proof.scopes.values()) {
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
