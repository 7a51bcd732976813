/** What looks show of our changes, of those whose answer was lost, and of what others did to them. */
import { atLeast } from '../../../provider/member-ref.js'
import type { AdminState, Change } from '../../../provider/contract.js'
import type { Draft, Told } from '../draft.js'
import { isDown, isUndo, UNDO_LIMIT } from '../wanted.js'
import { confirm, opened, shown, unique } from './answers.js'
import { type LateChange, owes, type Pending } from '../record.js'
import { isAnother } from '../claimed.js'
import { destination, isUndone, lacksEffect, targetOf } from '../whose.js'

/** What a look shows of our changes, and of what others did to them. */
export function learnState(
  draft: Draft,
  told: Told | undefined,
  askedAt: number,
  view: number,
): void {
  const { ledger } = draft
  const facts = draft.view(view)
  const isNew = isAnother(facts.incarnations, ledger.told)
  if (told !== undefined) {
    learnProcesses(ledger, facts, told.own)
    const { pending } = ledger
    if (pending !== null && lacksEffect(pending.change, told.own)) seeLacked(draft, pending, told)
    else if (pending?.stage === 'sent' && pending.effect === 'unseen')
      ledger.pending = { ...pending, effect: 'shown' }
  }
  for (const late of ledger.late) settleLate(draft, late, told?.own, askedAt, isNew)
  if (told === undefined || askedAt <= ledger.answeredAt) return
  settleRefusal(draft, told.own)
  seeOthers(draft, told, view, isNew)
}

/** A process that could not be read when the hold was sent: if it is closed at its first reading, it has taken it. */
function learnProcesses(
  ledger: Draft['ledger'],
  { incarnations }: ReturnType<Draft['view']>,
  own: AdminState,
): void {
  const { told } = ledger
  if (told === null || !atLeast(own, 'drain')) return
  const learnt = [...incarnations].filter(([name, one]) => told.get(name) === '' && one !== '')
  if (learnt.length > 0) ledger.told = new Map([...told, ...learnt])
}

/** The change under way is not carried out yet: what is there now is what it will change, and cut. */
function seeLacked({ ledger }: Draft, pending: Pending, { own, scopes }: Told): void {
  const load = scopes.reduce(
    (sum, one) => sum + (one.state === 'read' ? one.active + one.queued : 0),
    0,
  )
  // A cut shows in the counts alone: a look beside its answer can show what is left.
  const most = pending.change.kind === 'terminate' ? Math.max(load, pending.cuts ?? 0) : load
  const cuts = pending.cuts === null ? null : most
  const effect = pending.effect === 'unseen' ? 'unseen' : 'gone'
  ledger.pending = { ...pending, before: own, effect, cuts }
}

/**
 * What others did to a state of ours. Lower in a process that had taken it: somebody took it back, and what is set there
 * later is not ours. Lower in another process: that forgot it, and a state file of a later one can bring it back: then it is
 * in place again.
 */
function seeOthers(draft: Draft, { own, stored }: Told, view: number, isNew: boolean): void {
  const { ledger } = draft
  const { set } = ledger
  // What a stored configuration has is ours still, and the next reload brings it.
  const isStored = set !== null && stored !== undefined && atLeast(stored, set)
  const isLower = set !== null && !atLeast(own, set) && !isStored
  // Where it is lower now, nothing of ours is left to doubt.
  if (!isNew && stored === undefined)
    ledger.doubted = ledger.doubted.filter((one) => atLeast(own, one))
  if (isLower && !isNew) takenBack(draft, own)
  if (!isNew || mayShowYet(ledger)) return
  const lowered = draft.claims.filter(({ confirmed }) => !atLeast(own, confirmed))
  if (isLower) forgotten(ledger, set, own)
  else if (isBack(ledger, own)) ledger.set = own
  else if (lowered.length === 0 && own !== set && (own !== 'ready' || !owes(ledger))) return
  // Its answer speaks of the process that was there when it was sent.
  if (ledger.pending === null) draft.tell(draft.view(view).incarnations)
  for (const claim of lowered) {
    claim.confirmed = own === 'ready' ? 'none' : own
    claim.overruled = false
  }
}

/** Whether the change under way may still take effect for the first time. */
function mayShowYet({ pending }: Draft['ledger']): boolean {
  return pending !== null && pending.effect !== 'gone'
}

/** The process that had taken our state shows a lower one. An undo of ours that shows before its answer, or without one, is ours. */
function takenBack(draft: Draft, own: AdminState): void {
  const { ledger } = draft
  const change = ledger.pending?.change
  if (change?.kind === 'restore' && change.to === own) opened(draft, own)
  else if (!isUndone(ledger, own)) {
    Object.assign(ledger, { set: null, earlier: [] })
    for (const claim of draft.claims)
      if (isUndo(claim.goal) && claim.goal.then === 'end')
        claim.goal = { ...claim.goal, isTheirs: true }
  }
}

