import type { DrainableProvider, MemberRef } from '../../../provider/contract.js'
import { DrainableError, isClosed, toDrainableError } from '../../../provider/error.js'
import { refKey } from '../../../provider/member-ref.js'
import type { DrainReport, MemberReport, Why } from '../../../provider/report.js'
import { balancerOf, type Balancer } from '../../balancer/balancer.js'
import type { Look } from '../../balancer/look/look.js'
import { pauseOf } from '../../balancer/look/cadence.js'
import type { Scheduler, Subscription } from '../../balancer/look/scheduler.js'
import { Alarm } from '../../balancer/look/timer.js'
import type { Owner, Permit, Wanted } from '../../balancer/owner.js'
import type { DrainEvent } from '../../events.js'
import { openGoal, UNDO_LIMIT, type OpenGoal } from '../../member/wanted.js'
import { idleTime, isUnseenIdle } from '../../member/idle.js'
import type { Ledger } from '../../member/record.js'
import { asAborted, reportAll, takenBack } from '../../member/said/report.js'
import { isSeenAbsent, isSeenOpen, type ClaimedMember } from '../../member/claimed.js'
import { givesUpAt } from '../../member/time/deadline.js'
import { FIRST_ANSWER, LATER_ANSWER } from '../../tickets/calls.js'
import type { Ticket } from '../../tickets/ticket.js'
import type { HandleBody } from '../handle.js'
import { Account, InForce, leaveIdle, RunClock } from './account.js'
import { Action, askOwnCheck } from './action.js'
import { Claims } from './claims.js'
import { RunGroup, type GroupedRun, type Next, type Standing } from './run-group.js'
import { Deadline } from './deadline.js'
import { goneOnWith, notUndone, Preparation } from './preparation.js'
import type { Opening, Prepared, RunSpec } from './run-spec.js'
import { TicketWrites } from './ticket-writes.js'

/** How long an abort waits for a change of ours that may take effect late, in milliseconds. */
const ABORT_LATE = 5_000

/** An undo in progress. */
interface Undo {
  readonly promise: Promise<DrainReport>
  readonly resolve: (report: DrainReport) => void
  readonly startedAt: number
  /** When it gives up; null: never. */
  readonly until: number | null
  readonly how: Opening | undefined
}

/**
 * One call of a verb: `preparing` (describe, first look), `looking` (a claim is laid on each member, until every one has
 * its outcome), `held` (over, and the drain is kept up), `released`. An undo returns it to `looking` from any of them.
 *
 * It decides nothing about a member: the balancer steps the records. It has the deadline, the ticket, the events and the
 * caller's functions.
 */
export class Run implements HandleBody, Owner, GroupedRun {
  readonly done: Promise<DrainReport>
  /** Resolves when the preparation has ended, with or without success. */
  readonly prepared: Promise<void>
  readonly startedAt: number
  readonly action = new Action()
  readonly #spec: RunSpec
  readonly #balancer: Balancer
  readonly #scheduler: Scheduler
  readonly #seq: number
  readonly #clock: RunClock
  readonly #claims: Claims
  readonly #preparation: Preparation
  readonly #deadline: Deadline
  readonly #inForce = new InForce()
  readonly #account: Account
  /** The runs that it ends together with; alone, it is the only one. */
  #group: RunGroup
  #life: 'preparing' | 'looking' | 'held' | 'released' = 'preparing'
  /** Fires when the run lets go; an undo after that has a new one. */
  #stop = new AbortController()
  #subscription: Subscription | undefined
  /** Looks that failed in a row. */
  #failures = 0
  /** A first hold waits for the next look, because the last one did not show enough to the floor. */
  #isPostponed = false
  /** Whether its ticket was written after every member had its outcome. */
  #isClosed = false
  #isBroken = false
  #isGivenUp = false
  #undo: Undo | undefined
  /** A finished undo that waits for its ticket. */
  #closing: Undo | undefined
  /** The members' reports from before an undo that began before the end. */
  #before: readonly MemberReport[] | undefined
  /** An undo reports its own result in place of the outcome. */
  #isTakenBack = false
  /** The last release: a second one has nothing more to wait for. */
  #releasing: Promise<void> | undefined
  /** The report from when every member had its outcome. */
  #report: DrainReport | undefined
  /** What `done` was resolved with. */
  #ended: DrainReport | undefined
  #finish: (report: DrainReport) => void = () => undefined

