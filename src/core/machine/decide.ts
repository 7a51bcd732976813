import type { PresentReading } from '../../provider/contract.js'
import { DrainableError } from '../../provider/error.js'
import { formatRef } from '../../provider/member-ref.js'
import { loadOf, maintEffect } from './absorb.js'
import type { Draft } from './draft.js'
import { fingerprint, inWishedState, proveIdle, verdictStands } from './proof.js'
import { atLeast, type DrainState } from './state.js'

/** How long what was cut may take to show in the counts, beyond the idle rule itself, in milliseconds. */
const CUT_SHOWS = 5_000
/** Between two cuts of one member, in milliseconds: what was queued comes next and is cut too. */
const CUT_GAP = 100
/** Waits before the state of somebody else is changed back, in milliseconds. */
const REAPPLY = [250, 1_000, 4_000]

/** Compares what was found with what was wished, and asks for at most one change. */
export function decide(draft: Draft): void {
  const { state, policy } = draft
  if (policy.mode === 'watch') {
    watchOnly(draft)
    return
  }
  if (state.ended !== null && !state.holding) return
  if (state.pending?.state === 'sent') return
  // What can't be read now is unknown: nothing is sent on the word of an older reading.
  const unseen = state.last === null || state.blind !== null
  if (unseen || state.pending !== null || state.last.askedAt <= state.confirmedAt) {
    checkDeadline(draft)
    return
  }
  const { reading } = state.last
  if (!reading.present) absent(draft)
  else if (state.found !== null && reading.identity !== state.found.identity) replaced(draft)
  else present(draft, reading)
}

function present(draft: Draft, reading: PresentReading): void {
  if (draft.state.wish === 'none') {
    if (reading.own === 'unknown') {
      checkDeadline(draft)
      return
    }
    draft.set({ wish: firstWish(draft, reading) })
    hold(draft, true)
    return
  }
  if (!inWishedState(draft.state, draft.policy)) {
    if (reading.own !== 'unknown') restoreWish(draft, reading)
    else loseIdle(draft)
    checkDeadline(draft)
    return
  }
  if (draft.state.phase === 'active') draft.phase('draining')
  if (escalate(draft, reading)) return
  if (draft.state.phase === 'idle') {
    if (stillIdle(draft.state)) finish(draft)
    else loseIdle(draft)
  }
  if (draft.state.phase !== 'idle') {
    const proof = proveIdle(draft.state, draft.policy, draft.now, draft.wall - draft.now)
    if (draft.state.verdict !== null) closeDoor(draft, reading)
    else if (proof !== null) {
      draft.set({
        verdict: { at: draft.now, proof, scopes: fingerprint(draft.state), sealedAt: null },
      })
      closeDoor(draft, reading)
    }
  }
  checkDeadline(draft)
}

/** Maint only where it is gentle, or the caller gave their word. */
function firstWish(draft: Draft, reading: PresentReading): 'drain' | 'maint' {
  const { hold: wished, onTimeout } = draft.policy
  const allowed = maintEffect(draft, reading) === 'gentle' || onTimeout === 'terminate'
  return wished === 'maint' && !allowed ? 'drain' : wished
}

/** Sends the wished hold, unless a wait is on. */
function hold(draft: Draft, first: boolean): void {
  const { state } = draft
  if (state.wish === 'none' || draft.now < state.notBefore) return
  draft.apply({ kind: 'hold', to: state.wish, ref: state.ref, ...identity(state) }, first)
}

function identity(state: DrainState): { identity?: string } {
  return state.found === null ? {} : { identity: state.found.identity }
}

/** The own state is lower than wished: never set, forgotten by a reload, or overruled by somebody. */
function restoreWish(draft: Draft, reading: PresentReading): void {
  loseIdle(draft)
  const { state, policy } = draft
  const known = state.incarnationsAtWish
  if (known === null || state.confirmed === 'none') {
    hold(draft, true)
    return
  }
  if (atLeast(reading.own, state.confirmed)) {
    hold(draft, false) // a raise that did not happen yet
    return
  }
  if (forgotten(state, known)) {
    hold(draft, false)
    return
  }
  if (reading.own === 'unknown' || state.wish === 'none') return
  if (!state.overruled) {
    const wait = REAPPLY[state.overrules]
    const reset = policy.onOverrule === 'reapply' && wait !== undefined
    draft.emit({
      type: 'overruled',
      ...draft.stamp,
      expected: state.wish,
      found: reading.own,
      reset,
    })
    draft.set({ overruled: true, overrules: state.overrules + 1 })
    if (!reset) {
      draft.phase('active')
      draft.end('overruled', overruledError(state, reading))
      draft.set({ holding: false })
      return
    }
    draft.set({ notBefore: draft.now + wait })
    return
  }
  hold(draft, false)
}