/** Another process shows less than we had set. A state of ours from before is ours again: a state file has brought it back. */
function forgotten(ledger: Draft['ledger'], set: AdminState, own: AdminState): void {
  ledger.set = null
  if (isBack(ledger, own)) ledger.set = own
  else ledger.earlier = unique([...ledger.earlier, set])
}

/** Whether another process shows a state of ours again, after one that had forgotten it. */
function isBack({ set, earlier }: Draft['ledger'], own: AdminState): boolean {
  return set === null && earlier.includes(own)
}

/** Half of a refused change may have been carried out: its very own effect, which was not there before, is in doubt. */
function settleRefusal(draft: Draft, own: AdminState): void {
  const { refusal } = draft.ledger
  if (refusal === null || refusal.before === null) return
  const { change, before } = refusal
  draft.ledger.refusal = { ...refusal, before: null }
  if (targetOf(change) === own && before !== 'unknown' && lacksEffect(change, before))
    shown(draft, own)
}

/**
 * A change without an answer: it is ours if a look had lacked its effect and this one shows it. Where the effect was there all
 * the time, or first shows in a process that has begun since, nobody can tell. It is over once the balancer has answered
 * for longer than it can hold a request.
 */
function settleLate(
  draft: Draft,
  late: LateChange,
  own: AdminState | undefined,
  askedAt: number,
  isNew: boolean,
): void {
  const { ledger } = draft
  // A look that was asked for before the effect was known to be missing can show an older state.
  if (askedAt <= Math.max(late.lostAt, late.lacked?.at ?? late.lostAt)) return
  const shows = own !== undefined && showsAs(draft, late.change, own)
  if (shows && late.lacked !== null) settleShown(draft, late, own, isNew)
  else if (late.until !== null && own !== undefined && askedAt >= late.until)
    settleOver(draft, late, own, shows)
  else {
    const until = late.until ?? draft.now + lateBound(draft)
    // One that was asked for before the answer to a twin can show the state before that.
    const isNewer = askedAt > ledger.answeredAt
    const lacks = own !== undefined && isNewer && lacksEffect(late.change, own)
    putLate(ledger, late, { ...late, until, lacked: lacks ? { at: askedAt, own } : late.lacked })
  }
}

/** A look had lacked the effect of a change, and this one shows it. */
function settleShown(draft: Draft, late: LateChange, own: AdminState, isNew: boolean): void {
  const { ledger } = draft
  const to = targetOf(late.change)
  const untold = { ...late, lacked: null }
  if (isNew && late.change.kind === 'hold') {
    putLate(ledger, late, untold)
    shown(draft, to, own)
    return
  }
  const others = [...ledger.late.filter((one) => one !== late), ledger.pending]
  const hasTwin = others.some((one) => one !== null && targetOf(one.change) === to)
  // A twin, or somebody who raised it further, may have led there: this one can still come.
  putLate(ledger, late, own === to && !hasTwin ? null : untold)
  happened(draft, late)
}

/** The change can't come any more. */
function settleOver(draft: Draft, late: LateChange, own: AdminState, shows: boolean): void {
  const { ledger } = draft
  const { change } = late
  putLate(ledger, late, null)
  if (shows && change.kind === 'hold') shown(draft, change.to, own)
  // What an undo of ours was to lead to is no other client's.
  if (shows && change.kind === 'restore' && ledger.set !== null) opened(draft, change.to)
}

function putLate(ledger: Draft['ledger'], late: LateChange, by: LateChange | null): void {
  ledger.late = ledger.late.flatMap((one) => (one !== late ? [one] : by === null ? [] : [by]))
}

/** Whether a state shows the effect of a change; while the member is opened only exactly its own. */
function showsAs(draft: Draft, change: Change, own: AdminState): boolean {
  if (change.kind === 'restore') return own === change.to
  if (change.kind !== 'hold') return false
  return draft.claims.some(isDown) ? atLeast(own, change.to) : own === change.to
}

function lateBound({ claims }: Draft): number {
  return Math.max(0, ...claims.map(({ policy }) => policy.capabilities.lateBound))
}

/** A lost change of ours was carried out. */
function happened(draft: Draft, { change, lacked }: LateChange): void {
  confirm(draft, change, 'applied', lacked?.own ?? 'unknown')
  for (const claim of draft.claims) {
    const { goal } = claim
    if (goal.kind !== 'open' || targetOf(change) === destination(draft.ledger, goal)) continue
    // Led away by a change of ours: it must be opened again, and the wait can have taken all of its time.
    const anew = goal.reached !== null && goal.until !== null
    const until = anew ? Math.max(goal.until, draft.now + UNDO_LIMIT) : goal.until
    claim.goal = { ...goal, reached: null, until }
  }
}
