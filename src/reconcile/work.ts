import type { PlannedChange } from '../provider/desired.js'
import type { DrainEvent } from '../core/events.js'
import { readingsOf, type SeenLook } from '../core/balancer/look/look.js'
import type { Ticket } from '../core/tickets/ticket.js'
import type { WishedPlan } from '../endpoints/plan-changes.js'
import type { Wish } from '../endpoints/plan.js'
import { wallOf } from '../provider/clock.js'
import type { Capabilities, MemberRef, PresentReading } from '../provider/contract.js'
import {
  isDrainableError,
  toDrainableError,
  wordsOf,
  type DrainableError,
} from '../provider/error.js'
import { refKey } from '../provider/member-ref.js'
import type { MemberReport } from '../provider/report.js'
import { Adds } from './adds.js'
import { dueOf, isOpen } from './due.js'
import { isUndone, LATE, MemberDrain, type DrainShape } from './member-drain.js'
import { drainedIn, earlierOf, shapeOf, type EarlierDrain, type Ending } from './shape.js'
import { Removals } from './removals.js'
import { dropTicket, ticketId } from './tickets.js'
import { Touched } from './touched.js'
import { saidOfTheirs, wantedOf, type Wanted } from './wanted.js'
import type { WorkSpec } from './work-spec.js'

/** All that is under way for members, and what is held. Carries plans out; decides nothing a plan says. */
export class Work {
  readonly #spec: WorkSpec
  readonly drains = new Map<string, MemberDrain>()
  readonly adds: Adds
  readonly #removals: Removals
  readonly capabilities: Capabilities
  /** What an earlier controller has left and is not taken over yet. */
  readonly #recovered: Map<string, Ticket>
  readonly #touched = new Touched()
  /** Why a planned change is not done, by member. */
  readonly refused = new Map<string, string>()
  /** What is let go, and its ticket. */
  readonly #forgetting = new Set<Promise<void>>()
  #ending: Ending
  #ended = false

