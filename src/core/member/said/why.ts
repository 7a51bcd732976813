import { formatRef } from '../../../provider/member-ref.js'
import { formatDuration } from '../../../provider/duration.js'
import { printable } from '../../../provider/quote.js'
import type { Outcome, Why } from '../../../provider/report.js'
import { idleRule, inWishedState } from '../proof/prove.js'
import type { Claim } from '../record.js'
import { loadOf, ownOf, setterOf, type ClaimedMember } from '../claimed.js'
import { absenceGap, judgeScope, type IdleRule } from '../proof/scopes.js'
import { awaitsOthers } from '../hold.js'
import { isTriedAgain, targetOf } from '../whose.js'
import { explainScope, noted } from './why-scope.js'
import { explainOpen, explainUnknown, explainVanished, ONLY_WAIT, type Say } from '../open-waits.js'

/**
 * Explains why a member is not idle or not open again, or why its idle is not verified: the answer to a stuck deploy.
 * The first reason is the most important one.
 *
 * @param wallOffset - epoch milliseconds minus the balancer's clock, to print times in the text
 */
export function explain(claimed: ClaimedMember, now: number, wallOffset: number): readonly Why[] {
  return [...reasons(claimed, now, wallOffset), ...advised(claimed)]
}

function reasons(claimed: ClaimedMember, now: number, wallOffset: number): readonly Why[] {
  const { ref, claim, facts } = claimed
  if (succeeded(claim))
    return [...heldBy(claimed), ...outWithOthers(claimed), ...unverified(claimed)]
  const list: Why[] = []
  const say: Say = (code, text, more = {}) =>
    void list.push({ code, ref, text: printable(text), ...more })
  explainChanges(claimed, wallOffset, say)
  if (facts.unread !== null) {
    say('unreadable', `the balancer can't be read: ${facts.unread.error.message}`, {
      hint: "a load that can't be read is unknown, never zero; the last numbers are older",
    })
  }
  if (claim.phase === 'idle' && facts.unread === null) {
    if (list.length === 0) explainNext(claimed, say)
    return [...list, ...unverified(claimed)]
  }
  if (claim.goal.kind === 'open') explainOpen(claimed, now, say)
  else {
    for (const track of claim.proof.scopes.values()) explainScope(track, claimed, now, say)
    explainElsewhere(claimed, say)
    explainState(claimed, say)
    if (list.length === 0) explainWait(claimed, now, say)
    if (list.length === 0 && isWaiting(claim)) explainVanished(claimed, say)
    for (const hint of hintsOf(claimed, list)) say(list[0]?.code ?? 'in-flight', hint)
  }
  if (list.length > 0) return list
  explainNext(claimed, say)
  return [...list, ...unverified(claimed)]
}

/** A fault of the balancer's set-up, which a held member can meet again: said whatever else is. */
function advised({ ref, claim, facts: { last } }: ClaimedMember): readonly Why[] {
  if (claim.goal.kind !== 'drain' || claim.ending.ended?.outcome === 'restored') return []
  if (last?.reading.present !== true || last.reading.advice === undefined) return []
  return [{ code: 'not-in-force', ref, ...last.reading.advice }]
}

/** Who holds a member that was undone under another call. */
function heldBy({ ref, claim }: ClaimedMember): readonly Why[] {
  if (claim.heldBy === null) return []
  const named = claim.heldBy === '' ? '' : ` (ticket '${claim.heldBy}')`
  const text = `${formatRef(ref)} stays drained: another drain of this process${named} holds it, and opens it last`
  return [{ code: 'held', ref, text: printable(text), hint: 'restore or release that drain' }]
}

/** Idle, and held until the others of its call are idle too. */
function outWithOthers({ ref, claim }: ClaimedMember): readonly Why[] {
  if (!awaitsOthers(claim)) return []
  const text = `${formatRef(ref)} is idle, and is taken out together with the other members of this call: each removal is a reload`
  return [{ code: 'settling', ref, text: printable(text), hint: ONLY_WAIT }]
}