  constructor(spec: RunSpec) {
    const { clock, provider } = spec
    this.#spec = spec
    this.#clock = new RunClock(clock)
    this.startedAt = spec.startedAt ?? this.#clock.now()
    const balancer = balancerOf(provider, clock)
    this.#balancer = balancer
    const scheduler = balancer.scheduler(provider)
    this.#scheduler = scheduler
    this.#seq = balancer.open(this)
    const claims = new Claims(balancer, this, clock)
    this.#claims = claims
    this.#account = new Account(spec, claims, this.#clock, this.startedAt)
    const alarm = new Alarm(clock, this.broken)
    this.#preparation = new Preparation({
      spec,
      startedAt: this.startedAt,
      balancer,
      scheduler,
      alarm,
      stop: this.#stop,
      fault: (error) => this.#account.fault(error),
      whyTicket: () => this.#account.whyTicket,
    })
    this.#deadline = new Deadline({
      clock,
      provider: provider.name,
      balancer,
      scheduler,
      claims,
      alarm,
      look: () => this.#subscription?.next(0),
      passed: () => this.changed(false),
    })
    this.done = new Promise((resolve) => (this.#finish = resolve))
    this.#group = spec.group ?? new RunGroup()
    this.#group.join(this)
    void this.done.then(() => this.#group.leave(this))
    this.prepared = this.#prepare().catch(this.broken)
    if (spec.signal?.aborted === true) this.#guard(() => this.#abort())
  }

  // --- what its balancer needs of it

  get provider(): DrainableProvider {
    return this.#spec.provider
  }

  get keepReady(): number {
    return this.#spec.keepReady
  }

  get permit(): Permit | undefined {
    return this.#spec.permit
  }

  get stop(): AbortSignal {
    return this.#stop.signal
  }

  emit(event: DrainEvent): void {
    if (this.#life !== 'released') this.#account.hand(event)
  }

  check(ref: MemberRef): void {
    this.#guard(() => this.#checkHealth(ref))
  }

  lost(error: DrainableError): void {
    if (this.action.isLost) return
    const { code, message, cause, ref } = error
    const data = { cause, report: this.report(), ...(ref === undefined ? {} : { ref }) }
    this.action.lose(new DrainableError(code, message, data))
  }

  changed(soon: boolean): void {
    if (!this.#claims.laid || this.#claims.laying || this.#life === 'released') return
    for (const { ref, claim } of this.#claims.claimedMembers())
      if (claim.proof.inForce) this.#inForce.note(ref)
    this.#inForce.check(this.#claims.refs.length)
    this.#conclude()
    this.#spec.step?.changed()
    if (soon) this.#subscription?.next(0)
  }

  /**
   * Before the first change of a member a ticket that can't be written ends its drain, because an undo would be impossible;
   * later it is a fault, and the drain goes on. It is no refusal of the balancer: others may send the same.
   */
  async keep(changes: readonly Wanted[]): Promise<void> {
    const { step } = this.#spec
    if (step !== undefined) await step.intend(changes, this.#stop.signal)
    const ticket = this.#account.ticket
    if (ticket?.kept !== true || this.#stop.signal.aborted) return
    const first = changes.filter((one) => this.#isFirst(one))
    try {
      await ticket.before(first.length > 0 ? FIRST_ANSWER : LATER_ANSWER)
    } catch (thrown) {
      const error = toDrainableError(thrown, this.provider.name, this.#spec.subject)
      for (const { change, claim } of first)
        this.#balancer.take(change.ref, { type: 'end', claim, outcome: 'refused', error })
    }
  }

  #isFirst({ change, claim: id }: Wanted): boolean {
    const claim = this.#balancer.claim(change.ref, id)
    return claim?.goal.kind === 'drain' && !claim.held
  }

  note(touches: number): void {
    this.#claims.noted(touches)
    if (this.#account.ticket?.kept === true) void this.#account.ticket.save()
    if (this.#isReleased()) this.#account.ticket?.letGo()
  }

  readonly inherit = async (): Promise<void> => this.#account.ticket?.inherit()

  postponed(): void {
    this.#isPostponed = true
  }

  replaced(): void {
    this.#account.ticket?.yield()
    const error = goneOnWith(this.#spec, this.#account.ticket?.id ?? '')
    this.lost(error)
    this.#claims.order({ type: 'end', outcome: 'overruled', error })
    this.#spec.replaced?.()
    this.changed(false)
    if (this.#undo === undefined && this.#life === 'held') this.#leave()
  }

  // --- preparing

  async #prepare(): Promise<void> {
    const { signal } = this.#spec
    if (signal?.aborted === true && !this.#undoesOnAbort()) {
      this.#endEarly({ outcome: 'aborted', members: [], elapsed: 0 })
      return
    }
    const onAbort = (): void => this.#guard(() => this.#abort())
    signal?.addEventListener('abort', onAbort, { once: true })
    void this.done.then(() => signal?.removeEventListener('abort', onAbort))
    let prepared: Prepared
    try {
      prepared = await this.#preparation.run()
      if (this.#isReleased()) return
      prepared.last?.()
    } catch (error) {
      const undone = await this.#failUndo(error)
      this.#endEarly(undone ?? this.#preparation.report(error, this.#clock.since(this.startedAt)))
      return
    }
    this.#begin(prepared)
  }

  #begin({ claims, keeper, first }: Prepared): void {
    const { clock, side } = this.#spec
    if (keeper !== undefined) {
      this.#account.ticket = new TicketWrites(keeper, {
        owner: this,
        side,
        balancer: this.#balancer,
        claims: this.#claims,
        clock,
        fault: (error) => this.#account.fault(error),
      })
      this.#account.ticket.begin()
    }
    this.#life = 'looking'
    this.#claims.lay(this.#seq, claims, keeper?.kept === true ? keeper.head.id : null)
    if (this.#undo !== undefined) return // it has a beginning of its own
    this.#sit(this.#spec.background ?? false)
    this.#deadline.arm()
    if (first === undefined) {
      this.changed(false)
      return
    }
    this.#see(first)
    // By a look from before the call, as that of a plan, nothing is sent.
    if (first.askedAt < this.startedAt) this.#subscription?.next(0)
  }

  // --- looking

  #sit(background: boolean): void {
    this.#subscription?.leave()
    this.#subscription = this.#scheduler.join({
      refs: this.#refs,
      background,
      until: () => Math.min(...this.#claims.claimedMembers().map(({ claim }) => givesUpAt(claim))),
      see: (look) => {
        try {
          this.#see(look)
        } catch (thrown) {
          this.broken(thrown)
        }
      },
    })
  }

  #see(look: Look): void {
    if (!this.#claims.laid || this.#isReleased()) return
    if (look.error !== undefined && isClosed(look.error)) {
      this.#endAll('unreachable', look.error)
      return
    }
    this.#failures = look.error === undefined ? 0 : this.#failures + 1
    this.#isPostponed = false
    const before = this.#claims.claimedMembers().map(({ ledger }) => ledger)
    this.#balancer.see(this, this.#refs(), look)
    if (this.#claims.claimedMembers().some(({ ledger }, i) => isNews(ledger, before[i])))
      void this.#account.ticket?.save()
    else this.#account.ticket?.saveAgain()
    this.changed(false)
    this.#subscription?.next(this.#wasPostponed() ? 0 : this.#pause())
  }

  /** A method, because a step can change it. */
  #wasPostponed(): boolean {
    return this.#isPostponed
  }

  /** The members, and, while the floor matters, other members of their pools that this process takes. */
  readonly #refs = (): readonly MemberRef[] => {
    const { refs } = this.#claims
    const { side, keepReady } = this.#spec
    if (side !== 'drain' || keepReady === 0) return refs
    const asks = this.#claims.claimedMembers().some(({ claim }) => claim.floor !== 'kept')
    return asks ? [...refs, ...this.#balancer.companions(refs)] : refs
  }

  #pause(): number {
    return pauseOf({
      claimedMembers: this.#claims.claimedMembers(),
      scheduler: this.#scheduler,
      now: this.#clock.now(),
      failures: this.#failures,
      held: this.#life === 'held',
      acting: this.action.running,
      pace: this.#spec.pace,
    })
  }

  /** Ends the run once every member has its outcome. */
  #conclude(): void {
    if (!this.#claims.laid || this.#isReleased()) return
    const isEnding = this.#life === 'looking' && this.#undo === undefined
    if (isEnding && this.#claims.claimedMembers().some(isUnseenIdle)) this.#doubt()
    if (this.#claims.claimedMembers().some(({ claim }) => claim.ending.ended === null)) return
    if (this.#undo !== undefined) this.#guard(() => this.#endUndo())
    else if (isEnding && this.#claims.takeOut()) this.#deadline.arm()
    else this.#group.changed()
  }

  /** Only another look shows whether members that were idle before are so still. */
  #doubt(): void {
    this.#claims.order({ type: 'doubt' })
    this.#deadline.arm()
    this.#subscription?.next(0)
  }

  /** How far it is, for its group. */
  get standing(): Standing {
    const claimedMembers = this.#claims.claimedMembers()
    const isOpen = this.#deadline.awaitsOutcome
    const idle = idleTime(claimedMembers)
    if (!this.#claims.laid || this.#undo !== undefined || this.#isTakenBack)
      return { state: 'open', idle }
    if (this.#life === 'looking') return { state: isOpen ? 'open' : 'ended', idle }
    if (!this.#isClosed) return { state: 'closing', idle }
    return { state: isOpen && this.#life === 'held' ? 'lost' : 'closed', idle }
  }

  /** Does what its group says. */
  proceed(next: Next): void {
    if (next === 'wait') return
    const step = {
      look: () => this.#doubt(),
      close: () => this.#end(),
      stand: () => this.#stand(),
      goOn: () => this.#goOn(),
    }[next]
    this.#guard(step)
  }

  // --- the end

  /** Ends the run before its members are known: nothing was changed. */
  #endEarly(report: DrainReport): void {
    if (this.#ended !== undefined) return
    this.#leave()
    this.#tell(report)
  }

  /**
   * Ends the run when every member has its outcome. It reports once the ticket is written: until then, an idle can
   * still be lost. A held drain is kept up until it is released.
   */
  #end(): void {
    if (!this.#claims.laid || this.#life !== 'looking') return
    this.#life = 'held'
    this.#isClosed = false
    this.#deadline.clear()
    const report = this.#account.report()
    this.#report = report
    const isHeld = this.#claims.claimedMembers().some(({ claim }) => claim.ending.holding)
    const goesOn = isHeld && this.#spec.side !== 'open' && this.#spec.step === undefined
    if (!goesOn) this.#claims.settle()
    this.#guard(async () => {
      await this.#account.ticket?.close(report)
      this.#isClosed = true
      this.#group.changed()
    })
    if (goesOn) this.#sit(true)
    else this.#leave()
  }

  /** Drops the outcome and goes on looking. */
  #goOn(): void {
    if (this.#life !== 'held' || this.#isOver()) return
    this.#life = 'looking'
    this.#sit(this.#spec.background ?? false)
    this.#deadline.arm()
  }

  /** Confirms the outcome. */
  #stand(): void {
    if (!this.#claims.laid || this.#isOver()) return
    this.#claims.settle()
    const isNow = this.#life === 'held' || this.#report === undefined
    const final = isNow ? this.#account.report() : (this.#report ?? this.#account.report())
    this.#resolveWith(this.#isGivenUp ? asAborted(final) : final)
  }

  #isOver(): boolean {
    return this.#ended !== undefined || this.#isTakenBack
  }

  #resolveWith(report: DrainReport): void {
    this.#tell(this.#account.withTicket(report))
  }

  /** Tells how it ended, once: what is asked of it by a listener that is told comes after the end. */
  #tell(report: DrainReport): void {
    if (this.#ended !== undefined) return
    this.#ended = report
    try {
      this.#account.end(report)
    } finally {
      this.#inForce.over()
      this.#finish(report)
    }
  }

  /** Lets go: the claims are dropped, and the holds stay. */
  #leave(): void {
    this.#deadline.clear()
    this.#subscription?.leave()
    this.#subscription = undefined
    if (this.#life === 'released') return
    const { provider, side } = this.#spec
    this.#life = 'released'
    this.#claims.keep()
    this.#stop.abort(conflict('released'))
    if (side === 'drain') leaveIdle(provider, this.#claims.claimedMembers())
    this.#account.ticket?.leave()
    this.#account.ticket?.letGo()
    this.#claims.drop()
    this.#balancer.close(this)
  }

  #endAll(outcome: 'aborted' | 'unreachable', error?: DrainableError): void {
    this.#standAlone()
    this.#deadline.clear() // no look is waited for
    this.#claims.order({ type: 'end', outcome, ...(error === undefined ? {} : { error }) })
    this.changed(false)
    this.#group.changed() // one that had let go, and waited for others
    this.#leave()
  }

  /** No other run waits for it, and it waits for none. */
  #standAlone(): void {
    const others = this.#group
    this.#group = new RunGroup()
    this.#group.join(this)
    others.leave(this)
  }

  // --- undo and release

  restore(how?: Opening): Promise<DrainReport> {
    return this.#startUndo(null, how)
  }

  notDown(): readonly MemberRef[] {
    return this.#claims
      .claimedMembers()
      .filter((one) => isSeenOpen(one) || isSeenAbsent(one))
      .map(({ ref }) => ref)
  }

  /** Returns the undo's own promise, so that its caller goes on before `done` resolves. */
  #startUndo(lateFor: number | null, how?: Opening): Promise<DrainReport> {
    if (this.#undo !== undefined) {
      this.#guard(() => this.#undoAgain()) // a later call than any drain that was begun since
      return this.#undo.promise
    }
    const startedAt = this.#clock.now()
    const { promise, resolve } = Promise.withResolvers<DrainReport>()
    const limit = how === undefined ? UNDO_LIMIT : how.limit
    const until = limit === null ? null : startedAt + limit
    const undo = { promise, resolve, startedAt, until, how }
    this.#undo = undo
    const stop = (): void => this.#guard(() => this.#stopUndo(undo))
    how?.signal.addEventListener('abort', stop, { once: true })
    void promise.then(() => how?.signal.removeEventListener('abort', stop))
    this.#guard(() => this.#beginUndo(undo, lateFor))
    return promise
  }

  /** Ends an undo, and leaves its members as they are. */
  #stopUndo(undo: Undo): void {
    if (this.#undo !== undo) return
    if (!this.#claims.laid) this.#stop.abort(undo.how?.signal.reason)
    this.#claims.order({ type: 'end', outcome: 'aborted' })
    this.changed(false)
  }

  #undoAgain(): void {
    for (const { ref, claim } of this.#claims.claimedMembers())
      if (claim.goal.kind === 'open' && claim.ending.ended?.outcome === 'overruled')
        this.#balancer.undo(ref, { type: 'undo', claim: claim.id, goal: claim.goal })
    this.changed(true)
  }

  async #beginUndo(undo: Undo, lateFor: number | null): Promise<void> {
    const { resumed } = this.#spec
    if (!this.#claims.laid) {
      // Nothing was changed yet, and nothing will be; only the changes in a ticket are undone.
      if (resumed === undefined) this.#stop.abort(conflict('undone'))
      else if (!this.#isReleased()) this.#preparation.bound(undo.until ?? Infinity)
      await this.prepared
    }
    if (this.#undo !== undo) return
    if (this.#claims.laid) {
      const { startedAt: since, until, how } = undo
      const lateUntil = lateFor === null ? null : since + lateFor
      const mustBeHealthy = how?.mustBeHealthy === true
      const check = how?.check === undefined ? 'none' : 'due'
      this.#openMembers(openGoal({ of: 'ours', since, until, lateUntil, mustBeHealthy, check }))
    } else if (resumed === undefined) {
      this.#undo = undefined
      undo.resolve(reportAll([], this.#clock.since(undo.startedAt)))
    } else await this.#failUndo(new DrainableError('CONFLICT', 'it was released'))
  }

  /**
   * Handles a failed preparation of an undo: what its ticket holds could not be undone.
   *
   * @returns the report for `done`; undefined if there was no ticket to undo
   */
  async #failUndo(thrown: unknown): Promise<DrainReport | undefined> {
    const undo = this.#undo
    const { resumed } = this.#spec
    if (undo === undefined || resumed === undefined) return undefined
    this.#undo = undefined
    const spec = { ...this.#spec, resumed }
    const report = notUndone(spec, this.#ended, thrown, this.#clock.since(undo.startedAt))
    undo.resolve(report)
    await undo.promise
    return asAborted({ ...report, elapsed: this.#clock.since(this.startedAt) })
  }

  #openMembers(goal: OpenGoal): void {
    if (this.#ended === undefined) {
      this.#before = this.#account.report().members
      this.#isTakenBack = true
    }
    this.#deadline.clear()
    this.#claims.undo(goal, this.#isReleased() ? this.#reopen() : undefined)
    this.#life = 'looking'
    this.#sit(false)
    this.#deadline.arm()
    this.changed(true)
  }

  /** Begins anew after it had let go. @returns the number of the call */
  #reopen(): number {
    this.#life = 'looking'
    this.#stop = new AbortController()
    const seq = this.#balancer.open(this)
    this.#account.ticket?.takeUp()
    return seq
  }

  /** Ends the undo when every member has its outcome: the run lets go. */
  async #endUndo(): Promise<void> {
    const undo = this.#undo
    if (!this.#claims.laid || undo === undefined) return
    this.#undo = undefined
    this.#closing = undo
    this.#life = 'held'
    this.#deadline.clear()
    const now = this.#account.report()
    const report = reportAll(now.members, this.#clock.since(undo.startedAt))
    this.#claims.settle()
    this.#leave()
    await this.#account.ticket?.closeUndo()
    this.#closing = undefined
    undo.resolve(this.#account.withTicket(report))
    await undo.promise
    if (this.#ended !== undefined) return
    const members = now.members.map((member, i) => takenBack(member, this.#before?.[i]))
    this.#resolveWith({ ...reportAll(members, now.elapsed), outcome: 'aborted' })
  }

  release(): Promise<void> {
    const wasReleased = this.#isReleased()
    if (!wasReleased || this.#releasing === undefined) this.#releasing = this.#release()
    return this.#releasing
  }

  async #release(): Promise<void> {
    const undo = this.#undo
    if (undo !== undefined) {
      await undo.promise // the server is not left half opened
      return
    }
    if (!this.#claims.laid) {
      this.#stop.abort(conflict('released'))
      await this.prepared
    }
    if (this.#ended === undefined) this.#guard(() => this.#endAll('aborted'))
    this.#leave()
    await Promise.all([
      this.#account.ticket?.kept === true ? this.#account.ticket.written() : undefined,
      this.done,
    ])
  }

  async called(): Promise<void> {
    const isAnswered = await this.#balancer.sending.called(this)
    if (isAnswered && this.#account.ticket?.kept === true) await this.#account.ticket.written() // with what the answers said
  }

  async #abort(): Promise<void> {
    if (this.#ended !== undefined) return
    const { side, signal } = this.#spec
    if (this.#undoesOnAbort()) {
      const report = await this.#startUndo(ABORT_LATE)
      for (const { error } of report.members) if (error !== undefined) this.#account.fault(error)
    } else if (this.#undo === undefined) {
      if (side === 'drain') this.#isGivenUp = true
      this.#stop.abort(signal?.reason)
      if (this.#claims.laid) this.#endAll('aborted')
    }
  }

  /** Whether an abort undoes changes that are, or may be, on the members; those in a ticket are there already. */
  #undoesOnAbort(): boolean {
    const { resumed, onAbort, side } = this.#spec
    const mayOwe = this.#claims.laid || resumed !== undefined
    return mayOwe && onAbort === 'restore' && side === 'drain'
  }

  // --- the caller's functions

  /** Runs the caller's action while the drain is held: looks often, and fires its signal when the hold is lost. */
  act<T>(action: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const acting = this.action.run(action)
    this.#subscription?.next(0)
    return acting
  }

  async #checkHealth(ref: MemberRef): Promise<void> {
    const { clock } = this.#spec
    const check = this.#undo === undefined ? this.#spec.check : this.#undo.how?.check
    const claimed = this.#claims.claimedMembers().find((one) => refKey(one.ref) === refKey(ref))
    if (check === undefined || claimed?.claim.goal.kind !== 'open') return
    const { until, since } = claimed.claim.goal
    const times = { clock, until, since, stop: this.#stop.signal, broken: this.broken }
    const error = await askOwnCheck(check, ref, times)
    if (!this.#isReleased())
      this.#balancer.take(ref, { type: 'checked', claim: claimed.claim.id, error })
  }

  // --- what is said of it

  get inForce(): Promise<boolean> {
    return this.#inForce.promise
  }

  report(): DrainReport {
    return this.#account.asked(this.#ended)
  }

  why(): readonly Why[] {
    return this.#account.why(() => (this.#life === 'preparing' ? this.#preparation.why() : []))
  }

  async ticket(): Promise<Ticket> {
    await this.prepared
    return this.#account.ticketNow()
  }

  ticketNow(): Ticket {
    return this.#account.ticketNow()
  }

  get scheduler(): Scheduler {
    return this.#scheduler
  }

  /** Its members as it sees them now; none before it is prepared. */
  get claimedMembers(): readonly ClaimedMember[] {
    return this.#claims.claimedMembers()
  }

  /** Writes its ticket before another call changes its members. @param limit - milliseconds @throws what keeps it threw */
  async saveTicket(limit: number): Promise<void> {
    if (this.#account.ticket?.kept === true) await this.#account.ticket.write(limit)
  }

  /** A ticket that could not be written is written again at the looks of others. */
  saveAgain(): void {
    this.#account.ticket?.saveAgain()
  }

  // --- what throws

  /** A method, because the value can change during an await. */
  #isReleased(): boolean {
    return this.#life === 'released'
  }

  /** Runs a part that no caller waits for: an exception or rejection ends the run. */
  #guard(part: () => unknown): void {
    void (async () => {
      try {
        await part()
      } catch (thrown) {
        this.broken(thrown)
      }
    })()
  }

  /**
   * Ends the run after an exception in our code or the caller's, because nothing else would. If its members can't be
   * ended either, or that throws again, the run ends without them.
   */
  readonly broken = (thrown: unknown): void => {
    const { provider, subject } = this.#spec
    const error = toDrainableError(thrown, provider.name, subject)
    this.#account.fault(error)
    const words = `the hold could not be kept: ${error.message}`
    if (this.#ended !== undefined && this.#life !== 'released')
      this.lost(new DrainableError('IDLE_LOST', words, { cause: error }))
    const isAgain = this.#isBroken || !this.#claims.laid
    this.#isBroken = true
    let report: DrainReport
    try {
      if (isAgain) throw error
      if (!this.#isReleased()) {
        this.#standAlone()
        this.#claims.order({ type: 'end', outcome: 'unreachable', error })
        this.#leave()
      }
      report = this.#account.report()
      void this.#account.ticket?.close(report).catch(() => undefined) // it stays as it was written last
    } catch {
      report = {
        outcome: 'unreachable',
        members: [],
        elapsed: this.#clock.since(this.startedAt),
        error,
      }
      try {
        this.#leave()
      } catch {
        // a failed release must not prevent the report
      }
    }
    const undo = this.#undo ?? this.#closing
    this.#undo = undefined
    this.#closing = undefined
    undo?.resolve(report)
    if (this.#ended === undefined) this.#resolveWith(report)
  }
}

/** Why nothing is sent for it any more. */
function conflict(how: 'released' | 'undone'): DrainableError {
  return new DrainableError('CONFLICT', `the drain was ${how}`)
}

/** Whether a look has told something of our changes that a ticket must say. */
function isNews(now: Ledger, before: Ledger | undefined): boolean {
  if (before === undefined || now === before) return false
  const same =
    now.earlier.length === before.earlier.length && now.doubted.length === before.doubted.length
  return now.set !== before.set || !same
}