  constructor(spec: WorkSpec, recovered: Map<string, Ticket>, ending: Ending) {
    this.#spec = spec
    this.capabilities = spec.capabilities
    this.#ending = ending
    this.#recovered = recovered
    this.adds = new Adds(spec, (key) => this.#touched.note(key, this.#now()))
    this.#removals = new Removals(spec, (...ended) => this.#taken(...ended))
  }

  /** Says whether a member of a look was added or drained by us, in this life or by the word of a ticket. */
  ours({ snapshot }: SeenLook): (reading: PresentReading) => boolean {
    const drained = drainedIn(readingsOf(snapshot), this.drains, this.#recovered)
    return (reading) => drained.has(reading) || this.#spec.additions.has(reading)
  }

  /** Whether nothing is under way or due for the plan that was carried out last. */
  isDone(plan: WishedPlan): boolean {
    const isBusy = this.adds.isBusy || [...this.drains.values()].some((drain) => drain.isBusy)
    if (isBusy || this.#touched.hasSkipped) return false
    return !plan.steps.some((step) => isOpen(step, this, this.#now()))
  }

  /** When something that failed is due again; Infinity for nothing. */
  get dueAt(): number {
    return dueOf([...this.drains.values(), ...this.adds.all.values()], this.#now())
  }

  /** Makes what a plan says happen; what is under way already goes on. */
  carryOut(plan: WishedPlan, look: SeenLook, ending: Ending): void {
    this.#ending = ending
    const wanted = wantedOf(plan, look)
    this.refused.clear()
    this.#touched.begin(look)
    for (const [key, drain] of [...this.drains]) this.#goOn(key, drain, wanted)
    for (const [key, step] of wanted.steps)
      if (!this.drains.has(key)) this.#begin(key, step, wanted)
    // After what is begun: what the plan has a place for asks the floor first.
    for (const [key, ticket] of [...this.#recovered]) this.#takeOver(key, ticket, wanted)
    this.#removals.carryOut(this.drains, wanted, ending)
    this.adds.keepOnly(wanted.steps)
  }

  /**
   * The newest set by an older look, while the balancer can't be read: takes back members that it wants to serve, because
   * a drain that could not begin would hold them with the first answer, and members for which the floor has no place any
   * more. Begins nothing else on an older look.
   */
  takeBackUnwished(plan: WishedPlan, look: SeenLook): void {
    const { steps, down, isSaid } = wantedOf(plan, look)
    for (const [key, drain] of this.drains) {
      if (!drain.isOf(readingsOf(look.snapshot).get(key)) || !isSaid(drain.ref.pool)) continue
      const wish = down.get(key)
      const step = steps.get(key)
      const isMeant = wish !== undefined && (step !== undefined || !drain.isToBegin)
      if (!isMeant || drain.asksOther(this.#shapeOf(step, wish, drain))) this.#takeBack(key, drain)
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
    if (!wanted.isSaid(drain.ref.pool) || this.#touched.isStale(key, wanted)) return
    const reading = readingsOf(wanted.look.snapshot).get(key)
    if (!drain.isOf(reading)) {
      // The run sees it too, and ends as gone; one that has ended already is not needed any more.
      if (!drain.isBusy) this.#forget(key, drain, true)
      return
    }
    const wish = wanted.down.get(key)
    if (wish === undefined) this.#takeBack(key, drain)
    else this.#keepDown(key, drain, wish, reading, wanted)
  }

  // eslint-disable-next-line complexity -- one reason to leave the drain as it is after the other
  #keepDown(
    key: string,
    drain: MemberDrain,
    wish: Wish,
    reading: PresentReading,
    wanted: Wanted,
  ): void {
    const step = wanted.steps.get(key)
    drain.wished(wish)
    const shape = this.#shapeOf(step, wish, drain)
    const isReshaped = drain.reshape(shape)
    if (drain.leftFor !== null || drain.replaced) return
    if (this.#now() < drain.backoff.notBefore) return
    const isLetGo = drain.state === 'held' && !drain.isHeld
    if (isLetGo && step?.change.kind === 'hold') {
      if (drain.refusal === undefined) this.#overruled(drain)
      else this.#fail(drain, drain.refusal)
      return
    }
    const isRaised = shape.hold === 'maint' && drain.shape.hold === 'drain'
    // Not between a reload and the hold that is put back: let go then, it would take no place in the floor.
    const isDown = reading.own !== 'ready'
    const isFree = isDown || drain.isToBegin
    const isOther = (isRaised && isFree) || drain.asksOther(shape)
    const changed = (isReshaped && isDown) || isOther
    // Down, and to go: by a hold without an answer, or by another client. It is held by us before it is taken out.
    const again = (drain.state === 'failed' || isLetGo) && step !== undefined
    // Ready, and the plan has no place for it: not held once more, also where an earlier set had a place.
    const isOut = step === undefined && reading.own === 'ready'
    const undoing = drain.restoring && !isOut
    if (isOut && drain.isToBegin) this.#takeBack(key, drain)
    else if (changed || again || undoing)
      void this.#replace(key, drain, shape, { reading, look: wanted.look })
  }

  /** Another drain in place of this one: it inherits its ticket, so what an undo goes back to is kept. */
  async #replace(
    key: string,
    drain: MemberDrain,
    shape: DrainShape,
    { reading, look }: { readonly reading: PresentReading; readonly look: SeenLook },
  ): Promise<void> {
    this.#removals.drop(drain.removal)
    drain.state = 'running'
    drain.held = null
    drain.replaced = true
    // One that is being taken back ends only then: the new one is the later call, and takes over.
    // It waits for a call under way, and what is wished may be another thing by then.
    if (!drain.restoring) await drain.release()
    if (drain.unwished && this.#isCurrent(key, drain)) {
      drain.replaced = false
      this.#takeBack(key, drain)
      return
    }
    await drain.handOver()
    // What it is found in now is theirs: the new one goes back to that, and not to what was before us.
    if (drain.foreign) await dropTicket(drain.ref, this.#spec)
    if (!this.#isCurrent(key, drain)) return
    this.#open(key, reading, look, shape, drain)
    if (drain.restoring) void drain.release()
  }

  #takeBack(key: string, drain: MemberDrain): void {
    drain.unwished = true
    if (drain.replaced || (drain.restoring && drain.isBusy)) return
    if (this.#now() < drain.backoff.notBefore && drain.restoring) return
    this.#removals.drop(drain.removal)
    drain.held = null
    drain.restoring = true
    drain.leftFor = null
    drain.state = 'running'
    void this.#restored(key, drain)
  }

  async #restored(key: string, drain: MemberDrain): Promise<void> {
    let member: MemberReport | undefined
    let error: DrainableError | undefined
    try {
      member = await drain.restore()
      error = member?.error
    } catch (thrown) {
      error = toDrainableError(thrown, this.#spec.provider.name, this.#spec.subject)
    }
    if (!this.#isCurrent(key, drain) || !drain.restoring) return
    const over = member === undefined ? error === undefined : isUndone(member)
    this.#touched.note(key, this.#now())
    if (over) this.#forget(key, drain, member?.outcome === 'overruled')
    else this.#fail(drain, error ?? `it could not be made ready: ${member?.outcome ?? 'unknown'}`)
    this.#spec.changed(true)
  }

  // --- what is begun

  #begin(key: string, step: PlannedChange, wanted: Wanted): void {
    const { change } = step
    if (this.#touched.isStale(key, wanted)) return
    if (change.kind === 'add') this.adds.add(key, change)
    const reading = readingsOf(wanted.look.snapshot).get(key)
    if (reading?.present !== true) return
    if (change.kind === 'hold' || change.kind === 'remove') {
      const wish = wanted.down.get(key)
      if (wish !== undefined) this.#continue(key, reading, wanted, wish, this.#recovered.get(key))
    } else if (change.kind === 'restore' && !this.#recovered.has(key)) {
      if (this.#spec.additions.isUnopened(reading)) this.adds.open(key, change)
      else this.refused.set(key, saidOfTheirs(reading))
    }
  }

  /** Opens the drain of a member; one that an earlier process has begun keeps its beginning and its deadline. */
  #continue(key: string, reading: PresentReading, wanted: Wanted, wish: Wish, of?: Ticket): void {
    const before = earlierOf(of, reading)
    const shape = this.#shapeOf(wanted.steps.get(key), wish, before)
    const drain = this.#open(key, reading, wanted.look, shape)
    drain.wished(wish)
    if (before !== undefined) drain.since = before.since
  }

  #takeOver(key: string, ticket: Ticket, wanted: Wanted): void {
    const [member] = ticket.members
    if (member === undefined || !wanted.isSaid(member.ref.pool)) return
    if (this.#touched.isStale(key, wanted)) return
    this.#recovered.delete(key)
    if (this.drains.has(key)) return // begun by the plan: it has inherited the ticket
    const reading = readingsOf(wanted.look.snapshot).get(key)
    if (reading?.present !== true || earlierOf(ticket, reading) === undefined) {
      void dropTicket(member.ref, this.#spec)
      return
    }
    const wish = wanted.down.get(key)
    if (wish !== undefined) {
      this.#continue(key, reading, wanted, wish, ticket)
      return
    }
    const { identity, ref } = reading
    const drain = MemberDrain.fromTicket({ ...this.#openSpec(ref), ref, identity }, ticket)
    this.drains.set(key, drain)
    drain.restoring = true
    void this.#restored(key, drain)
    this.#spec.changed(false)
  }

  #openSpec(ref: MemberRef) {
    const { provider, policy, subject, changed, fault } = this.#spec
    const onEvent = (event: DrainEvent): void => {
      changed(event.type === 'idle-lost')
      // The balancer's own failures are seen by the loop's looks.
      if (event.type === 'fault' && isDrainableError(event.error, 'TICKET_INVALID'))
        fault(event.error)
      policy.onEvent?.(event)
    }
    return { provider, subject, policy: { ...policy, id: ticketId(provider, ref), onEvent } }
  }

  #open(
    key: string,
    { ref, identity }: PresentReading,
    look: SeenLook,
    shape: DrainShape,
    before?: MemberDrain,
  ): MemberDrain {
    const drain = MemberDrain.open({ ...this.#openSpec(ref), ref, identity, look }, shape, before)
    this.drains.set(key, drain)
    this.refused.delete(key)
    void this.#over(key, drain)
    this.#spec.changed(false)
    return drain
  }

  async #over(key: string, drain: MemberDrain): Promise<void> {
    const report = await drain.done
    if (!this.#isCurrent(key, drain) || drain.restoring) return
    // Released for the drain that takes its place.
    if (drain.replaced && report.outcome === 'aborted') return
    const [member] = report.members
    const error = report.error ?? member?.error
    this.#touched.note(key, this.#now())
    switch (report.outcome) {
      case 'removed':
      case 'gone':
        this.#forget(key, drain, false)
        break
      case 'idle':
      case 'terminated':
      case 'proceeded':
      case 'timeout':
        if (member?.phase === 'removed') this.#forget(key, drain, false)
        else this.#reached(drain, report.outcome, error)
        break
      case 'overruled':
        this.#overruled(drain, error)
        break
      default:
        this.#fail(drain, error ?? `it ended as ${report.outcome}`)
    }
    this.#spec.changed(!drain.isRefused)
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
    const words = drain.leaves ? LATE : wordsOf(error ?? 'it was not idle at its deadline')
    drain.held = isLeft ? words : null
  }

  // --- removals

  #taken(drain: MemberDrain, member?: MemberReport, error?: DrainableError): void {
    const key = refKey(drain.ref)
    if (!this.#isCurrent(key, drain) || drain.restoring || drain.replaced) return
    this.#touched.note(key, this.#now())
    if (member?.phase === 'removed') this.#forget(key, drain, true)
    else if (member?.outcome === 'timeout' && error === undefined) drain.late()
    else if (error !== undefined && member?.outcome !== 'overruled')
      drain.tried(error.message, this.#now())
  }

  #overruled(drain: MemberDrain, error?: DrainableError): void {
    const reapplies = this.#spec.policy.data.onOverrule === 'reapply'
    const word = reapplies ? 'it is drained again' : 'it is left alone until its endpoint changes'
    this.#fail(drain, `another client made it ready: ${word}`, error)
    drain.foreign = true
    drain.since = new Date(wallOf(this.#spec.policy.clock)).toISOString()
    if (!reapplies) drain.leftFor = drain.said
  }

  #fail(drain: MemberDrain, why: DrainableError | string, cause?: DrainableError): void {
    const error = typeof why === 'string' ? cause : why
    const isNews = drain.fail(typeof why === 'string' ? why : why.message, error, this.#now())
    if (error !== undefined && isNews && !isDrainableError(error, 'DRAIN_TIMEOUT'))
      this.#spec.fault(error)
  }

  #forget(key: string, drain: MemberDrain, drop: boolean): void {
    this.#removals.drop(drain.removal)
    this.drains.delete(key)
    this.#touched.note(key, this.#now())
    const forgetting = drain.release().then(async () => {
      // Nothing is left of the member that the ticket is about.
      if (drop && !this.drains.has(key)) await dropTicket(drain.ref, this.#spec)
      this.#forgetting.delete(forgetting)
    })
    this.#forgetting.add(forgetting)
  }

  // --- how

  #shapeOf(step: PlannedChange | undefined, wish: Wish, before?: EarlierDrain): DrainShape {
    const { policy, capabilities } = this.#spec
    return shapeOf({ step, wish, before }, { policy, ending: this.#ending, capabilities })
  }

  #isCurrent(key: string, drain: MemberDrain): boolean {
    return !this.#ended && this.drains.get(key) === drain
  }

  #now(): number {
    return this.#spec.policy.clock.now()
  }
}
