import { nodeUtil } from '../provider/builtins.js'
import type { HeldBack, PlannedChange } from '../provider/desired.js'
import { readingsOf, type SeenLook } from '../core/balancer/look/look.js'
import type { Ticket } from '../core/tickets/ticket.js'
import type { Wish } from '../endpoints/plan.js'
import type { PresentReading, Reading } from '../provider/contract.js'
import { isDrainableError, wordsOf, type DrainableError } from '../provider/error.js'
import { refKey } from '../provider/member-ref.js'
import type { DrainReport, MemberReport } from '../provider/report.js'
import { Adds } from './adds.js'
import { LATE, MemberDrain } from './member-drain.js'
import { shapeOf, type DrainShape, type Ending } from './shape.js'
import { Removals } from './removals.js'
import { dropTicket } from './tickets.js'
import type { Wanted, WorkSpec } from './work-spec.js'

/** All that is under way for members, and what is held. Carries plans out; decides nothing a plan says. */
export class Work {
  readonly spec: WorkSpec
  readonly drains: Map<string, MemberDrain>
  readonly adds: Adds
  readonly #removals: Removals
  /** When something of ours ended, by member: a look from before does not show it. */
  readonly #endedAt = new Map<string, number>()
  /** Whether the last plan has left a member to the next look. */
  #hasSkipped = false
  /** The plan that was carried out last. */
  #wanted: Wanted | undefined
  /** Why a planned change is not done, by member. */
  readonly refused = new Map<string, HeldBack>()
  /** What is let go, and its ticket. */
  readonly #forgetting = new Set<Promise<void>>()
  #ending: Ending
  #ended = false

