import { isInForce } from '../../provider/admin-state.js'
import type { LoadScope } from '../../provider/contract.js'
import { formatDuration } from '../../provider/duration.js'
import { formatRef } from '../../provider/member-ref.js'
import { printable } from '../../provider/quote.js'
import type { Outcome, Why } from '../../provider/report.js'
import { targetOf } from './ledger/changes.js'
import type { MachinePolicy } from './policy.js'
import { idleRule, inWishedState } from './proof.js'
import { ABSENCE_GAP, judgeScope, NOT_LISTED, type IdleRule } from './scopes.js'
import { neededState, ownOf, setterOf, type DrainState, type ScopeTrack } from './state.js'
import { explainOpen, explainUnknown, explainVanished, type Say } from './why-open.js'

/** Work in flight for at least this long without a change is reported as long-lived, in milliseconds. */
const LONG_LIVED = 60_000

const LONG_LIVED_HINT =
  "long-lived connections end when their clients go; onTimeout: 'terminate' cuts what is left at the deadline"

const IN_FLIGHT_HINT =
  "it ends with the requests; the timeout bounds the wait, and onTimeout: 'terminate' cuts what is left"

/**
 * Explains why a member is not idle or not open again, or why its idle is not verified: the answer to a stuck deploy.
 * The first reason is the most important one.
 *
 * @param wallOffset - epoch milliseconds minus the run's clock, to print times in the text
 */
export function explain(
  state: DrainState,
  policy: MachinePolicy,
  now: number,
  wallOffset: number,
): readonly Why[] {
  if (succeeded(state)) return unverified(state)
  const list: Why[] = []
  const say: Say = (code, text, more = {}) =>
    void list.push({ code, ref: state.ref, text: printable(text), ...more })
  explainChanges(state, wallOffset, say)
  explainUndo(state, say)
  if (state.unread !== null) {
    say('unreadable', `the balancer can't be read: ${state.unread.error.message}`, {
      hint: "a load that can't be read is unknown, never zero; the last numbers are older",
    })
  }
  if (state.phase === 'idle' && state.unread === null) {
    if (list.length === 0) explainNext(state, say)
    return [...list, ...unverified(state)]
  }
  if (state.goal.kind === 'open') explainOpen(state, now, say)
  else {
    for (const track of state.proof.scopes.values()) explainScope(track, state, now, say)
    explainState(state, say)
    if (list.length === 0) explainWait(state, policy, now, say)
    if (list.length === 0 && isWaiting(state)) explainVanished(state, say)
    for (const hint of hintsOf(state, list)) say(list[0]?.code ?? 'in-flight', hint)
  }
  if (list.length > 0) return list
  explainNext(state, say)
  return [...list, ...unverified(state)]
}

/** Nothing blocks the drain: names what it waits for next. */
function explainNext(state: DrainState, say: Say): void {
  const { ref, goal, last, hold, ending } = state
  if (goal.kind === 'watch' || last === null || !isWaiting(state)) return
  const { pending } = hold
  if (ending.ended !== null && pending === null) return
  const name = formatRef(ref)
  const more = { hint: 'nothing to do but wait' }
  if (hold.yieldAt !== null) {
    const words = 'since it was held, too few other members serve'
    say('pool-at-minimum', `${name}: ${words}; it will be opened again unless that changes`, more)
    return
  }
  if (pending !== null) {
    say('not-in-force', `${name}: '${pending.change.kind}' has no answer yet`, more)
    return
  }
  say('settling', `${name}: the next look decides`, more)
}

/** Whether the drain reached its goal: then nothing is left to explain. */
function succeeded({ ending, phase }: DrainState): boolean {
  const outcome = ending.ended?.outcome
  if (outcome === 'idle') return phase === 'idle'
  return outcome === 'removed' || outcome === 'restored' || outcome === 'terminated'
}

