import { abortable, settledWithin } from '../../provider/abort.js'
import { wallOf } from '../../provider/clock.js'
import type { MemberRef } from '../../provider/contract.js'
import { DrainableError } from '../../provider/error.js'
import { refKey } from '../../provider/member-ref.js'
import type { DrainReport, Why } from '../../provider/report.js'
import { toDrainableError } from '../../provider/thrown.js'
import type { OpenGoal } from '../machine/goal.js'
import type { DrainState } from '../machine/state.js'
import type { Ticket } from '../tickets/ticket.js'
import { Action, notKeptUp } from './action.js'
import { closeTicket, flushTicket, handOverTicket } from './close-ticket.js'
import type { Companion } from './company.js'
import { Contest } from './balancer/contest.js'
import { Ending } from './ending.js'
import type { HandleBody } from './handle.js'
import { checkHealth } from './health-check.js'
import { idleTime, isUnseenIdle } from './idle-time.js'
import { InForce } from './in-force.js'
import { LastLook } from './last-look.js'
import { LINGER } from './look/call.js'
import type { Look, SeenLook } from './look/look.js'
import { Looking } from './looking.js'
import { Members, type MembersOptions } from './members.js'
import { boundPreparing, contextOf, prepareRun, unpreparedReport } from './prepare.js'
import type { Prepared, RunSpec } from './run-spec.js'
import { RunState } from './run-state.js'
import type { Scheduler } from './look/scheduler.js'
import { Sender } from './sender.js'
import { Undo } from './undo.js'

/** How long an abort waits for a change of ours that may take effect late, in milliseconds. */
const ABORT_LATE = 5_000

/**
 * One run over some members, whatever its goal: `preparing` (describe, first look), `looking` (until every member has
 * its outcome), `held` (over, and the drain is kept up), `released`. An undo returns it to `looking` from any of
 * them. The run turns the machine's effects into calls and events.
 *
 * The parts share a {@link RunState}. None imports this file: they use the callbacks that they were given, so that
 * the consequences of a change are decided only here.
 */
export class Run implements HandleBody {
  /** Resolves when the preparation has ended, with or without success. */
  readonly prepared: Promise<void>
  readonly #run: RunState
  readonly #contest: Contest
  readonly #looking: Looking
  readonly #lastLook: LastLook
  readonly #ending: Ending
  readonly #undo: Undo
  readonly #action: Action
  readonly #inForce = new InForce()
  readonly #companion: Companion
  /** Whether it ends alone: no other part waits for it, and it waits for none. */
  #alone = false
  #first: SeenLook | undefined
  #isBroken = false
  #flushed: Promise<void> | undefined

