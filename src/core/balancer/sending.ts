import { settledWithin } from '../../provider/abort.js'
import { atLeast } from '../../provider/member-ref.js'
import type { Clock } from '../../provider/clock.js'
import type { Change, ChangeResult, MemberRef, Reading } from '../../provider/contract.js'
import { DrainableError } from '../../provider/error.js'
import type { Claim, MemberRecord } from '../member/record.js'
import { givesUpAt } from '../member/time/deadline.js'
import { isDown } from '../member/wanted.js'
import type { Balancer } from './balancer.js'
import { LINGER, QUIET_LIMIT } from './look/call.js'
import { setBackgroundTimer } from './look/timer.js'
import { tell, type Owner, type Wanted } from './owner.js'

/** A call that changes members, under way. */
interface UnderWay {
  readonly owner: Owner
  readonly giveUp: AbortController
  readonly done: Promise<void>
}

/** All that one balancer is sent, and how long its answers are waited for. */
export class Sending {
  readonly #balancer: Balancer
  readonly #clock: Clock
  readonly #underWay = new Map<Change, UnderWay>()
  /** Timers that end the wait for a change which a later call contradicts. */
  readonly #limits = new Map<Change, () => void>()

  constructor(balancer: Balancer, clock: Clock) {
    this.#balancer = balancer
    this.#clock = clock
  }

  /** Sends what a call wants, once its ticket is written. A slow store of one call holds up its own members alone. */
  async send(owner: Owner, wanted: readonly Wanted[]): Promise<void> {
    const balancer = this.#balancer
    await owner.keep(wanted)
    if (owner.stop.aborted) {
      for (const { change } of wanted) balancer.take(change.ref, { type: 'recalled', change })
      return
    }
    // The store can be slow: what is not wanted any more is not sent.
    balancer.together(() => {
      for (const { change } of wanted) balancer.take(change.ref, { type: 'sending', change })
    })
    const changes = wanted.filter(({ change }) => this.#isSent(change)).map(({ change }) => change)
    if (changes.length < wanted.length) tell(owner, true)
    if (changes.length === 0) return
    const giveUp = new AbortController()
    const call = balancer
      .scheduler(owner.provider)
      .send(
        changes,
        { leave: owner.stop, giveUp: giveUp.signal, until: this.#givenUpAt(wanted) },
        (i, result) => this.#answer(owner, changes[i], result),
        owner.permit,
      )
    for (const change of changes) this.#underWay.set(change, { owner, giveUp, done: call })
    await call
    for (const change of changes) this.#underWay.delete(change)
    balancer.ended(owner, changes)
  }

  /** When the first of the claims gives up that these changes are for. */
  #givenUpAt(wanted: readonly Wanted[]): number {
    const claims = wanted.map(({ claim, change }) => this.#balancer.claim(change.ref, claim))
    return Math.min(...claims.map((claim) => (claim && givesUpAt(claim)) ?? Infinity))
  }

  #isSent(change: Change): boolean {
    const pending = this.#balancer.record(change.ref)?.ledger.pending
    return pending?.change === change && pending.stage === 'sent'
  }

  #answer(owner: Owner, change: Change | undefined, result: ChangeResult): void {
    if (change === undefined) return
    try {
      this.#balancer.answered(owner, change, result)
    } catch (thrown) {
      owner.broken(thrown) // here: others share the call, and it is in the hands of the provider
    }
  }

  /**
   * Resolves when no change that a call has sent is under way, or it was waited for long enough.
   *
   * @returns whether any was
   */
  async called(owner: Owner): Promise<boolean> {
    const calls = [...this.#underWay.values()].flatMap((one) =>
      one.owner === owner ? [one.done] : [],
    )
    if (calls.length > 0) await settledWithin(Promise.allSettled(calls), this.#clock, LINGER)
    return calls.length > 0
  }

  /** Stops waiting for the answer to the change under way, unless others wait for the same call. */
  giveUp(ref: MemberRef, error: DrainableError): void {
    const pending = this.#balancer.record(ref)?.ledger.pending
    if (pending == null) return
    const { change, stage } = pending
    if (stage === 'ticket') this.#balancer.take(ref, { type: 'recalled', change })
    else this.#underWay.get(change)?.giveUp.abort(error)
  }

  /** A change under way that wants the opposite of a new claim is waited for less long than a call can take. */
  limit(ref: MemberRef, { goal }: Claim): void {
    const change = this.#balancer.record(ref)?.ledger.pending?.change
    if (change === undefined || goal.kind === 'watch') return
    if ((change.kind === 'restore') === (goal.kind === 'open')) return
    this.#limit(ref, change, 'apply: no answer before the undo')
  }

  /** What is missing of a hold is put back sooner than the call of another change can take. */
  limitLowered(ref: MemberRef, reading: Reading): void {
    const { ledger, claims = [] } = this.#balancer.record(ref) ?? {}
    if (ledger?.pending?.stage !== 'sent' || !reading.present) return
    if (claims.some((claim) => isDown(claim) && !atLeast(reading.own, claim.confirmed)))
      this.#limit(ref, ledger.pending.change, 'apply: no answer before the hold was put back')
  }

  #limit(ref: MemberRef, change: Change, words: string): void {
    const error = new DrainableError('CALL_TIMEOUT', words)
    const giveUp = (): void => {
      if (this.#balancer.record(ref)?.ledger.pending?.change === change) this.giveUp(ref, error)
    }
    if (!this.#limits.has(change))
      this.#limits.set(change, setBackgroundTimer(this.#clock, giveUp, QUIET_LIMIT))
  }

  /** Ends the timer of a change that a step has shown to be over. */
  endLimit({ ledger: before }: MemberRecord, { ledger }: MemberRecord): void {
    const { pending } = before
    if (pending === null || ledger.pending?.change === pending.change) return
    this.#limits.get(pending.change)?.()
    this.#limits.delete(pending.change)
  }
}
