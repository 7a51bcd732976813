import { isInForce } from '../../provider/admin-state.js'
import type { LoadScope } from '../../provider/contract.js'
import { formatDuration } from '../../provider/duration.js'
import { formatRef } from '../../provider/member-ref.js'
import { printable } from '../../provider/quote.js'
import type { Outcome, Why, WhyCode } from '../../provider/report.js'
import { targetOf } from './ledger/changes.js'
import type { MachinePolicy } from './policy.js'
import { idleRule, inWishedState } from './proof.js'
import { ABSENCE_GAP, judgeScope, NOT_LISTED, type IdleRule } from './scopes.js'
import { neededState, ownOf, setterOf, type DrainState, type ScopeTrack } from './state.js'

/** In flight for longer than that without a change is named as long-lived, in milliseconds. */
const LONG_LIVED = 60_000

const LONG_LIVED_HINT =
  "long-lived connections end when their clients go; onTimeout: 'terminate' cuts what is left at the deadline"

const IN_FLIGHT_HINT =
  "it ends with the requests; the timeout bounds the wait, and onTimeout: 'terminate' cuts what is left"

type Say = (code: WhyCode, text: string, more?: Partial<Why>) => void

/**
 * Why a member is not idle, or not open again, or why its idle is not verified: what a person staring
 * at a stuck deploy needs. The first is the one to look at.
 *
 * @param wallOffset - epoch milliseconds minus the run's clock, for moments in the text
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
      hint: 'what can not be read is unknown, never zero; the last numbers are older',
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

/** Nothing stands in the way: what comes next is waited for. */
function explainNext(state: DrainState, say: Say): void {
  const { ref, goal, last, hold, ending } = state
  if (goal.kind === 'watch' || last === null || !isWaiting(state)) return
  const { pending } = hold
  if (ending.ended !== null && pending === null) return
  const name = formatRef(ref)
  const more = { hint: 'it is waited for; nothing has to be done' }
  if (hold.yieldAt !== null) {
    const words = 'too few other members serve since it was held'
    say('pool-at-minimum', `${name}: ${words}: it is opened again unless that changes`, more)
    return
  }
  if (pending !== null) {
    say('not-in-force', `${name}: the answer to '${pending.change.kind}' is waited for`, more)
    return
  }
  say('settling', `${name}: the next look at it decides`, more)
}

/** Nothing is left to be explained, whatever stood in the way before. */
function succeeded({ ending, phase }: DrainState): boolean {
  const outcome = ending.ended?.outcome
  if (outcome === 'idle') return phase === 'idle'
  return outcome === 'removed' || outcome === 'restored' || outcome === 'terminated'
}