function overruledError(state: DrainState, reading: PresentReading): DrainableError {
  return new DrainableError(
    'DRAIN_OVERRULED',
    `${formatRef(state.ref)} was set to '${reading.own}' by somebody else while '${state.wish}' was wished, find out who; onOverrule: 'reapply' puts the drain back`,
    { ref: state.ref },
  )
}

/** Whether any process is another than the one that had taken the wish. */
function forgotten(state: DrainState, known: Readonly<Record<string, string>>): boolean {
  return Object.entries(state.scopes).some(
    ([name, { last }]) => last.state === 'read' && known[name] !== last.incarnation,
  )
}

function loseIdle(draft: Draft): void {
  draft.set({ verdict: null })
  if (draft.state.phase !== 'idle') return
  draft.set({ proof: null, sealed: false })
  if (!draft.state.settled) draft.set({ ended: null })
  draft.emit({ type: 'idle-lost', ...draft.stamp })
  draft.phase('draining')
}

/** Whether nothing was seen that contradicts idle. A scope that can't be read for a moment contradicts nothing. */
function stillIdle(state: DrainState): boolean {
  const before = state.verdict?.scopes ?? {}
  return Object.entries(state.scopes).every(([name, { last }]) => {
    if (last.state !== 'read') return true
    const was = before[name]
    return (
      was?.incarnation === last.incarnation &&
      was.arrivals === (last.arrivals ?? null) &&
      last.active === 0 &&
      last.queued === 0
    )
  })
}

/** Raises a drain that persistence keeps busy. */
function escalate(draft: Draft, reading: PresentReading): boolean {
  const { state, policy } = draft
  const { escalateAfter } = policy
  if (escalateAfter === null || state.escalated || state.ended !== null || state.phase === 'idle')
    return false
  if (draft.now < state.startedAt + escalateAfter) return false
  draft.set({ escalated: true })
  return raise(draft, reading)
}

/** Raises to maint where there is one above the present state; where that cuts, the caller gave their word. */
function raise(draft: Draft, reading: PresentReading): boolean {
  const effect = maintEffect(draft, reading)
  if (effect === 'none' || reading.own === 'maint' || reading.sealed === true) return false
  if (effect !== 'gentle' && draft.policy.onTimeout !== 'terminate') return false
  draft.set({ wish: 'maint', verdict: null })
  hold(draft, false)
  return true
}

/** The rule is satisfied: close the door to persistent clients where that is wished, and look once more. */
function closeDoor(draft: Draft, reading: PresentReading): void {
  const { state, policy } = draft
  const { verdict } = state
  if (verdict === null) return
  const effect = maintEffect(draft, reading)
  const wanted =
    effect !== 'none' &&
    (policy.seal === 'always' || (policy.seal === 'gentle' && effect === 'gentle'))
  const closed = reading.own === 'maint' || reading.sealed === true
  if (verdict.sealedAt === null && wanted && !closed && state.sealFailures < 3) {
    draft.set({ wish: 'maint' })
    draft.apply({ kind: 'hold', to: 'maint', ref: state.ref, ...identity(state) })
    return
  }
  if (verdict.at !== draft.now) {
    const stands = verdictStands(state)
    // Something slipped in: the drain goes on, under maint, by the whole rule.
    if (stands === 'fell') draft.set({ verdict: null })
    if (stands !== 'stands') return
  }
  const uncounted =
    policy.capabilities.counts === 'none'
      ? 'this product does not count work: idle is its own word'
      : null
  draft.set({
    proof: verdict.proof,
    sealed: closed,
    unverified: reading.unverified ?? uncounted,
  })
  draft.phase('idle')
  draft.emit({ type: 'idle', ...draft.stamp, proof: verdict.proof })
  finish(draft)
}

/** Idle: remove it if that is wished, else this is the end. */
function finish(draft: Draft): void {
  const { state, policy } = draft
  if (state.ended !== null) return
  if (policy.until === 'removed') {
    if (draft.now < state.notBefore) checkDeadline(draft)
    else draft.apply({ kind: 'remove', ref: state.ref, ...identity(state) })
    return
  }
  draft.end(state.terminated > 0 ? 'terminated' : 'idle')
}

