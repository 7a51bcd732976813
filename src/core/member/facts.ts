import { atLeast, isSameIdentity } from '../../provider/member-ref.js'
import type { LoadScope, Reading } from '../../provider/contract.js'
import type { Draft, Open } from './draft.js'
import type { LookInput } from './input.js'
import { learnState } from './ledger/seen.js'
import { allInForce, inWishedState, isClosed, missesArrivals } from './proof/prove.js'
import { isLive, owes, type Facts, type Incarnations } from './record.js'
import { isAnother, neededState, readsMember } from './claimed.js'
import { forgetSamples, trackScopes } from './proof/scopes.js'
import { isDown } from './wanted.js'
import { isBelow } from './whose.js'

/** Takes a look into the record, without any decision. */
export function learnLook(draft: Draft, input: LookInput): void {
  const { reading, askedAt } = input
  const facts = draft.view(input.view)
  const own = draft.claims.filter(({ view }) => view === input.view)
  const last = facts.last?.reading
  const closed = own.filter((claim) => last?.present === true && isClosed(claim, last))
  facts.last = { reading, askedAt, at: draft.now }
  facts.unread = null
  facts.processes = processesAfter(facts, input)
  facts.incarnations = incarnationsAfter(facts, reading.scopes)
  meet(draft, reading, facts, askedAt > draft.ledger.answeredAt)
  for (const claim of own) trackWork(draft, claim, input)
  learnState(draft, draft.tells(reading), askedAt, input.view)
  if (askedAt <= draft.ledger.answeredAt || draft.ledger.pending !== null) return
  for (const claim of draft.claims) {
    if (claim.view === input.view) followEffect(draft, claim, closed.includes(claim))
    else seeElsewhere(draft, claim, reading)
  }
}

/** A process stays until its end is certain. */
function processesAfter({ processes }: Facts, { reading, ended }: LookInput): Facts['processes'] {
  const now = new Map(ended === 'unlisted' ? [] : processes)
  for (const scope of reading.scopes) {
    if (scope.state === 'ended') now.delete(scope.scope)
    else now.set(scope.scope, scope)
  }
  if (ended !== undefined && ended !== 'unlisted') for (const name of ended) now.delete(name)
  return now
}

/** A process that can't be read is what it was read as last. */
function incarnationsAfter(
  { processes, incarnations }: Facts,
  scopes: readonly LoadScope[],
): Incarnations {
  const read = new Map(
    scopes.flatMap((one) => (one.state === 'read' ? [[one.scope, one.incarnation] as const] : [])),
  )
  const now = [...processes.keys()].map(
    (name) => [name, read.get(name) ?? incarnations.get(name) ?? ''] as const,
  )
  const isSame =
    now.length === incarnations.size && now.every(([name, one]) => incarnations.get(name) === one)
  return isSame ? incarnations : new Map(now)
}

/**
 * Until something of ours is on the member, the state found is the newest one: another client can set another one until then. A
 * process that has forgotten another client's hold shows no state to go back to.
 *
 * @param isNewer - whether the look was asked for after the last answer: an older one can show what we have changed since
 */
function meet(
  draft: Draft,
  reading: Reading,
  facts: ReturnType<Draft['view']>,
  isNewer: boolean,
): void {
  const { ledger } = draft
  const { found } = ledger
  if (!reading.present) return
  const { own, serves, native = null } = reading
  const isKnown = found === null || isSameIdentity(found.identity, reading.identity)
  if (isKnown) facts.vanished = null
  // An address that is not known now is the one of before.
  const identity = reading.identity || (found?.identity ?? '')
  const isNew = isAnother(facts.incarnations, ledger.told)
  const hasForgotten = isNew && isBelow(found, own) && draft.claims.some(({ held }) => held)
  const isTheirs = isNewer && !mayShowOurs(draft, isNew) && !hasForgotten
  // Ready is never ours: what could not be read at first was so.
  const isTold = found?.own === 'unknown' && own === 'ready' && ledger.set === null
  if (found === null || (isKnown && (isTheirs || isTold)))
    ledger.found = { identity, own, serves, native }
  else if (found.identity === '') ledger.found = { ...found, identity }
}

/** Whether a state found may come from a change of ours. What we had set before comes back in another process alone. */
function mayShowOurs({ ledger, claims }: Draft, isNew: boolean): boolean {
  const isOpening = claims.some(({ goal }) => goal.kind === 'open' && goal.then === 'end')
  const known = isNew ? ledger : { ...ledger, earlier: [] }
  return isOpening || owes(known) || (ledger.refusal?.before ?? null) !== null
}

/** The evidence of one claim: it counts from where its own hold took effect. */
function trackWork(draft: Draft, claim: Open, { reading, ended, took }: LookInput): void {
  const tracked = trackScopes(claim.proof, {
    listed: reading.scopes,
    ended,
    took,
    at: draft.now,
    wish: neededState(claim),
  })
  draft.proof(claim, { scopes: tracked.scopes, ended: tracked.ended })
  if (tracked.lost.length === 0) return
  const at = draft.iso(draft.now)
  draft.proof(claim, {
    lost: [...claim.proof.lost, ...tracked.lost.map((one) => ({ ...one, at }))],
  })
}

/**
 * Keeps the evidence of a claim in step with the state found. Where arrivals are not counted, it begins anew once the member is
 * found closed, whoever closed it.
 */
function followEffect(draft: Draft, claim: Open, wasClosed: boolean): void {
  const claimed = draft.claimed(claim)
  const { effectiveSince, scopes } = claim.proof
  const reading = claimed.facts.last?.reading
  if (!inWishedState(claimed)) {
    if (effectiveSince !== null) forgetEffect(draft, claim)
    return
  }
  const isShut =
    !wasClosed && missesArrivals(claim) && reading?.present === true && isClosed(claim, reading)
  if (effectiveSince === null || isShut)
    draft.proof(claim, { effectiveSince: draft.now, scopes: forgetSamples(scopes) })
  if (claim.goal.kind !== 'drain' || !readsMember(claimed)) return
  draft.tell(draft.view(claim.view).incarnations)
  // A state read as wanted is in place, whoever set it.
  Object.assign(claim, { confirmed: claim.wish, overruled: false })
  if (!isLive(claim) || !allInForce(claim)) return
  if (!claim.proof.inForce) draft.emit(claim, { type: 'in-force', ...draft.stamp })
  draft.proof(claim, { inForce: true })
}

function forgetEffect(draft: Draft, claim: Open): void {
  const scopes = forgetSamples(claim.proof.scopes)
  draft.proof(claim, { effectiveSince: null, inForce: false, scopes })
}

/** A look of another view shows the state alone: if it is lower than a claim has it, nothing counts that was seen until now. */
function seeElsewhere(draft: Draft, claim: Open, reading: Reading): void {
  const told = draft.tells(reading)
  if (told === undefined || !isDown(claim) || atLeast(told.own, claim.confirmed)) return
  if (claim.proof.effectiveSince !== null) forgetEffect(draft, claim)
}

/** Takes in that the member could not be read. */
export function learnFailure(
  draft: Draft,
  view: number,
  unread: NonNullable<Facts['unread']>,
): void {
  const facts = draft.view(view)
  const isNews = facts.unread?.error.code !== unread.error.code
  for (const claim of draft.claims)
    if (isNews && claim.view === view && isLive(claim)) draft.fault(claim, unread.error)
  facts.unread = unread
}
