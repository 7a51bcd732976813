import { atLeast, isSameIdentity } from '../../../provider/member-ref.js'
import type { Draft } from '../draft.js'
import type { Left } from '../input.js'
import { doubt } from './answers.js'
import { emptyLedger, isLive, owes, type Claim, type LateChange, type Ledger } from '../record.js'
import { targetOf } from '../whose.js'

/**
 * What a ticket, or a call that had let go, knows of its changes. The record is believed where a change of its own is in place
 * and a claim looks after it: then only the state found is merged, and the earlier one stands. A claim that waits, or that found
 * the member drained, has changed nothing; a record without claims knows no more than its last ticket did.
 */
export function takeBack(draft: Draft, { id, startedAt }: Claim, left: Left | undefined): void {
  if (left === undefined) return
  const { ledger } = draft
  const others = draft.claims.filter((other) => other.id !== id)
  if (isOfAnother(ledger, left.ledger)) {
    if (others.some(isLive) || ledger.pending !== null) return // it tells nothing of this member
    Object.assign(ledger, emptyLedger(draft.now))
  }
  // Where a later claim has seen its hold taken back, what an earlier ticket has in place went with it.
  const isGone = (one: Claim): boolean => one.overrules > 0 && one.startedAt > startedAt
  if (others.some((one) => knows(ledger) || isGone(one))) add(draft, left.ledger)
  else if (owes(left.ledger)) believe(draft, left.ledger)
  else {
    ledger.found ??= left.ledger.found
    ledger.told ??= left.ledger.told
  }
}

/** Whether two ledgers are of two members that have had one name. */
function isOfAnother({ found }: Ledger, { found: theirs }: Ledger): boolean {
  return found !== null && theirs !== null && !isSameIdentity(found.identity, theirs.identity)
}

/** Whether a change of ours is known to be in place. */
function knows({ set }: Ledger): boolean {
  return set !== null
}

/** Whether what they found is from before what we found. */
function isEarlier({ found: theirs }: Ledger, { found }: Ledger): boolean {
  if (theirs === null || theirs.own === 'unknown') return false
  return found === null || !atLeast(theirs.own, found.own === 'unknown' ? 'maint' : found.own)
}

/** Adds to a record that knows what is in place. */
function add(draft: Draft, theirs: Ledger): void {
  const { ledger } = draft
  if (isEarlier(theirs, ledger) && owes(theirs)) ledger.found = theirs.found
  const known = newOf(theirs, ledger)
  addSet(draft, theirs)
  if (theirs.set !== ledger.set) doubtRaises(draft, known)
  for (const one of theirs.doubted) doubt(draft, one)
  ledger.late = [...ledger.late, ...known]
}

/** Of two states that were set, the higher one is a raise of the lower: the next look shows whether it is in place. */
function addSet({ ledger, views, ref, now }: Draft, theirs: Ledger): void {
  const { set } = ledger
  if (set === null || theirs.set === null || set === theirs.set) return
  const isHigher = atLeast(theirs.set, set)
  const isSeen = [...views.values()].some(({ last }) => last !== null)
  if (!isHigher && isSeen) return // ours was seen in place since
  const to = isHigher ? theirs.set : set
  if (to === 'ready') return
  const raise = {
    change: { kind: 'hold', ref, to },
    lostAt: now - 1,
    until: now,
    lacked: null,
  } as const
  ledger.set = isHigher ? set : theirs.set
  ledger.late = [...ledger.late, raise]
}

/** Takes over what they know, beside what is known here. */
function believe(draft: Draft, theirs: Ledger): void {
  const { ledger, now } = draft
  const set = theirs.set ?? ledger.set
  const before = [...ledger.earlier, ...theirs.earlier, ledger.set]
  const doubted = [...new Set([...ledger.doubted, ...theirs.doubted])]
  const notTheirs = newOf(ledger, theirs)
  const known = newOf(theirs, ledger).map((one) => ({
    ...one,
    lostAt: Math.min(one.lostAt, now),
  }))
  Object.assign(ledger, {
    found: owes(ledger) && !isEarlier(theirs, ledger) ? ledger.found : theirs.found,
    set,
    earlier: [...new Set(before.filter((one) => one !== null))],
    told: ledger.told ?? theirs.told,
    doubted: doubted.filter((one) => one !== set),
    refusal: theirs.refusal,
    late: [...ledger.late, ...known],
    notBefore: now,
  })
  doubtRaises(draft, notTheirs)
}

/** Lost changes that were not decided over the hold that is known: they are no raises of it. */
function doubtRaises(draft: Draft, late: readonly LateChange[]): void {
  for (const { change } of late) if (change.kind === 'hold') doubt(draft, change.to)
}

/** Lost changes of one ledger that another one does not know of. What is still under way there is not lost. */
function newOf({ late }: Ledger, { late: theirs, pending }: Ledger): readonly LateChange[] {
  const known = theirs.map(({ change }) => targetOf(change))
  return late.filter(
    ({ change }) => change !== pending?.change && !known.includes(targetOf(change)),
  )
}
