import type { LoadScope } from '../../provider/contract.js'
import { formatDuration } from '../../provider/duration.js'
import { formatRef } from '../../provider/member-ref.js'
import type { Why, WhyCode } from '../../provider/report.js'
import { idleRule, inWishedState } from './proof.js'
import { judgeScope } from './scopes.js'
import type { DrainState, MachinePolicy, ScopeTrack } from './state.js'

/** In flight for longer than that without a change is named as long-lived, in milliseconds. */
const LONG_LIVED = 60_000

/**
 * Why a member is not idle, or why its idle is not verified: what a person staring at a stuck
 * deploy needs. The first is the one to look at.
 */
export function explain(state: DrainState, policy: MachinePolicy, now: number): readonly Why[] {
  const list: Why[] = []
  const say = (code: WhyCode, text: string, more: Partial<Why> = {}): void => {
    list.push({ code, ref: state.ref, text, ...more })
  }
  const name = formatRef(state.ref)
  if (state.atMinimum) {
    say(
      'pool-at-minimum',
      `${name} is held back: the pool would keep fewer serving members than keepReady`,
      {
        hint: 'wait for a replacement to serve, or lower keepReady (keepReady: 0 lets the last one go)',
      },
    )
  }
  if (state.blind !== null) {
    say('unreadable', `the balancer can't be read: ${state.blind.error.message}`, {
      hint: 'what can not be read is unknown, never zero; the last numbers are older',
    })
  }
  if (state.phase === 'idle' && state.blind === null) return [...list, ...unverified(state)]
  for (const track of Object.values(state.scopes)) explainScope(track, state, now, say)
  const reading = state.last?.reading
  if (
    reading?.present === true &&
    (state.held || reading.own === 'unknown') &&
    !inWishedState(state, policy) &&
    state.pending === null
  ) {
    say(
      reading.own === 'unknown' ? 'unreadable' : 'overruled',
      reading.own === 'unknown'
        ? `${name}: the balancer contradicts itself about its state, so it can't be called idle`
        : `${name} is ${reading.own}, somebody set it so; ${state.wish} was wished`,
    )
  }
  if (state.pending?.state === 'lost') {
    say(
      'not-in-force',
      `${name}: the answer to '${state.pending.change.kind}' was lost; it may still happen, so nothing else is sent until that is known`,
    )
  }
  if (list.length === 0) explainWait(state, policy, now, say)
  if (reading?.present === true && list.length > 0) {
    for (const hint of reading.hints ?? []) say(list[0]?.code ?? 'in-flight', hint)
  }
  return list.length > 0 ? list : unverified(state)
}

type Say = (code: WhyCode, text: string, more?: Partial<Why>) => void

function explainScope(track: ScopeTrack, state: DrainState, now: number, say: Say): void {
  const scope = track.last
  const where = { scope: scope.scope }
  if (scope.state === 'ended') return
  if (scope.state === 'unread') {
    say('unreadable', `${scope.scope} can't be read${noted(scope)}: what it holds is unknown`, {
      ...where,
      hint: 'make it readable, or wait until it has ended',
    })
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
    })
  }
  if (!scope.inForce && (state.held || scope.old === true)) {
    say(
      'not-in-force',
      `${scope.scope} has not taken the drain${noted(scope)}: it may still send new work`,
      where,
    )
  }
}

function explainActive(track: ScopeTrack, now: number, say: Say): void {
  const { last: scope, steadySince } = track
  const more = { scope: scope.scope, count: scope.active }
  const age = now - steadySince
  if (scope.old === true) {
    say(
      'old-scope',
      `${scope.active} still in flight on ${scope.scope}, which was replaced${noted(scope)}`,
      {
        ...more,
        hint: 'it ends by itself with its last connection; hard-stop-after bounds that',
      },
    )
    return
  }
  say('in-flight', `${scope.active} in flight`, more)
  if (age < LONG_LIVED) return
  say('long-lived', `${scope.active} in flight, unchanged for ${formatDuration(age)}`, {
    ...more,
    hint: "long-lived connections end when their clients go; onTimeout: 'terminate' cuts what is left at the deadline",
  })
}

function arrivedSinceEffect(track: ScopeTrack): number {
  if (track.arrivalsAtEffect === null || track.last.arrivals === undefined) return 0
  return Math.max(0, track.last.arrivals - track.arrivalsAtEffect)
}

function noted(scope: LoadScope): string {
  return scope.note === undefined ? '' : ` (${scope.note})`
}

/** Nothing is in flight: what is still to be waited for. */
function explainWait(state: DrainState, policy: MachinePolicy, now: number, say: Say): void {
  const rule = idleRule(state, policy)
  if (rule === null || !inWishedState(state, policy)) {
    if (policy.mode === 'drain' && state.last !== null && state.ended === null) {
      say(
        'not-in-force',
        `${formatRef(state.ref)} has not taken the ${state.wish === 'none' ? policy.hold : state.wish} yet`,
      )
    }
    return
  }
  const tracks = Object.values(state.scopes)
  if (tracks.length === 0 && state.last?.reading.present === true) {
    say('unreadable', 'no process that can hold work was listed by the balancer')
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
        where,
      )
    } else if (verdict.lacks === 'second-sample') {
      say(
        'freshness',
        `0 in flight; a second sample that is fresh for sure is due in ${left}`,
        where,
      )
    } else {
      say('settling', `0 in flight; nothing may arrive for another ${left}`, where)
    }
  }
}

/** Idle, or over: why that is not verified. */
function unverified(state: DrainState): readonly Why[] {
  const list: Why[] = state.lost.map(({ scope, active }) => ({
    code: 'old-scope',
    ref: state.ref,
    scope,
    count: active,
    text: `${scope} ended while it held ${active}: that was cut, or finished unseen`,
  }))
  const reading = state.last?.reading
  const unseen = state.unverified ?? (reading?.present === true ? reading.unverified : undefined)
  if (unseen !== undefined) list.push({ code: 'unreadable', ref: state.ref, text: unseen })
  return list
}
