import type { Goal, OpenGoal } from './goal.js'
import { isLive, type Claim, type MemberRecord } from './record.js'

/** Whether a claim wants its member down: it drains it, has not let go, and is not opening it for the floor. */
export function isDown(claim: Pick<Claim, 'goal' | 'ending'>): boolean {
  return claim.goal.kind === 'drain' && isLive(claim)
}

/** The newest claim that holds the member down, beside one. */
export function holderBeside(
  { claims }: Pick<MemberRecord, 'claims'>,
  but: Claim,
): Claim | undefined {
  return claims.findLast((claim) => claim.id !== but.id && isDown(claim) && claim.held)
}

/**
 * Whether a record takes its member, or may take it: it does not count as serving then, whatever a reload did to it. A lost
 * hold that nobody looks after counts until its time is over.
 *
 * @param asking - claims that only ask for their place, and have none
 */
export function takesMember(
  { claims, ledger }: MemberRecord,
  now: number,
  asking?: ReadonlySet<number>,
): boolean {
  const { pending, late } = ledger
  const hasPlace = claims.some(
    (claim) =>
      isDown(claim) &&
      (claim.held || (claim.floor !== 'unasked' && asking?.has(claim.id) !== true)),
  )
  if (hasPlace) return true
  if (pending?.change.kind === 'hold' && asking?.has(pending.by) !== true) return true
  return late.some(
    ({ change, until }) =>
      change.kind === 'hold' && (claims.length > 0 || until === null || now < until),
  )
}

/** Whether two goals can't both be had. A drain that gives its place back for now still wants its member down. */
export function isOpposite(one: Pick<Claim, 'goal'>, other: Pick<Claim, 'goal'>): boolean {
  const sides = [sideOf(one.goal), sideOf(other.goal)]
  return sides.includes('down') && sides.includes('open')
}

/** What a goal is for in the end. */
export function sideOf(goal: Goal): 'down' | 'open' | 'none' {
  if (goal.kind === 'watch') return 'none'
  return goal.kind === 'open' && goal.then === 'end' ? 'open' : 'down'
}

/** Whether it undoes what one call has done, and has no word over others. */
export function isUndo(goal: Goal): goal is OpenGoal {
  return goal.kind === 'open' && goal.of === 'ours'
}
