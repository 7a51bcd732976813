import { atLeast } from '../../provider/admin-state.js'
import type { PresentReading, Reading } from '../../provider/contract.js'
import type { DrainableError } from '../../provider/error.js'
import type { Draft } from './draft.js'
import { noteForeign } from './ledger/foreign.js'
import type { ReadingInput } from './input.js'
import { followPending, settleLate } from './ledger/late.js'
import { owesUndo } from './ledger/owner.js'
import { allInForce, inWishedState, isClosed, missesArrivals } from './proof.js'
import { forgetSamples, trackScopes } from './scopes.js'
import {
  type FoundMember,
  incarnationsOf,
  isLetGo,
  loadOf,
  neededState,
  ownOf,
  readsMember,
} from './state.js'
import { isSameIdentity } from '../../provider/member-ref.js'

/** Takes a reading into the state, without any decision. */
export function absorbReading(draft: Draft, input: ReadingInput): void {
  const { state } = draft
  const { reading, askedAt, mayOpen = false } = input
  const { last } = state
  const load = loadOf(state)
  const lived = incarnationsOf(state)
  const closed = last?.reading.present === true && isClosed(state, last.reading)
  takeScopes(draft, input)
  draft.set({
    unread: null,
    last: { reading, askedAt, at: draft.now, mayOpen },
  })
  meet(draft, reading)
  learnProcesses(draft, reading)
  followPending(draft, reading)
  const { late } = draft.state.hold
  settleLate(draft, reading, askedAt, { load, last, lived })
  noteForeign(draft, reading, askedAt, { last, lived, late })
  if (askedAt <= draft.state.hold.confirmedAt || draft.state.hold.pending !== null) return
  followEffect(draft, closed)
}

function takeScopes(draft: Draft, { reading, ended, took = 0 }: ReadingInput): void {
  const { proof } = draft.state
  const tracked = trackScopes(proof, {
    listed: reading.scopes,
    ended,
    took,
    at: draft.now,
    wish: neededState(draft.state),
  })
  draft.proof({ scopes: tracked.scopes, ended: tracked.ended })
  if (tracked.lost.length === 0) return
  const at = draft.iso(draft.now)
  draft.proof({ lost: [...proof.lost, ...tracked.lost.map((lost) => ({ ...lost, at }))] })
}

/**
 * Records the state that an undo goes back to: the last one read before our first change, because another client can
 * set another one until then.
 */
function meet(draft: Draft, reading: Reading): void {
  const { found } = draft.state
  if (!reading.present) return
  // The member is there, whatever this look was for.
  const known = found === null || isSameIdentity(found.identity, reading.identity)
  if (known && draft.state.vanished !== null) draft.set({ vanished: null })
  const untouched = !owesUndo(draft.state) && draft.state.hold.changes.length === 0
  if (found === null || (untouched && known)) draft.set({ found: toFound(reading, found) })
  // A drain that began while its name had no address learns which machine it is once there is one.
  else if (found.identity === '') draft.set({ found: { ...found, identity: reading.identity } })
}

/** An address that is not known now is the one of before. */
function toFound(reading: PresentReading, before: FoundMember | null): FoundMember {
  const { own, serves, native = null } = reading
  return { identity: reading.identity || (before?.identity ?? ''), own, serves, native }
}

/**
 * Learns the incarnation of a process that could not be read when the hold was sent, from its first reading while the
 * member is closed. A different incarnation read later has begun since.
 */
function learnProcesses(draft: Draft, { scopes }: Reading): void {
  if (!readsMember(draft.state) || !atLeast(ownOf(draft.state), 'drain')) return
  for (const { scope, state, incarnation } of scopes) {
    const { incarnations } = draft.state.hold
    if (state === 'read' && incarnations?.get(scope) === '')
      draft.hold({ incarnations: new Map(incarnations).set(scope, incarnation) })
  }
}

/**
 * Keeps `effectiveSince` in step with what was found. Where arrivals are not counted, the proof begins anew once the
 * member is found closed, whoever closed it.
 *
 * @param wasClosed - whether the look before found it closed
 */
function followEffect(draft: Draft, wasClosed: boolean): void {
  const { state } = draft
  const { effectiveSince } = state.proof
  const reading = state.last?.reading
  if (inWishedState(state)) {
    const shut =
      !wasClosed && missesArrivals(state) && reading?.present === true && isClosed(state, reading)
    if (effectiveSince === null || shut)
      draft.proof({ effectiveSince: draft.now, scopes: forgetSamples(state.proof.scopes) })
    if (!readsMember(state)) return
    // A state read as wanted is in place, whoever set it.
    const confirmed = draft.state.hold.wish
    draft.hold({ incarnations: incarnationsOf(draft.state), overruled: false, confirmed })
    sayInForce(draft)
  } else if (effectiveSince !== null) {
    draft.proof({
      effectiveSince: null,
      inForce: false,
      scopes: forgetSamples(state.proof.scopes),
    })
  }
}

function sayInForce(draft: Draft): void {
  const { state } = draft
  if (state.goal.kind === 'watch' || isLetGo(state)) return
  const inForce = allInForce(state)
  if (inForce && !state.proof.inForce) draft.emit({ type: 'in-force', ...draft.stamp })
  if (inForce) draft.proof({ inForce })
}

/** Takes a failed look into the state. */
export function absorbFailure(draft: Draft, error: DrainableError, askedAt: number): void {
  if (draft.state.unread?.error.code !== error.code) draft.fault(error)
  draft.set({ unread: { error, askedAt } })
}