/** Explains our own changes that have not succeeded: refused, held back by the floor, or not answered. */
function explainChanges(state: DrainState, wallOffset: number, say: Say): void {
  const { hold } = state
  const name = formatRef(state.ref)
  if (hold.refusal !== null) {
    const { change, error } = hold.refusal
    // A change is not sent before its ticket is saved, so the balancer was not asked.
    const isUnsent = error.code === 'TICKET_INVALID'
    const how = isUnsent ? 'was not sent' : 'was refused by the balancer'
    say('refused', `${name}: '${change.kind}' ${how}: ${error.message}`, {
      hint: error.retryable && !isUnsent ? 'it is tried again' : 'it is not tried again',
    })
  }
  if (hold.atMinimum) {
    say(
      'pool-at-minimum',
      `${name} is held back: the pool would keep fewer serving members than keepReady`,
      {
        hint: 'wait for a replacement to serve, or lower keepReady (keepReady: 0 lets the last one go)',
      },
    )
  }
  const by = hold.loss === null ? '' : ` (${hold.loss.message})`
  for (const { change, until, underWay, refused } of hold.late) {
    // A late change that repeats the state already in place changes nothing.
    const inPlace = hold.confirmed !== 'none' || targetOf(change) === ownOf(state)
    const harmless = state.goal.kind === 'drain' && change.kind === 'hold' && inPlace
    if (harmless || refused === true) continue // a refusal is an answer, reported above
    const blocker = underWay === true ? 'its call goes on' : 'the balancer does not answer'
    const when =
      until === null
        ? `for as long as ${blocker}, and some time after`
        : `until ${new Date(until + wallOffset).toISOString()}`
    say(
      'not-in-force',
      `${name}: the answer to '${change.kind}' was lost${by}; the balancer may still carry it out ${when}`,
      { hint: 'nothing to do but wait' },
    )
  }
}

/** Explains an undo that another run of this process sent and that has no answer yet. */
function explainUndo({ ref, last, goal }: DrainState, say: Say): void {
  if (last?.mayOpen !== true || goal.kind !== 'drain') return
  say(
    'not-in-force',
    `${formatRef(ref)}: another call of this process is opening it and has no answer yet: the balancer may still carry it out`,
    { hint: 'nothing to do but wait' },
  )
}

function explainState(state: DrainState, say: Say): void {
  const { last, hold, goal } = state
  if (goal.kind !== 'drain' || last?.reading.present !== true || hold.pending !== null) return
  const { own } = last.reading
  const name = formatRef(state.ref)
  if (own === 'unknown') {
    explainUnknown(name, last.reading.hints, say)
    return
  }
  // Name another client only if a look that began after our own last change shows its state.
  if (inWishedState(state) || !hold.overruled || last.askedAt <= hold.confirmedAt) return
  say(
    'overruled',
    `${name} is ${own}: ${setterOf(state)} set that state; this drain wants ${hold.wish}`,
    {
      hint: "agree with the other client and drain again, or let onOverrule: 'reapply' put the state back",
    },
  )
}

/** Hints of the provider beside its numbers, only if there is something to explain. */
function hintsOf({ last }: DrainState, list: readonly Why[]): readonly string[] {
  const reading = last?.reading
  return reading?.present === true && list.length > 0 ? (reading.hints ?? []) : []
}

function explainUnread(scope: LoadScope, say: Say): void {
  say('unreadable', `${scope.scope} can't be read${noted(scope)}: its load is unknown`, {
    scope: scope.scope,
    hint:
      scope.note === NOT_LISTED
        ? "the drain waits until the provider lists it again or reports its end: connect to an endpoint that shows every process, or see the provider's option for old processes"
        : 'make it readable, or wait until it has ended',
  })
}

