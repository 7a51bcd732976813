import type { Clock } from '../../../provider/clock.js'
import { DrainableError } from '../../../provider/error.js'
import type { Balancer } from '../../balancer/balancer.js'
import { LAST_LOOK } from '../../balancer/look/call.js'
import type { Scheduler } from '../../balancer/look/scheduler.js'
import type { Alarm } from '../../balancer/look/timer.js'
import { isReportedIdle } from '../../member/idle.js'
import type { ClaimedMember } from '../../member/claimed.js'
import type { Claims } from './claims.js'

/** A balancer that has not answered for this long at the deadline counts as unreadable, in milliseconds. */
const SILENCE = 5_000

/** What the deadline of a call is about. */
interface Bounded {
  readonly clock: Clock
  /** The name of the provider. */
  readonly provider: string
  readonly balancer: Balancer
  readonly scheduler: Scheduler
  readonly claims: Claims
  readonly alarm: Alarm
  /** Asks for one last look. */
  readonly look: () => void
  /** The last look did not come: what could not wait for it has its outcome. */
  readonly passed: () => void
}

/** Whether a member is idle, which is no outcome yet, and no look since then shows that it still is. */
function isUnseenSince({ claim, facts: { last, unread } }: ClaimedMember, since: number): boolean {
  if (!isReportedIdle(claim) || claim.ending.settled) return false
  return unread !== null || (last?.askedAt ?? -Infinity) < since
}

/** When each claim of a call must have its outcome, and what happens if the last look before that does not come. */
export class Deadline {
  readonly #of: Bounded
  /** Grows with each time that it is set or cleared, which a step may do. */
  #settings = 0
  /** When the last look was asked for. Null: it was not, or it was given up. */
  #lastLookFrom: number | null = null

  constructor(bounded: Bounded) {
    this.#of = bounded
  }

  /** Sets the alarm for the first time when a member must have its outcome. */
  arm(): void {
    const { clock, claims } = this.#of
    const now = clock.now()
    const moments = claims.claimedMembers().flatMap(({ claim: { ending, goal, deadline } }) => {
      if (ending.ended !== null || goal.kind === 'watch') return []
      const wanted =
        goal.kind === 'open' ? [goal.until, goal.lateUntil] : [ending.terminateUntil ?? deadline]
      return wanted.flatMap((moment) => (moment === null ? [] : [Math.max(moment, now)]))
    })
    if (moments.length === 0) this.clear()
    else this.#set(Math.min(...moments), () => this.#askLastLook())
  }

  /** Whether a member has no outcome, or is idle by a look from before the deadline, and the last look may show otherwise. */
  get awaitsOutcome(): boolean {
    const from = this.#lastLookFrom
    return this.#of.claims
      .claimedMembers()
      .some((one) => one.claim.ending.ended === null || (from !== null && isUnseenSince(one, from)))
  }

  clear(): void {
    this.#settings += 1
    this.#lastLookFrom = null
    this.#of.alarm.clear()
  }

  #set(at: number, then: () => void): void {
    this.#settings += 1
    this.#lastLookFrom = null
    this.#of.alarm.set(at, then)
  }

  /** One last look at the deadline; if it does not come, the end rests on the readings before. */
  #askLastLook(): void {
    const { clock, scheduler, look, passed } = this.#of
    if (this.#endedBy(() => this.#giveUpUndo())) return
    const since = clock.now()
    look()
    const patience = LAST_LOOK + 2 * scheduler.cost + scheduler.floor // a large table takes its time to read
    this.#set(since + patience, () => {
      this.#lastLookFrom = null
      const isEnded = this.#endedBy(() => {
        this.#giveUpUndo()
        this.#overdue(patience, since)
        passed()
      })
      if (!isEnded) this.arm()
    })
    this.#lastLookFrom = since
  }

  /** Whether the call was ended, or went on by itself, in a step of this part. */
  #endedBy(part: () => void): boolean {
    const before = this.#settings
    part()
    return this.#settings !== before
  }

  /** Stops waiting, on abort, for the answer to a change of ours. */
  #giveUpUndo(): void {
    const { clock, claims, balancer } = this.#of
    const error = this.#noAnswer('apply: no answer in the time allowed after an abort')
    for (const { ref, claim, ledger } of claims.claimedMembers()) {
      const { goal, ending } = claim
      if (goal.kind !== 'open' || ledger.pending === null || ending.ended !== null) continue
      if (goal.lateUntil === null || clock.now() < goal.lateUntil) continue
      balancer.take(ref, { type: 'overdue', claim: claim.id, error, silent: false })
      balancer.sending.giveUp(ref, error)
    }
  }

  /** @param since - when the last look was asked for: some members may have had it, and wait for others */
  #overdue(patience: number, since: number): void {
    const { claims, balancer } = this.#of
    const rounded = Math.round(patience)
    const error = this.#noAnswer(
      `the balancer gave no answer to the last look within ${rounded} ms`,
    )
    // Together: one that is idle by an older look is no reason for anything until all are told.
    balancer.together(() => {
      for (const claimed of claims.claimedMembers()) this.#tellOverdue(claimed, error, since)
    })
  }

  #tellOverdue(claimed: ClaimedMember, error: DrainableError, since: number): void {
    const { clock, balancer } = this.#of
    const { ref, claim, ledger } = claimed
    const { goal, ending } = claim
    const now = clock.now()
    // Nothing shows that it is idle still.
    if (isUnseenSince(claimed, since)) balancer.take(ref, { type: 'doubt', claim: claim.id })
    else if (ending.ended !== null) return
    if (ending.terminateUntil !== null && now < ending.terminateUntil) return
    const deadline = goal.kind === 'open' ? goal.until : claim.deadline
    const isDue = deadline !== null && now >= deadline
    if (!isDue && goal.kind !== 'open') return
    if (isDue && ledger.pending?.by === claim.id) balancer.sending.giveUp(ref, error)
    const silent = this.#isSilent(claimed, deadline ?? now)
    balancer.take(ref, { type: 'overdue', claim: claim.id, error, silent })
  }

  /** Whether the balancer had not answered for a long time already at the deadline. */
  #isSilent({ facts: { last } }: ClaimedMember, deadline: number): boolean {
    const { cost, floor } = this.#of.scheduler
    return last === null || deadline - last.at > Math.max(SILENCE, 3 * cost + floor)
  }

  #noAnswer(words: string): DrainableError {
    return new DrainableError('CALL_TIMEOUT', words, { provider: this.#of.provider })
  }
}