  constructor(spec: RunSpec) {
    const run = new RunState(spec)
    this.#run = run
    this.#contest = new Contest(run, {
      overruled: () => this.#conclude(),
      contradicted: () => this.#lastLook.again(),
      endEarly: (report) => this.#ending.endEarly(report),
    })
    this.#looking = new Looking(run, this.#contest, {
      seen: () => this.#changed(false),
      closed: (error) => this.#endAll('unreachable', error),
      broken: (thrown) => this.#broken(thrown),
    })
    this.#lastLook = new LastLook(run, this.#looking, () => this.#changed(false))
    const again = (): void => {
      this.#looking.sit(run.spec.background ?? false)
      this.#lastLook.arm()
    }
    const { company } = spec
    const closed = (): void => {
      if (company === undefined || this.#alone) this.#ending.stand()
      else company.closed(this.#companion)
    }
    this.#ending = new Ending(run, this.#contest, this.#looking, this.#inForce, {
      again,
      ...(company === undefined ? {} : { closed }),
    })
    this.#companion = this.#asCompanion()
    company?.join(this.#companion)
    if (company !== undefined) void this.done.then(() => company.leave(this.#companion))
    this.#action = new Action(this.#looking, this.#ending)
    this.#undo = new Undo({
      run,
      contest: this.#contest,
      looking: this.#looking,
      lastLook: this.#lastLook,
      ending: this.#ending,
      prepared: () => this.prepared,
      changed: () => this.#changed(),
    })
    run.broken = (thrown) => this.#broken(thrown)
    this.prepared = this.#prepare().catch(run.broken)
    if (spec.signal?.aborted === true) run.guard(() => this.#abort())
  }

  get done(): Promise<DrainReport> {
    return this.#ending.done
  }

  get inForce(): Promise<boolean> {
    return this.#inForce.promise
  }

  get scheduler(): Scheduler {
    return this.#run.scheduler
  }

  get startedAt(): number {
    return this.#run.startedAt
  }

  /** The look from which the members were picked, for a step. */
  get first(): SeenLook | undefined {
    return this.#first
  }

  /** What a step's look is to be asked for. */
  readonly refs = (): readonly MemberRef[] => this.#looking.refs()

  /** The parts that a step uses. */
  get parts(): { readonly members: Members; readonly sender: Sender } | undefined {
    const { members, sender } = this.#run
    return members === undefined || sender === undefined ? undefined : { members, sender }
  }

  /** Takes in one look of a step, and sends the required changes. */
  async step(look: Look): Promise<void> {
    this.#looking.see(look)
    await this.#run.sender?.settled()
  }

  /** Runs the caller's action while the drain is held: looks often, and fires its signal when the hold is lost. */
  act<T>(action: (signal: AbortSignal) => Promise<T>): Promise<T> {
    return this.#action.run(action)
  }

  restore(): Promise<DrainReport> {
    return this.#undo.start({ lateFor: null })
  }

  async release(): Promise<void> {
    const { underWay } = this.#undo
    if (underWay !== undefined) {
      await underWay // the server is not left half opened
      return
    }
    if (this.#run.members === undefined) {
      this.#run.stop.abort(new DrainableError('CONFLICT', 'the drain was released'))
      await this.prepared
    }
    if (this.#ending.ended === undefined && !this.#run.isReleased())
      this.#run.guard(() => this.#endAll('aborted'))
    else if (this.#run.spec.company !== undefined) this.#ending.stand() // it waited for the others
    this.#ending.leave()
    await Promise.all([(this.#flushed ??= flushTicket(this.#run)), this.done])
  }

  async called(): Promise<void> {
    const { sender, spec } = this.#run
    if (sender?.calling !== true) return
    await settledWithin(sender.called(), spec.clock, LINGER)
    await flushTicket(this.#run) // with what the answers said
  }

  readonly report = (): DrainReport => this.#ending.report()
  readonly why = (): readonly Why[] => this.#run.why()

  /** See {@link handOverTicket}. */
  readonly handOver = (): Promise<void> => handOverTicket(this.#run)

  /** The goal of a member that is being opened. */
  goalOf(ref: MemberRef): OpenGoal | undefined {
    const goal = this.#run.members?.get(refKey(ref))?.goal
    return goal?.kind === 'open' ? goal : undefined
  }

  async ticket(): Promise<Ticket> {
    await this.prepared
    return this.ticketNow()
  }

  ticketNow(): Ticket {
    const keeper = this.#run.keeper ?? this.#run.spec.keeper()
    return keeper.ticket(this.#run.states)
  }

  // --- preparing

  async #prepare(): Promise<void> {
    const { spec, stop } = this.#run
    if (spec.signal?.aborted === true && !this.#undoesOnAbort()) {
      this.#ending.endEarly({ outcome: 'aborted', members: [], elapsed: 0 })
      return
    }
    this.#listenToAbort()
    boundPreparing(this.#run, this.#run.prepareUntil)
    const context = contextOf(this.#run, this.#contest)
    let prepared: Prepared
    try {
      prepared = await abortable(prepareRun(this.#run, context), stop.signal)
    } catch (error) {
      const undone = await this.#undo.failUnprepared(error)
      this.#ending.endEarly(undone ?? unpreparedReport(this.#run, error))
      return
    } finally {
      this.#run.alarm.clear()
    }
    await this.#begin(prepared)
  }

  #listenToAbort(): void {
    const { signal } = this.#run.spec
    const onAbort = (): void => this.#run.guard(() => this.#abort())
    signal?.addEventListener('abort', onAbort, { once: true })
    void this.done.then(() => signal?.removeEventListener('abort', onAbort))
  }

  async #begin(prepared: Prepared): Promise<void> {
    if (this.#run.isReleased()) return
    const { states, keeper, first } = prepared
    const { announced, background } = this.#run.spec
    const members = this.#membersOf(prepared)
    this.#first = first
    this.#run.keeper = keeper
    this.#run.members = members
    this.#run.sender = this.#senderOf(members, keeper)
    for (const { ref, hold } of states) {
      if (hold.floor !== 'unasked') this.#contest.floor.enter(ref)
    }
    this.#contest.keepLedger()
    const alone = await this.#contest.decide()
    if (this.#run.isReleased()) return
    this.#run.life = 'looking'
    // A step looks only on request, and an undo has its own preparation.
    if (announced !== undefined || this.#undo.underWay !== undefined) return
    this.#looking.sit(background ?? false)
    this.#lastLook.arm()
    if (alone && first !== undefined) this.#looking.see(first)
    else if (first !== undefined) members.expect(first)
    this.#conclude()
  }

  #membersOf({ policy, states }: Prepared): Members {
    const { spec } = this.#run
    const options: MembersOptions = {
      policy,
      now: () => this.#run.now(),
      wallOffset: () => wallOf(spec.clock) - this.#run.now(),
      floor: () => this.#contest.floor,
      mayOpen: (ref) => this.#contest.membership.mayOpen(ref),
      emit: (event) => this.#run.emit(event),
      check: (ref) => this.#run.guard(() => checkHealth(this.#run, ref, () => this.#changed())),
      lost: (error) => this.#action.lost(error),
      announced: this.#run.spec.announced,
    }
    return new Members(options, states)
  }

  #senderOf(members: Members, keeper: Prepared['keeper']): Sender {
    return new Sender({
      members,
      scheduler: this.#run.scheduler,
      keeper,
      signal: () => this.#run.stop.signal,
      calling: (ref, done) => this.#contest.calling(ref, done),
      permit: this.#run.spec.permit,
      changed: () => this.#changed(),
      fault: (error) => this.#run.fault(error),
      broken: (thrown) => this.#broken(thrown),
    })
  }

  // --- the consequences of a change

  /** Called after a change: checks whether the run has ended, and when to look next. */
  #changed(soon = true): void {
    for (const state of this.#run.states) this.#follow(state)
    this.#conclude()
    if (soon) this.#looking.soon()
  }

  #follow(state: DrainState): void {
    this.#contest.followFloor(state)
    if (state.proof.inForce) this.#inForce.note(state.ref)
    this.#inForce.check(this.#run.states.length)
  }

  /** Reports once that every member has its outcome. */
  #conclude(): void {
    const { members, life } = this.#run
    if (members === undefined || this.#run.isReleased()) return
    const ends = life === 'looking' && this.#undo.underWay === undefined
    if (ends && members.all.some(isUnseenIdle)) this.#lastLook.doubt()
    if (members.all.some(({ ending }) => ending.ended === null)) return
    if (this.#undo.underWay !== undefined) this.#run.guard(() => this.#undo.end())
    else if (life === 'held') return
    else if (this.#run.spec.company === undefined || this.#alone) this.#ending.end()
    else this.#run.spec.company.check()
  }

  #standAlone(): void {
    this.#alone = true
    this.#run.spec.company?.leave(this.#companion)
  }

  #asCompanion(): Companion {
    return {
      hasEnded: () => {
        const { life, states, members } = this.#run
        if (members === undefined || this.#undo.underWay !== undefined) return false
        // One that has its members and waits for their first look has only begun.
        if (life === 'preparing') return false
        return life !== 'looking' || states.every(({ ending }) => ending.ended !== null)
      },
      idle: () => idleTime(this.#run.states),
      doubt: () => this.#run.guard(() => this.#lastLook.doubt()),
      hasLost: () => this.#ending.hasLost(),
      close: () => this.#run.guard(() => this.#ending.end()),
      settle: () => this.#run.guard(() => this.#ending.stand()),
      again: () => this.#run.guard(() => this.#ending.resume()),
    }
  }

  /**
   * Ends the run after an exception in our code or the caller's, because nothing else would. If its members can't be
   * ended either, or that throws again, the run ends without them.
   */
  #broken(thrown: unknown): void {
    const { spec, members, left } = this.#run
    const { ended } = this.#ending
    const error = toDrainableError(thrown, spec.provider.name, spec.subject)
    this.#run.fault(error)
    if (ended !== undefined && !left) this.#action.lost(notKeptUp(error))
    const again = this.#isBroken || members === undefined
    this.#isBroken = true
    try {
      if (again) throw error
      // A run that has left has ended, but an undo, or `done`, may still be waiting for its ticket.
      if (!left) this.#end('unreachable', error)
      this.#ending.leave()
      const report = members.report(this.#run.startedAt)
      void (left ? Promise.resolve() : closeTicket(this.#run, report))
        .catch(() => undefined) // the ticket stays as it was written last
        .then(() => this.#break(report))
    } catch {
      const elapsed = this.#run.since(this.#run.startedAt)
      this.#break({ outcome: 'unreachable', members: [], elapsed, error })
    }
  }

  /** Resolves all waiting promises, whatever state the run is in. */
  #break(report: DrainReport): void {
    this.#undo.break(report)
    this.#ending.break(report)
  }

  #endAll(outcome: 'aborted' | 'unreachable', error?: DrainableError): void {
    this.#standAlone()
    this.#end(outcome, error)
    this.#changed(false)
    this.#ending.leave()
  }

  #end(outcome: 'aborted' | 'unreachable', error?: DrainableError): void {
    const { members } = this.#run
    for (const key of members?.keys ?? []) {
      members?.take(key, { type: 'end', outcome, ...(error === undefined ? {} : { error }) })
    }
  }

  async #abort(): Promise<void> {
    if (this.#ending.ended !== undefined) return
    const { spec, stop } = this.#run
    if (this.#undoesOnAbort()) {
      const report = await this.#undo.start({ lateFor: ABORT_LATE })
      for (const { error } of report.members) if (error !== undefined) this.#run.fault(error)
    } else if (this.#undo.underWay === undefined) {
      if (spec.side === 'drain') this.#ending.giveUp()
      stop.abort(spec.signal?.reason)
      this.#endAll('aborted')
    }
  }

  /** Whether an abort undoes changes that are, or may be, on the members; those in a ticket are there already. */
  #undoesOnAbort(): boolean {
    const { members, spec } = this.#run
    const mayOwe = members !== undefined || spec.resumed !== undefined
    return mayOwe && spec.onAbort === 'restore' && spec.side === 'drain'
  }
}