function explainScope(track: ScopeTrack, state: DrainState, now: number, say: Say): void {
  const scope = track.last
  const where = { scope: scope.scope }
  if (scope.state !== 'read') {
    explainUnread(scope, say)
    return
  }
  const came = arrivedSinceEffect(track)
  if (came > 0 && scope.queued === 0) {
    say('persistence', `${came} more arrived after the drain took effect (persistent clients)`, {
      ...where,
      count: came,
      hint: "use escalateAfter or hold: 'maint' to send persistent clients elsewhere",
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
  const watched = state.goal.kind === 'watch' && inWishedState(state)
  const held = state.hold.confirmed !== 'none' || watched
  if (!isInForce(scope, neededState(state)) && (held || scope.old === true)) {
    const stays = scope.inForce !== false && scope.admin !== undefined
    const code = scope.old === true && stays ? 'old-scope' : 'not-in-force'
    const what = stays ? `is at ${scope.admin}` : 'has not taken the drain'
    say(code, `${scope.scope} ${what}${noted(scope)}: it may still send new work`, {
      ...where,
      hint:
        code === 'old-scope'
          ? 'the drain waits until it ends; hard-stop-after, or a shorter drain time of the proxy, bounds the wait'
          : 'if this lasts, check that this process can be reached and takes changes',
    })
  }
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
      {
        ...more,
        hint: 'it ends by itself with its last connection; hard-stop-after bounds that',
      },
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

function noted(scope: LoadScope): string {
  return scope.note === undefined ? '' : ` (${scope.note})`
}

/** Outcomes at the deadline: what the drain waited for until then is the reason. */
const BY_TIME: readonly Outcome[] = ['timeout', 'unreachable', 'proceeded']

function isWaiting({ ending: { ended } }: DrainState): boolean {
  return ended === null || BY_TIME.includes(ended.outcome)
}

/** Nothing is in flight: explains what the drain still waits for. */
function explainWait(state: DrainState, policy: MachinePolicy, now: number, say: Say): void {
  const rule = idleRule(state, policy)
  const waits = isWaiting(state)
  if (waits && !isGone(state, policy) && explainVanished(state, say)) return
  if (rule !== null && inWishedState(state)) {
    explainProof(state, rule, now, say)
    return
  }
  if (state.goal.kind !== 'drain' || state.last === null || !waits) return
  const wished = state.hold.wish === 'none' ? policy.hold : state.hold.wish
  say('not-in-force', `${formatRef(state.ref)} has not taken the ${wished} yet`, {
    hint: "if this lasts, look for the reasons 'refused' and 'unreadable'",
  })
}

/** Whether the member is certainly gone: the drain then waits only for its processes. */
function isGone({ vanished, last }: DrainState, { capabilities }: MachinePolicy): boolean {
  if (vanished === null || last === null) return false
  return last.askedAt >= vanished.since + Math.max(ABSENCE_GAP, capabilities.freshness)
}

/** The member is held: explains what the idle rule still lacks in each process. */
function explainProof(state: DrainState, rule: IdleRule, now: number, say: Say): void {
  const tracks = [...state.proof.scopes.values()]
  if (tracks.length === 0 && state.proof.ended === 0 && state.last?.reading.present === true) {
    say('unreadable', 'the balancer listed no process that can hold work', {
      hint: 'check that the member is configured in a running process and that the provider is allowed to read it',
    })
  }
  for (const track of tracks) {
    const verdict = judgeScope(track, rule, now)
    if (verdict.idle) continue
    const where = { scope: track.last.scope }
    const left = formatDuration(Math.max(0, verdict.wait))
    if (verdict.lacks === 'release' && rule.counts !== 'none') {
      say(
        'persistence',
        `0 in flight, but the product has not said that the member is released${noted(track.last)}`,
        {
          ...where,
          hint: 'it does not count arrivals, so at the deadline idle is reported without being verified; escalateAfter sends persistent clients elsewhere',
        },
      )
    } else if (verdict.lacks === 'release') {
      say(
        'no-counts',
        'this product does not count work; it has not said yet that the member is released',
        { ...where, hint: 'nothing to do but wait; the timeout bounds the wait' },
      )
    } else if (verdict.lacks === 'second-sample') {
      say('freshness', `0 in flight; the second sample is due in ${left}`, {
        ...where,
        hint: 'nothing to do but wait',
      })
    } else {
      say('settling', `0 in flight; ${stillToWait(verdict.wait)}`, {
        ...where,
        hint: "a shorter settle shortens this wait, down to the product's blind time",
      })
    }
  }
}

function stillToWait(wait: number): string {
  if (wait <= 0) return 'the next look decides'
  return `idle if nothing arrives for another ${formatDuration(wait)}`
}

/** Explains why an idle member, or a finished drain, is not verified. */
function unverified(state: DrainState): readonly Why[] {
  const list: Why[] = state.proof.lost.map(({ scope, active, note }) => ({
    code: 'old-scope',
    ref: state.ref,
    scope,
    count: active,
    text: printable(
      note === undefined
        ? `${scope} ended with ${active} in flight: that work was cut, or finished unseen`
        : `${scope} was last seen with ${active} in flight, and nothing tells what became of that work: ${note}`,
    ),
  }))
  if (state.ending.ended?.outcome === 'restored') return []
  const reading = state.last?.reading
  const unseen =
    state.proof.unverified ?? (reading?.present === true ? reading.unverified : undefined)
  if (unseen !== undefined) list.push({ code: 'unreadable', ref: state.ref, text: unseen })
  return list
}
