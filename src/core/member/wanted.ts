import { type Claim, type Incarnations, isLive, type MemberRecord } from './record.js'
import type { AdminState } from '../../provider/contract.js'
import type { DrainableError } from '../../provider/error.js'

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

/** How long an undo may take, in milliseconds: the first check after maint needs its time. */
export const UNDO_LIMIT = 30_000

/** What a claim wants. */
export type Goal =
  | { readonly kind: 'drain' }
  /** Looks only, never asks for a change. */
  | { readonly kind: 'watch' }
  | OpenGoal

/**
 * Opens the member again. `ours`: back to its state before, and only what we changed. `anybody`: ready, whichever
 * client drained it.
 */
export interface OpenGoal {
  readonly kind: 'open'
  readonly of: 'ours' | 'anybody'
  /** When it began, by the clock. */
  readonly since: number
  /** When it gives up; null: never. */
  readonly until: number | null
  /** Until when to wait for a change of ours that may still be carried out; null: until it can't happen any more. */
  readonly lateUntil: number | null
  /**
   * Whether the member must be seen healthy if it gets clients again; otherwise only the first check after maint is
   * waited for.
   */
  readonly mustBeHealthy: boolean
  /** The caller's own health check, called before the member is opened. */
  readonly check: 'none' | 'due' | 'running' | 'passed'
  /**
   * What follows: the end of the run, or, after the undo of a hold that left too few serving, a refusal or a wait.
   */
  readonly then: 'end' | 'refuse' | 'wait'
  /** Why a hold that left too few serving is undone. */
  readonly because: DrainableError | null
  /** The own state it was first found in. */
  readonly wasAdmin: AdminState | null
  /** Incarnations when it was found open: after that, another state in the same process is another client's. */
  readonly reached: Incarnations | null
  /** Until when processes may take that it is open; null: it is not open, or all have. */
  readonly takenBy: number | null
  /** Another client had set the member before: if nothing of ours is left, what is found there is theirs. */
  readonly isTheirs: boolean
  /** How many changes were sent for it. */
  readonly tries: number
  /** Why the newest look that failed did, since when looks fail (null: they come), and for how long they did before; null: never. */
  readonly unread: Unread | null
}

/** For how long a balancer could not be read, in milliseconds. */
interface Unread {
  readonly error: DrainableError
  readonly from: number | null
  readonly before: number
}

/** Options of an undo, or of `ready()`. */
export type OpenOptions = Pick<OpenGoal, 'of' | 'since' | 'until' | 'lateUntil'> &
  Partial<Pick<OpenGoal, 'mustBeHealthy' | 'check' | 'then' | 'because' | 'isTheirs'>>

/** Makes the goal to open a member. */
export function openGoal(options: OpenOptions): OpenGoal {
  return {
    kind: 'open',
    mustBeHealthy: false,
    check: 'none',
    then: 'end',
    because: null,
    wasAdmin: null,
    reached: null,
    takenBy: null,
    isTheirs: false,
    tries: 0,
    unread: null,
    ...options,
  }
}