/** What became of our own changes: refused, held back by the floor, or without an answer. */
function explainChanges(state: DrainState, wallOffset: number, say: Say): void {
  const { hold } = state
  const name = formatRef(state.ref)
  if (hold.refusal !== null) {
    const { change, error } = hold.refusal
    // Without its ticket a change does not leave: the balancer was not asked.
    const how = error.code === 'TICKET_INVALID' ? 'was not sent' : 'was refused by the balancer'
    say('refused', `${name}: '${change.kind}' ${how}: ${error.message}`, {
      hint: error.retryable ? 'it is tried again' : 'it is not tried again',
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
    // A repeat of what is in place already changes nothing.
    const inPlace = hold.confirmed !== 'none' || targetOf(change) === ownOf(state)
    const harmless = state.goal.kind === 'drain' && change.kind === 'hold' && inPlace
    if (harmless || refused === true) continue // a refusal is an answer, and said above
    const blocker = underWay === true ? 'its call goes on' : 'the balancer does not answer'
    const when =
      until === null
        ? `for as long as ${blocker}, and some time after`
        : `until ${new Date(until + wallOffset).toISOString()}`
    say(
      'not-in-force',
      `${name}: the answer to '${change.kind}' was lost${by}; it may still be carried out ${when}`,
      { hint: 'it is waited for; nothing has to be done' },
    )
  }
}

/** An undo of another run of this process that has no answer yet. */
function explainUndo({ ref, last, goal }: DrainState, say: Say): void {
  if (last?.mayOpen !== true || goal.kind !== 'drain') return
  say(
    'not-in-force',
    `${formatRef(ref)}: another call of this process opens it, and has no answer to that: it may still be carried out`,
    { hint: 'it is waited for; nothing has to be done' },
  )
}

function explainOpen(state: DrainState, now: number, say: Say): void {
  const reading = state.last?.reading
  const name = formatRef(state.ref)
  if (explainVanished(state, say)) return
  if (reading?.present !== true || state.unread !== null) return
  const waited = formatDuration(now - state.startedAt)
  if (reading.own === 'unknown') explainUnknown(name, reading.hints, say)
  else if (reading.own !== 'ready' || state.hold.late.length === 0) {
    say('settling', `${name} is '${reading.own}', health ${reading.health}, for ${waited}`, {
      hint: 'the first check after maint is waited for before it gets work',
    })
  }
}

/** The newest look shows no member, or another one. @returns whether it does */
function explainVanished({ ref, last, found }: DrainState, say: Say): boolean {
  if (last === null) return false
  const { reading } = last
  if (reading.present && (found === null || reading.identity === found.identity)) return false
  const seen = reading.present ? 'is another member' : 'is absent'
  say(
    'unreadable',
    `${formatRef(ref)} ${seen} in the newest look: another one decides whether it is gone`,
    {
      hint: 'the next look decides; nothing has to be done',
    },
  )
  return true
}

function explainUnknown(name: string, hints: readonly string[] | undefined, say: Say): void {
  const said = hints?.[0] === undefined ? '' : ` (${hints[0]})`
  say(
    'unreadable',
    `${name}: the balancer contradicts itself about its state${said}, so it can't be called idle`,
    {
      hint: 'it is looked at again; where that lasts, compare what the processes or units of the balancer say',
    },
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
  // Another client is named only where a look asked for after our own last change shows it.
  if (inWishedState(state) || !hold.overruled || last.askedAt <= hold.confirmedAt) return
  const by = last.reading.setBy === undefined ? 'another hand' : setterOf(state)
  say('overruled', `${name} is ${own}, ${by} set it so; ${hold.wish} was wished`, {
    hint: "agree with who set it and drain again, or let onOverrule: 'reapply' put it back",
  })
}

/** What the provider says beside its numbers; only where there is something to explain. */
function hintsOf({ last }: DrainState, list: readonly Why[]): readonly string[] {
  const reading = last?.reading
  return reading?.present === true && list.length > 0 ? (reading.hints ?? []) : []
}

function explainUnread(scope: LoadScope, say: Say): void {
  say('unreadable', `${scope.scope} can't be read${noted(scope)}: what it holds is unknown`, {
    scope: scope.scope,
    hint:
      scope.note === NOT_LISTED
        ? "it is waited for until the provider lists it again or says that it has ended: connect where every process can be seen, or see the provider's option for old ones"
        : 'make it readable, or wait until it has ended',
  })
}

// eslint-disable-next-line complexity -- one reason after the other
function explainScope(track: ScopeTrack, state: DrainState, now: number, say: Say): void {
  const scope = track.last
  const where = { scope: scope.scope }
  if (scope.state !== 'read') {
    explainUnread(scope, say)
    return
  }
  const came = arrivedSinceEffect(track)
  if (came > 0 && scope.queued === 0) {
    say('persistence', `${came} more came to it after the drain took effect (persistent clients)`, {
      ...where,
      count: came,
      hint: "raise to maint after a while with escalateAfter, or hold: 'maint', so that persistent clients go elsewhere",
    })
  }
  if (scope.active > 0) explainActive(track, now, say)
  if (scope.queued > 0) {
    say('queued', `${scope.queued} queued for it, to be served by it`, {
      ...where,
      count: scope.queued,
      hint: 'they are served as its work ends, or leave at their own time-out in the queue',
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
          ? 'it is waited for until it ends; hard-stop-after, or a shorter drain time of the proxy, bounds that'
          : 'it is looked at again; where that lasts, see whether this process can be reached and takes changes',
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

/** The age of the oldest work, where the product tells it. */
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

/** Ends that come at the deadline: what was waited for until then is the reason. */
const BY_TIME: readonly Outcome[] = ['timeout', 'unreachable', 'proceeded']

function isWaiting({ ending: { ended } }: DrainState): boolean {
  return ended === null || BY_TIME.includes(ended.outcome)
}

/** Nothing is in flight: what is still to be waited for. */
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
    hint: 'it is sent, or looked at again; where that lasts, refused and unreadable say why',
  })
}

/** Whether it is gone for certain: what its processes still do for it is waited for. */
function isGone({ vanished, last }: DrainState, { capabilities }: MachinePolicy): boolean {
  if (vanished === null || last === null) return false
  return last.askedAt >= vanished.since + Math.max(ABSENCE_GAP, capabilities.freshness)
}

/** It is held: what the rule still lacks, in each process. */
function explainProof(state: DrainState, rule: IdleRule, now: number, say: Say): void {
  const tracks = [...state.proof.scopes.values()]
  if (tracks.length === 0 && state.proof.ended === 0 && state.last?.reading.present === true) {
    say('unreadable', 'no process that can hold work was listed by the balancer', {
      hint: 'see whether the member is configured in a process that runs, and whether the provider may read it',
    })
  }
  for (const track of tracks) {
    const verdict = judgeScope(track, rule, now)
    if (verdict.idle) continue
    const where = { scope: track.last.scope }
    const left = formatDuration(Math.max(0, verdict.wait))
    if (verdict.lacks === 'release') {
      say(
        'no-counts',
        'this product does not count work; it has not said yet that the member is released',
        { ...where, hint: 'it is waited for; the timeout bounds that' },
      )
    } else if (verdict.lacks === 'second-sample') {
      say('freshness', `0 in flight; a second sample that is fresh for sure is due in ${left}`, {
        ...where,
        hint: 'it is waited for; nothing has to be done',
      })
    } else {
      say('settling', `0 in flight; ${stillToWait(verdict.wait)}`, {
        ...where,
        hint: 'it is waited for; a shorter settle makes it shorter, down to what the product can hide',
      })
    }
  }
}

function stillToWait(wait: number): string {
  if (wait <= 0) return 'the next look that counts is waited for'
  return `nothing may arrive for another ${formatDuration(wait)}`
}

/** Idle, or over: why that is not verified. */
function unverified(state: DrainState): readonly Why[] {
  const list: Why[] = state.proof.lost.map(({ scope, active }) => ({
    code: 'old-scope',
    ref: state.ref,
    scope,
    count: active,
    text: printable(`${scope} ended while it held ${active}: that was cut, or finished unseen`),
  }))
  if (state.ending.ended?.outcome === 'restored') return []
  const reading = state.last?.reading
  const unseen =
    state.proof.unverified ?? (reading?.present === true ? reading.unverified : undefined)
  if (unseen !== undefined) list.push({ code: 'unreadable', ref: state.ref, text: unseen })
  return list
}