  /** @param recovered - what an earlier controller has left, by member */
  constructor(spec: WorkSpec, recovered: ReadonlyMap<string, Ticket>, ending: Ending) {
    this.spec = spec
    this.#ending = ending
    const left = [...recovered].flatMap(([key, ticket]) =>
      ticket.members.map(({ ref, found }): [string, MemberDrain] => {
        const identity = found?.identity ?? null
        return [key, new MemberDrain(spec, { ref, identity }, ticket)]
      }),
    )
    this.drains = new Map(left)
    this.adds = new Adds(spec, (key) => this.#note(key))
    this.#removals = new Removals(spec, (...ended) => this.#taken(...ended))
  }

  /** Says whether a member of a look was added or drained by us, in this life or by the word of a ticket. */
  ours(reading: Reading): boolean {
    if (!reading.present) return false
    const drain = this.drains.get(refKey(reading.ref))
    return drain?.isOf(reading) === true || this.spec.additions.has(reading)
  }

  /** Whether nothing is under way or due for the plan that was carried out last. */
  get isDone(): boolean {
    const isBusy = this.adds.isBusy || [...this.drains.values()].some((drain) => drain.isBusy)
    if (isBusy || this.#hasSkipped) return false
    return ![...(this.#wanted?.steps ?? [])].some(([key, step]) => this.#isOpen(key, step))
  }

  /**
   * Whether a planned change is still to be begun, or is tried again by the next look. What waits for longer, or is left
   * alone, is as settled as it can be: it says why.
   */
  #isOpen(key: string, { change }: PlannedChange): boolean {
    const adding = this.adds.all.get(key)
    // What failed may have been of an earlier set: with another address, say.
    if (adding !== undefined)
      return this.#isDue(adding) || !nodeUtil().isDeepStrictEqual(adding.change, change)
    const drain = this.drains.get(key)
    if (drain === undefined || drain.held === null) return !this.refused.has(key)
    return drain.isTried && this.#isDue(drain)
  }

  #isDue({ backoff }: Pick<MemberDrain, 'backoff'>): boolean {
    return backoff.notBefore <= this.#now()
  }

  /** When something that failed is due again; Infinity for nothing. */
  get dueAt(): number {
    const all = [...this.drains.values(), ...this.adds.all.values()]
    return all.reduce(
      (due, one) =>
        one.held === null || this.#isDue(one) ? due : Math.min(due, one.backoff.notBefore),
      Infinity,
    )
  }

  /** Makes what a plan says happen; what is under way already goes on. */
  carryOut(wanted: Wanted, ending: Ending): void {
    const { plan, look } = wanted
    this.#ending = ending
    this.#wanted = wanted
    this.refused.clear()
    this.#hasSkipped = false
    for (const [key, at] of this.#endedAt) if (at < look.askedAt) this.#endedAt.delete(key)
    // What an earlier controller left comes last: what the plan has a place for asks the floor first.
    const begun = [...this.drains].flatMap(([key, { state }]) => (state === 'left' ? [] : [key]))
    for (const key of new Set([...begun, ...wanted.steps.keys(), ...this.drains.keys()])) {
      const drain = this.drains.get(key)
      const step = wanted.steps.get(key)
      if (drain !== undefined && plan.unsaid.has(drain.ref.pool)) continue
      if (this.#isStale(key, look)) continue
      if (drain !== undefined) this.#goOn(key, drain, wanted)
      else if (step !== undefined) this.#begin(key, step, wanted)
    }
    this.#removals.carryOut(this.drains, wanted, ending)
    this.adds.keepOnly(wanted.steps)
  }

  /**
   * The newest set by an older look, while the balancer can't be read: takes back members that it wants to serve, because
   * a drain that could not begin would hold them with the first answer, and members for which the floor has no place any
   * more. Begins nothing else on an older look.
   */
  takeBackUnwished({ plan, look, steps, down }: Wanted): void {
    for (const [key, drain] of this.drains) {
      const reading = readingsOf(look.snapshot).get(key)
      if (!drain.isOf(reading) || drain.state === 'left') continue
      if (plan.unsaid.has(drain.ref.pool)) continue
      const wish = down.get(key)
      const step = steps.get(key)
      // What is down has its place, also where its next call has not found that yet.
      const isToAsk = drain.isToBegin && reading.own === 'ready'
      const isOut = (asked: Wish): boolean =>
        step === undefined || drain.asksOther(this.#shapeOf(step, asked, drain))
      if (wish === undefined || (isToAsk && isOut(wish))) this.#takeBack(key, drain)
    }
  }

  /** Lets go of everything as it is, once what was on its way is settled. */
  async end(): Promise<void> {
    this.#ended = true
    const released = [...this.drains.values()].map((drain) => drain.release())
    const [taken] = await Promise.all([this.#removals.end(), this.adds.end(), ...released])
    for (const drain of taken) this.#forget(refKey(drain.ref), drain, true)
    await Promise.all(this.#forgetting)
  }

  // --- drains that are there

  #goOn(key: string, drain: MemberDrain, wanted: Wanted): void {
    const reading = readingsOf(wanted.look.snapshot).get(key)
    const wish = wanted.down.get(key)
    if (!drain.isOf(reading)) {
      const isLeft = drain.state === 'left'
      const step = wanted.steps.get(key)
      // The run sees it too, and ends as gone; one that has ended already is not needed any more.
      if (!drain.isBusy) this.#forget(key, drain, true)
      // Nothing of this process was under way: this look shows the member that has the name now.
      if (isLeft && step !== undefined) this.#begin(key, step, wanted)
    } else if (wish === undefined) this.#takeBack(key, drain)
    else this.#keepDown(key, drain, wish, reading, wanted)
  }

  #keepDown(
    key: string,
    drain: MemberDrain,
    wish: Wish,
    reading: PresentReading,
    { steps, look }: Wanted,
  ): void {
    const step = steps.get(key)
    const shape = this.#shapeOf(step, wish, drain)
    drain.wished(wish, shape)
    if (drain.leftFor !== null || !this.#isDue(drain)) return
    const isDown = reading.own !== 'ready'
    if (step?.change.kind === 'hold' && this.#isLost(drain, isDown)) return
    const isOther = drain.isOther(shape, isDown)
    // Down, and to go: by a hold without an answer, or by another client. It is held by us before it is taken out.
    const again = (drain.state === 'failed' || drain.isLetGo) && step !== undefined
    // Ready, and the plan has no place for it: not held once more, also where an earlier set had a place.
    const isOut = step === undefined && !isDown
    if (isOut && drain.isToBegin) this.#takeBack(key, drain)
    else if (isOther || again || (drain.restoring && !isOut))
      void this.#open(key, drain, look, shape)
  }

  /** Whether it has its outcome, and the plan wants more than is in place: that was let go, or refused for good. */
  #isLost(drain: MemberDrain, isDown: boolean): boolean {
    const { state, refusal, isLetGo } = drain
    if (state !== 'held' || !(isLetGo || isDown)) return false
    if (refusal !== undefined) this.#fail(drain, refusal.message, refusal)
    else if (isLetGo && drain.isOverruled) this.#overruled(drain)
    else if (isLetGo) this.#fail(drain, drain.held ?? 'its hold was not kept up')
    return refusal !== undefined || isLetGo
  }

  #takeBack(key: string, drain: MemberDrain): void {
    drain.wish = undefined
    if (drain.restoring && (drain.isBusy || !this.#isDue(drain))) return
    this.#removals.drop(drain.removal)
    void this.#restore(key, drain)
  }

  async #restore(key: string, drain: MemberDrain): Promise<void> {
    const undone = await drain.restore()
    if (undone === undefined || !this.#isCurrent(key, drain)) return
    this.#note(key)
    const { failure, error, isOverruled } = undone
    if (failure === null) this.#forget(key, drain, isOverruled)
    else this.#fail(drain, failure, error)
    this.spec.changed(true)
  }

  // --- what is begun

  #begin(key: string, { change }: PlannedChange, wanted: Wanted): void {
    if (change.kind === 'add') this.adds.send(key, change)
    const reading = readingsOf(wanted.look.snapshot).get(key)
    if (reading?.present !== true) return
    const { ref, own } = reading
    if (change.kind === 'restore') {
      // Nothing of ours holds it: an operator does, or a drain whose ticket is lost.
      const reason = `it should serve and is in ${own}, but this reconciler did not drain it: the client that did, or ready(), makes it ready`
      if (this.spec.additions.isUnopened(reading)) this.adds.send(key, change)
      else this.refused.set(key, { ref, reason })
    }
    const wish = wanted.down.get(key)
    if (wish === undefined || (change.kind !== 'hold' && change.kind !== 'remove')) return
    const drain = new MemberDrain(this.spec, reading)
    this.drains.set(key, drain)
    this.#keepDown(key, drain, wish, reading, wanted)
  }

  async #open(key: string, drain: MemberDrain, look: SeenLook, shape: DrainShape): Promise<void> {
    this.#removals.drop(drain.removal)
    this.refused.delete(key)
    const ended = drain.begin(look, shape)
    this.spec.changed(false)
    const report = await ended
    if (report !== undefined && this.#isCurrent(key, drain)) this.#over(key, drain, report)
  }

  #over(key: string, drain: MemberDrain, report: DrainReport): void {
    const [member] = report.members
    const error = report.error ?? member?.error
    this.#note(key)
    switch (report.outcome) {
      case 'gone':
        this.#forget(key, drain, false)
        break
      case 'idle':
      case 'terminated':
      case 'proceeded':
      case 'timeout':
        this.#reached(drain, report.outcome, error)
        break
      case 'overruled':
        this.#overruled(drain, error)
        break
      default:
        this.#fail(drain, error?.message ?? `it ended as ${report.outcome}`, error)
    }
    this.spec.changed(!drain.isRefused)
  }

  /** Its time is over one way or another, and it is held. */
  #reached(
    drain: MemberDrain,
    outcome: 'idle' | 'terminated' | 'proceeded' | 'timeout',
    error: DrainableError | undefined,
  ): void {
    drain.state = 'held'
    drain.backoff.reset()
    const isLeft = outcome === 'timeout' || outcome === 'proceeded'
    const words =
      drain.wish?.remove === true ? LATE : wordsOf(error ?? 'it was not idle at its deadline')
    drain.held = isLeft ? words : null
  }

  // --- removals

  #taken(drain: MemberDrain, member?: MemberReport, error?: DrainableError): void {
    const key = refKey(drain.ref)
    if (!this.#isCurrent(key, drain) || drain.restoring) return
    this.#note(key)
    if (member?.phase === 'removed') this.#forget(key, drain, true)
    else if (member?.outcome === 'timeout' && error === undefined) drain.late()
    else if (error !== undefined && member?.outcome !== 'overruled') drain.tried(error.message)
  }

  #overruled(drain: MemberDrain, error?: DrainableError): void {
    const reapplies = this.spec.policy.data.onOverrule === 'reapply'
    const word = reapplies ? 'it is drained again' : 'it is left alone until its endpoint changes'
    this.#fail(drain, `another client made it ready: ${word}`, error)
    drain.overruled(!reapplies)
  }

  #fail(drain: MemberDrain, why: string, error?: DrainableError): void {
    const isNews = drain.fail(why, error)
    if (error !== undefined && isNews && !isDrainableError(error, 'DRAIN_TIMEOUT'))
      this.spec.fault(error)
  }

  #forget(key: string, drain: MemberDrain, drop: boolean): void {
    this.#removals.drop(drain.removal)
    this.drains.delete(key)
    this.#note(key)
    const forgetting = drain.release().then(async () => {
      // Nothing is left of the member that the ticket is about.
      if (drop && !this.drains.has(key)) await dropTicket(drain.ref, this.spec)
      this.#forgetting.delete(forgetting)
    })
    this.#forgetting.add(forgetting)
  }

  // --- how

  #shapeOf(step: PlannedChange | undefined, wish: Wish, drain: MemberDrain): DrainShape {
    return shapeOf({ step, wish, drain }, this.spec, this.#ending)
  }

  #note(key: string): void {
    this.#endedAt.set(key, this.#now())
  }

  /** Whether a look is too old for a member, which is then left to the next one. */
  #isStale(key: string, { askedAt }: SeenLook): boolean {
    const isStale = (this.#endedAt.get(key) ?? -Infinity) >= askedAt
    this.#hasSkipped ||= isStale
    return isStale
  }

  #isCurrent(key: string, drain: MemberDrain): boolean {
    return !this.#ended && this.drains.get(key) === drain
  }

  #now(): number {
    return this.spec.policy.clock.now()
  }
}