/** Explains work that another provider object shows, in a process that this one does not list. */
function explainElsewhere({ elsewhere }: ClaimedMember, say: Say): void {
  for (const { scope, active, queued } of elsewhere)
    say(
      'unreadable',
      `${scope} is at work (${active + queued} in flight), as another provider object of this process shows; this one does not list it`,
      {
        scope,
        count: active + queued,
        hint: 'connect this provider to an endpoint that shows every process',
      },
    )
}

/** Nothing blocks the drain: names what it waits for next. */
function explainNext({ ref, claim, facts, ledger }: ClaimedMember, say: Say): void {
  const { goal, ending } = claim
  if (goal.kind === 'watch' || facts.last === null || !isWaiting(claim)) return
  const { pending } = ledger
  if (ending.ended !== null && pending === null) return
  const name = formatRef(ref)
  const more = { hint: ONLY_WAIT }
  if (claim.yieldAt !== null) {
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
function succeeded({ ending, phase }: Claim): boolean {
  const outcome = ending.ended?.outcome
  if (outcome === 'idle') return phase === 'idle'
  return outcome === 'removed' || outcome === 'restored' || outcome === 'terminated'
}

/** A first hold is not sent before its ticket is saved: the balancer was not asked then. */
function explainRefusal({ ref, claim, ledger: { refusal } }: ClaimedMember, say: Say): void {
  const { outcome, error } = claim.ending.ended ?? {}
  const isOver = outcome === 'refused'
  const said =
    isOver && error?.code === 'TICKET_INVALID'
      ? `'hold' was not sent: ${error.message}`
      : refusal && `'${refusal.change.kind}' was refused by the balancer: ${refusal.error.message}`
  if (said === null) return
  const hint = `it is ${refusal && isTriedAgain(refusal) && !isOver ? '' : 'not '}tried again`
  say('refused', `${formatRef(ref)}: ${said}`, { hint })
}

/** Explains our own changes that have not succeeded: refused, held back by the floor, or not answered. */
function explainChanges(claimed: ClaimedMember, wallOffset: number, say: Say): void {
  const { ref, claim, ledger } = claimed
  if (claim.goal.kind === 'watch') return
  const name = formatRef(ref)
  explainRefusal(claimed, say)
  if (claim.atMinimum) {
    say(
      'pool-at-minimum',
      `${name} is held back: the pool would keep fewer serving members than keepReady`,
      {
        hint: 'wait for a replacement to serve, or lower keepReady (keepReady: 0 lets the last one go)',
      },
    )
  }
  const by = ledger.loss === null ? '' : ` (${ledger.loss.message})`
  // A hold that was sent again is one thing to wait for: the newest can come last.
  const newest = new Map(ledger.late.map((one) => [one.change.kind, one]))
  for (const { change, until } of newest.values()) {
    // A late change that repeats the state already in place changes nothing.
    const inPlace = claim.confirmed !== 'none' || targetOf(change) === ownOf(claimed)
    if (claim.goal.kind === 'drain' && change.kind === 'hold' && inPlace) continue
    const when =
      until === null
        ? 'for as long as the balancer does not answer, and some time after'
        : `until ${new Date(until + wallOffset).toISOString()}`
    say(
      'not-in-force',
      `${name}: the answer to '${change.kind}' was lost${by}; the balancer may still carry it out ${when}`,
      { hint: ONLY_WAIT },
    )
  }
  if (claim.goal.kind === 'drain' && ledger.pending?.change.kind === 'restore') {
    const text = `${name}: another call of this process is opening it and has no answer yet: the balancer may still carry it out`
    say('not-in-force', text, { hint: ONLY_WAIT })
  }
}

function explainState(claimed: ClaimedMember, say: Say): void {
  const { ref, claim, facts, ledger } = claimed
  const { last } = facts
  if (claim.goal.kind !== 'drain' || last?.reading.present !== true || ledger.pending !== null)
    return
  const { own } = last.reading
  const name = formatRef(ref)
  if (own === 'unknown') {
    explainUnknown(name, last.reading.hints, say)
    return
  }
  // Name another client only if a look that began after our own last change shows its state.
  if (inWishedState(claimed) || !claim.overruled || last.askedAt <= ledger.answeredAt) return
  say(
    'overruled',
    `${name} is ${own}: ${setterOf(claimed)} set that state; this drain wants ${claim.wish}`,
    { hint: remedyOf(claim) },
  )
}

function remedyOf({ policy, ending }: Claim): string {
  if (policy.onOverrule !== 'reapply')
    return "agree with the other client and drain again, or let onOverrule: 'reapply' put the state back"
  return ending.ended === null
    ? 'find out which client it is: the drain puts the state back, but not for ever'
    : 'agree with the other client and drain again'
}

/** Hints of the provider beside its numbers, only if there is something to explain. */
function hintsOf({ facts: { last } }: ClaimedMember, list: readonly Why[]): readonly string[] {
  const reading = last?.reading
  return reading?.present === true && list.length > 0 ? (reading.hints ?? []) : []
}

/** Outcomes at the deadline: what the drain waited for until then is the reason. */
const BY_TIME: readonly Outcome[] = ['timeout', 'unreachable', 'proceeded']

function isWaiting({ ending: { ended } }: Claim): boolean {
  return ended === null || BY_TIME.includes(ended.outcome)
}

/** Nothing is in flight: explains what the drain still waits for. */
function explainWait(claimed: ClaimedMember, now: number, say: Say): void {
  const { ref, claim, facts } = claimed
  const rule = idleRule(claimed)
  const waits = isWaiting(claim)
  if (waits && !isGone(claimed) && explainVanished(claimed, say)) return
  if (rule !== null && inWishedState(claimed)) {
    explainProof(claimed, rule, now, say)
    return
  }
  if (claim.goal.kind !== 'drain' || facts.last === null || !waits) return
  const wished = claim.wish === 'none' ? claim.policy.hold : claim.wish
  say('not-in-force', `${formatRef(ref)} has not taken the ${wished} yet`, {
    hint: "if this lasts, look for the reasons 'refused' and 'unreadable'",
  })
}

/** Whether the member is certainly gone: the drain then waits only for its processes. */
function isGone({ claim, facts: { vanished, last } }: ClaimedMember): boolean {
  if (vanished === null || last === null) return false
  return last.askedAt >= vanished.since + absenceGap(claim)
}

/** The member is held: explains what the idle rule still lacks in each process. */
function explainProof(claimed: ClaimedMember, rule: IdleRule, now: number, say: Say): void {
  const { claim, facts } = claimed
  const { proof } = claim
  const tracks = [...proof.scopes.values()]
  if (tracks.length === 0 && proof.ended === 0 && facts.last?.reading.present === true) {
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
        { ...where, hint: `${ONLY_WAIT}; the timeout bounds the wait` },
      )
    } else if (verdict.lacks === 'second-sample') {
      say('freshness', `0 in flight; the second sample is due in ${left}`, {
        ...where,
        hint: ONLY_WAIT,
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
function unverified({ ref, claim, facts }: ClaimedMember): readonly Why[] {
  const list: Why[] = claim.proof.lost.map(({ scope, active, note }) => ({
    code: 'old-scope',
    ref,
    scope,
    count: active,
    text: printable(
      note === undefined
        ? `${scope} ended with ${active} in flight: that work was cut, or finished unseen`
        : `${scope} was last seen with ${active} in flight, and nothing tells what became of that work: ${note}`,
    ),
  }))
  if (claim.ending.ended?.outcome === 'restored') return []
  const reading = facts.last?.reading
  const unseen =
    claim.proof.unverified ?? (reading?.present === true ? reading.unverified : undefined)
  // Nothing that can't be read: it was removed without a proof.
  const isLate = claim.policy.onTimeout === 'remove' && claim.ending.terminateUntil !== null
  const isUnproved = isLate || (claim.proof.proof === null && loadOf({ claim }) > 0)
  const code = isUnproved && claim.phase === 'removed' ? 'in-flight' : 'unreadable'
  if (unseen !== undefined) list.push({ code, ref, text: unseen })
  return list
}
