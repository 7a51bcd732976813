import type {
  Change,
  ChangeResult,
  MaintEffect,
  PresentReading,
  Reading,
} from '../../provider/contract.js'
import type { DrainableError } from '../../provider/error.js'
import type { Draft } from './draft.js'
import { inWishedState } from './proof.js'
import { forgetSamples, trackScopes } from './scopes.js'
import { atLeast, type DrainState } from './state.js'

/** Takes a reading in: what is known afterwards, no decision yet. */
export function absorbReading(draft: Draft, reading: Reading, askedAt: number): void {
  const { state } = draft
  const tracked = trackScopes(state, reading.scopes, draft.now)
  const at = new Date(draft.wall).toISOString()
  draft.set({
    blind: null,
    scopes: tracked.scopes,
    lost: [...state.lost, ...tracked.lost.map((lost) => ({ ...lost, at }))],
    last: { reading, askedAt, at: draft.now },
  })
  const unsure = state.found?.own === 'unknown' && state.wish === 'none'
  if (
    reading.present &&
    (state.found === null || (unsure && state.found.identity === reading.identity))
  ) {
    const { identity, own, serves, native = null } = reading
    draft.set({ found: { identity, own, serves, native } })
  }
  resolveLost(draft, reading, askedAt, loadOf(state))
  if (askedAt <= draft.state.confirmedAt || draft.state.pending?.state === 'sent') return
  followEffect(draft)
}

/** Keeps `effectiveSince` in step with what was found. */
function followEffect(draft: Draft): void {
  const { state } = draft
  if (inWishedState(state, draft.policy)) {
    if (state.effectiveSince === null) {
      draft.set({ effectiveSince: draft.now, scopes: forgetSamples(state.scopes) })
    }
    draft.set({ incarnationsAtWish: incarnations(draft.state), overruled: false })
  } else if (state.effectiveSince !== null) {
    draft.set({ effectiveSince: null, scopes: forgetSamples(state.scopes) })
  }
}

/** Incarnation of every scope that can be read. */
export function incarnations(state: DrainState): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(state.scopes)
      .filter(([, track]) => track.last.state === 'read')
      .map(([name, track]) => [name, track.last.incarnation]),
  )
}

/** A change whose answer was lost: either its effect is seen, or it can't happen any more. */
function resolveLost(draft: Draft, reading: Reading, askedAt: number, load: number): void {
  const { pending } = draft.state
  if (pending?.state !== 'lost' || pending.lostAt === null || askedAt < pending.lostAt) return
  if (shows(reading, pending.change)) {
    countCut(draft, pending.change, load)
    confirm(draft, pending.change, 'applied')
    return
  }
  if (pending.lateUntil === null) {
    const lateUntil = draft.now + draft.policy.capabilities.lateBound
    draft.set({ pending: { ...pending, lateUntil } })
    return
  }
  if (askedAt < pending.lateUntil) return
  draft.set({ pending: null, confirmedAt: draft.now })
  if (draft.state.verdict !== null && pending.change.kind === 'hold') dropSeal(draft)
}

function shows(reading: Reading, change: Change): boolean {
  if (change.kind === 'remove') return !reading.present
  if (change.kind === 'hold') return reading.present && atLeast(reading.own, change.to)
  return false
}

/** The seal did not happen: back to the wish before it. */
function dropSeal(draft: Draft): void {
  const { confirmed, sealFailures } = draft.state
  draft.set({ verdict: null, wish: confirmed, sealFailures: sealFailures + 1 })
}

/** Takes the result of a change in. */
export function absorbResult(draft: Draft, change: Change, result: ChangeResult): void {
  switch (result.status) {
    case 'applied':
    case 'unchanged':
      if (result.status === 'applied')
        countCut(draft, change, result.terminated ?? loadOf(draft.state))
      confirm(draft, change, result.status)
      if (change.kind === 'terminate')
        countTerminated(draft, result.terminated ?? 0, result.atMost ?? false)
      return
    case 'unknown':
      draft.set({ pending: { change, state: 'lost', lostAt: draft.now, lateUntil: null } })
      draft.fault(result.error)
      return
    case 'rejected':
      rejected(draft, change, result.error)
      return
    default:
      result satisfies never
  }
}