/** Not in the configuration any more. An old process may still be busy for it. */
function absent(draft: Draft): void {
  const { state } = draft
  const busy = Object.values(state.scopes).some(({ last }) => last.state !== 'ended')
  const proof = proveIdle(state, draft.policy, draft.now, draft.wall - draft.now)
  if (busy && proof === null && state.ended === null) {
    checkDeadline(draft)
    return
  }
  gone(draft, `${formatRef(state.ref)} is not in the pool any more, somebody removed it`)
}

function replaced(draft: Draft): void {
  gone(
    draft,
    `${formatRef(draft.state.ref)} is another member now (another address or id), nothing was changed on it`,
  )
}

function gone(draft: Draft, message: string): void {
  const proved = draft.state.phase === 'idle'
  if (!proved) draft.set({ proof: null, sealed: false })
  draft.phase('removed')
  draft.emit({ type: 'removed', ...draft.stamp })
  draft.end('gone', new DrainableError('MEMBER_GONE', message, { ref: draft.state.ref }))
  draft.set({ holding: false })
}

/** Past the deadline, after one last look. */
function checkDeadline(draft: Draft): void {
  const { state, policy } = draft
  if (state.ended !== null || state.pending?.state === 'sent') return
  if (state.deadline === null || draft.now < state.deadline) return
  const { deadline, confirmedAt } = state
  const looked = [state.last?.askedAt, state.blind?.askedAt].some(
    (at) => at !== undefined && at >= deadline && at > confirmedAt,
  )
  if (!looked) return
  if (policy.onTimeout === 'proceed') draft.end('proceeded')
  else if (state.incarnationsAtWish === null && state.atMinimum)
    draft.end('refused', minimumError(state))
  else if (state.blind !== null) draft.end('unreachable', state.blind.error)
  else if (policy.onTimeout === 'terminate' && state.incarnationsAtWish !== null) terminate(draft)
  else draft.end('timeout')
}

function minimumError(state: DrainState): DrainableError {
  return new DrainableError(
    'POOL_AT_MINIMUM',
    `${formatRef(state.ref)} was not drained: no replacement served before the deadline, and the pool would keep fewer serving members than keepReady`,
    { ref: state.ref },
  )
}

/** Cuts what is left, again and again: what was queued comes next. Ends when the counts show it. */
function terminate(draft: Draft): void {
  const { state, policy } = draft
  const reading = state.last?.reading
  const { blind, freshness } = policy.capabilities
  if (state.terminateUntil === null) {
    const rule = Math.max(policy.settle, blind) + 2 * freshness
    draft.set({ terminateUntil: draft.now + CUT_SHOWS + rule })
    if (
      reading?.present === true &&
      (policy.seal !== 'never' || !policy.capabilities.terminate) &&
      raise(draft, reading)
    )
      return
  }
  if (state.pending !== null) return
  const left = loadOf(state)
  const until = state.terminateUntil ?? Infinity
  const unread = Object.values(state.scopes).some(({ last }) => last.state === 'unread')
  if (draft.now >= until) {
    draft.end(left > 0 || unread || reading?.present !== true ? 'timeout' : 'terminated')
    return
  }
  if (left === 0 || draft.now < state.notBefore || !policy.capabilities.terminate) return
  draft.set({ notBefore: draft.now + CUT_GAP })
  draft.apply({ kind: 'terminate', ref: state.ref, ...identity(state) })
}

/** Looks only: the phases follow whatever somebody else does. */
function watchOnly(draft: Draft): void {
  const { state } = draft
  const reading = state.last?.reading
  if (state.ended !== null || reading === undefined) return
  if (!reading.present) {
    gone(draft, `${formatRef(state.ref)} is not in the pool any more`)
    return
  }
  if (!inWishedState(state, draft.policy)) {
    draft.set({ proof: null, verdict: null, sealed: false })
    draft.phase('active')
    return
  }
  if (state.phase === 'active') draft.phase('draining')
  if (state.phase === 'idle' && !stillIdle(draft.state)) loseIdle(draft)
  if (draft.state.phase !== 'draining') return
  const proof = proveIdle(draft.state, draft.policy, draft.now, draft.wall - draft.now)
  if (proof === null) return
  draft.set({
    proof,
    sealed: atLeast(reading.own, 'maint'),
    verdict: { at: draft.now, proof, scopes: fingerprint(draft.state), sealedAt: null },
  })
  draft.phase('idle')
  draft.emit({ type: 'idle', ...draft.stamp, proof })
}
