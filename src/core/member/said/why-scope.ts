import { isInForce } from '../../../provider/member-ref.js'
import type { LoadScope } from '../../../provider/contract.js'
import { formatDuration } from '../../../provider/duration.js'
import { inWishedState } from '../proof/prove.js'
import type { ScopeTrack } from '../record.js'
import { neededState, type ClaimedMember } from '../claimed.js'
import { NOT_LISTED } from '../proof/scopes.js'
import type { Say } from '../open-waits.js'

/** Work in flight for at least this long without a change is reported as long-lived, in milliseconds. */
const LONG_LIVED = 60_000

const LONG_LIVED_HINT =
  "long-lived connections end when their clients go; onTimeout: 'terminate' cuts what is left at the deadline"

const IN_FLIGHT_HINT =
  "it ends with the requests; the timeout bounds the wait, and onTimeout: 'terminate' cuts what is left"

/** Explains what one process still holds, what has come to it, and whether it has taken the drain. */
export function explainScope(
  track: ScopeTrack,
  claimed: ClaimedMember,
  now: number,
  say: Say,
): void {
  const { claim, facts } = claimed
  const scope = track.last
  const where = { scope: scope.scope }
  if (scope.state !== 'read') {
    // A balancer that can't be read is named already.
    if (facts.unread === null) explainUnread(scope, say)
    return
  }
  const came = arrivedSinceEffect(track)
  if (came > 0 && scope.queued === 0) {
    say('persistence', `${came} more arrived after the drain took effect (persistent clients)`, {
      ...where,
      count: came,
      hint: elsewhere(claimed, now),
    })
  }
  if (scope.active > 0) explainActive(track, now, say)
  if (scope.queued > 0) {
    say('queued', `${scope.queued} queued for this member`, {
      ...where,
      count: scope.queued,
      hint: "the member serves them as its work ends, or they leave at the balancer's queue timeout",
    })
  }
  const watched = claim.goal.kind === 'watch' && inWishedState(claimed)
  const held = claim.held || watched
  if (!isInForce(scope, neededState(claim)) && (held || scope.old === true)) {
    const stays = scope.inForce !== false && scope.admin !== undefined
    const code = scope.old === true && stays ? 'old-scope' : 'not-in-force'
    const what = stays ? `is at ${scope.admin}` : 'has not taken the drain'
    say(code, `${scope.scope} ${what}${noted(scope)}: it may still send new work`, {
      ...where,
      hint:
        code === 'old-scope'
          ? OLD_ENDS
          : 'if this lasts, check that this process can be reached and takes changes',
    })
  }
}

/** What bounds the life of a process that was replaced: a HAProxy or an Envoy. */
const OLD_ENDS =
  'the drain waits until it ends; hard-stop-after, or a shorter drain time of the proxy, bounds the wait'

/** What sends persistent clients elsewhere: what the caller has asked for already, or could. */
function elsewhere({ claim }: ClaimedMember, now: number): string {
  const { escalateAfter } = claim.policy
  if (claim.escalated) return 'it was raised to maint, which sends them elsewhere'
  if (claim.wish === 'maint')
    return 'it is in maint: look for clients that are sent to it by its name'
  if (escalateAfter === null)
    return "use escalateAfter or hold: 'maint' to send persistent clients elsewhere"
  const left = Math.max(0, claim.startedAt + escalateAfter - now)
  return `escalateAfter sends them elsewhere, in ${formatDuration(left)}`
}

function explainActive(track: ScopeTrack, now: number, say: Say): void {
  const { last: scope, steadySince } = track
  const { active, oldest = 0 } = scope
  const more = { scope: scope.scope, count: active, ...(oldest > 0 && { oldest }) }
  const aged = saidAge(scope)
  if (scope.old === true) {
    say(
      'old-scope',
      `${active} still in flight on ${scope.scope}, which was replaced${noted(scope)}${aged}`,
      { ...more, hint: OLD_ENDS },
    )
    return
  }
  const steady = now - steadySince
  const isLong = Math.max(steady, oldest) >= LONG_LIVED
  const hint = isLong ? LONG_LIVED_HINT : IN_FLIGHT_HINT
  say('in-flight', `${active} in flight${aged}`, { ...more, hint })
  if (!isLong) return
  const unchanged = steady >= LONG_LIVED ? `, unchanged for ${formatDuration(steady)}` : ''
  say('long-lived', `${active} in flight${unchanged}${aged}`, { ...more, hint })
}

/** The age of the oldest work, if the product reports it. */
function saidAge({ active, oldest }: LoadScope): string {
  if (oldest === undefined || oldest < 1_000) return ''
  return `, ${active === 1 ? '' : 'the oldest '}for ${formatDuration(oldest)}`
}

function arrivedSinceEffect(track: ScopeTrack): number {
  if (track.arrivalsAtEffect === null || track.last.arrivals === undefined) return 0
  return Math.max(0, track.last.arrivals - track.arrivalsAtEffect)
}

/** What the product says of the process beside its numbers. */
export function noted(scope: LoadScope): string {
  return scope.note === undefined ? '' : ` (${scope.note})`
}

function explainUnread(scope: LoadScope, say: Say): void {
  say('unreadable', `${scope.scope} can't be read${noted(scope)}: its load is unknown`, {
    scope: scope.scope,
    hint: untilRead(scope),
  })
}

/** What would end the wait for a process that can't be read. */
function untilRead({ note, old }: LoadScope): string {
  if (note === NOT_LISTED)
    return "the drain waits until the provider lists it again or reports its end: connect to an endpoint that shows every process, or see the provider's option for old processes"
  if (old === true)
    return "the drain waits until it has ended. If it never does, end it yourself, which cuts what it still holds, or see the provider's option for old processes"
  return 'make it readable, or wait until it has ended'
}