function confirm(draft: Draft, change: Change, status: 'applied' | 'unchanged'): void {
  const { state, now } = draft
  draft.set({ pending: null, confirmedAt: now, atMinimum: false })
  switch (change.kind) {
    case 'hold':
      draft.set({
        held: state.held || status === 'applied',
        confirmed: change.to,
        effectiveSince: now,
        scopes: forgetSamples(state.scopes),
        incarnationsAtWish: incarnations(state),
        overruled: false,
        verdict: state.verdict === null ? null : { ...state.verdict, sealedAt: now },
      })
      if (state.phase === 'active') draft.phase('draining')
      return
    case 'remove':
      draft.phase('removed')
      draft.emit({ type: 'removed', ...draft.stamp })
      draft.end(state.terminated > 0 ? 'terminated' : 'removed')
      draft.set({ holding: false })
      return
    case 'terminate':
    case 'restore':
    case 'add':
      return
    default:
      change satisfies never
  }
}

/** Counts what was cut, and says so. */
export function countTerminated(draft: Draft, count: number, atMost: boolean): void {
  if (count === 0) return
  const { state } = draft
  draft.set({
    terminated: state.terminated + count,
    terminatedAtMost: state.terminatedAtMost || atMost,
  })
  draft.emit({ type: 'terminated', ...draft.stamp, count })
}

/** A raise to a maint that is not gentle cut what was there. */
function countCut(draft: Draft, change: Change, load: number): void {
  if (change.kind !== 'hold' || change.to !== 'maint') return
  const reading = draft.state.last?.reading
  if (reading?.present === true && maintEffect(draft, reading) !== 'gentle')
    countTerminated(draft, load, true)
}

/** In flight and queued over every scope, as last read. */
export function loadOf(state: DrainState): number {
  return Object.values(state.scopes)
    .filter((track) => track.last.state === 'read')
    .reduce((sum, { last }) => sum + last.active + last.queued, 0)
}

/** What raising this member to maint does to its work. */
export function maintEffect(draft: Draft, reading: PresentReading): MaintEffect {
  if (!draft.policy.capabilities.ladder.includes('maint')) return 'none'
  return reading.maint ?? draft.policy.capabilities.maint
}

const RETRY_FIRST = 250
const RETRY_MOST = 5_000

/** A growing wait: 250 ms, doubled each time, at most 5 s. */
export function backOff(failures: number): number {
  return Math.min(RETRY_MOST, RETRY_FIRST * 2 ** failures)
}

function rejected(draft: Draft, change: Change, error: DrainableError): void {
  const { state } = draft
  draft.set({ pending: null, confirmedAt: draft.now })
  const again = error.retryable || error.code === 'NOT_FOUND' || error.code === 'CONFLICT'
  if (change.kind === 'hold' && state.verdict !== null) {
    // The door could not be closed. The verdict itself stands: nothing was changed.
    draft.fault(error)
    draft.set({ wish: state.confirmed, sealFailures: Number.MAX_SAFE_INTEGER })
    return
  }
  if (change.kind === 'hold' && state.confirmed !== 'none' && change.to !== state.confirmed) {
    draft.fault(error) // an escalation: the drain itself goes on
    draft.set({ wish: state.confirmed })
    return
  }
  if (change.kind === 'hold' && state.confirmed === 'none' && !again) {
    draft.end('refused', error)
    draft.set({ holding: false })
    return
  }
  draft.fault(error)
  draft.set({
    notBefore: draft.now + backOff(state.removeFailures),
    removeFailures: state.removeFailures + 1,
  })
  if (change.kind === 'remove' && !again) draft.end('refused', error)
}

/** A look that failed. */
export function absorbFailure(draft: Draft, error: DrainableError, askedAt: number): void {
  const known = draft.state.blind
  if (known?.error.code !== error.code) draft.fault(error)
  draft.set({ blind: { error, askedAt } })
}
