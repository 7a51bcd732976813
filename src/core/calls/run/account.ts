import type { DrainableError } from '../../../provider/error.js'
import type { DrainReport, Why } from '../../../provider/report.js'
import { emitOn } from '../../balancer/home.js'
import type { DrainEvent } from '../../events.js'
import { reportAll, reportMember, withTicket } from '../../member/said/report.js'
import { explain } from '../../member/said/why.js'
import type { Ticket } from '../../tickets/ticket.js'
import type { Claims } from './claims.js'
import type { RunSpec } from './run-spec.js'
import type { TicketWrites } from './ticket-writes.js'
import { namedBy } from './preparation.js'
import { type Clock, isoOf, wallOf } from '../../../provider/clock.js'
import type { DrainableProvider, MemberRef } from '../../../provider/contract.js'
import { refKey } from '../../../provider/member-ref.js'
import type { ClaimedMember } from '../../member/claimed.js'

/** What is said of one run: its events, reports and reasons. */
export class Account {
  readonly #spec: RunSpec
  readonly #claims: Claims
  readonly #clock: RunClock
  readonly #startedAt: number
  /** The ticket that the run writes, once it is prepared. */
  ticket: TicketWrites | undefined

  constructor(spec: RunSpec, claims: Claims, clock: RunClock, startedAt: number) {
    this.#spec = spec
    this.#claims = claims
    this.#clock = clock
    this.#startedAt = startedAt
  }

  hand(event: DrainEvent): void {
    this.#spec.emit(event)
    const { provider, alreadyOut } = this.#spec
    emitOn(provider, alreadyOut === true ? { ...event, alreadyOut } : event)
  }

  /** A failure that does not end the run. */
  fault(error: DrainableError): void {
    const ref = error.ref ?? this.#claims.refs[0] ?? namedBy(this.#spec)[0]
    if (ref !== undefined) this.hand({ type: 'fault', at: this.#clock.iso(), ref, error })
  }

  /** The last event of a call. */
  end(report: DrainReport): void {
    const { background, step } = this.#spec
    const last = step === undefined ? report : step.last(report)
    if (background === true || last === undefined) return
    this.hand({ type: 'end', at: this.#clock.iso(), outcome: last.outcome, report: last })
  }

  /** Each member as it is now. */
  report(): DrainReport {
    const now = this.#clock.now()
    const offset = this.#clock.offset(now)
    const members = this.#claims
      .claimedMembers()
      .map((claimed) => reportMember(claimed, now, offset))
    return reportAll(members, Math.round(now - this.#startedAt))
  }

  /** As a caller is told, who can ask at any time. @param ended - how the run ended, if it has */
  asked(ended: DrainReport | undefined): DrainReport {
    if (!this.#claims.laid) {
      const elapsed = this.#clock.since(this.#startedAt)
      return ended ?? { outcome: 'aborted', members: [], elapsed }
    }
    try {
      return this.withTicket(this.report())
    } catch (error) {
      if (ended === undefined) throw error
      return ended // the clock of a broken run throws
    }
  }

  /** Says what is wrong with the ticket, too. */
  withTicket(report: DrainReport): DrainReport {
    return withTicket(report, this.whyTicket)
  }

  /** @param waiting - what a run waits for that is not prepared yet */
  why(waiting: () => readonly Why[]): readonly Why[] {
    const why = this.whyTicket
    const refs = this.#claims.laid ? this.#claims.refs : namedBy(this.#spec)
    const [ref = { pool: '*', member: '*' }] = refs
    const ofMembers = this.#claims.laid ? this.#whyMembers() : waiting()
    return [...(why === undefined ? [] : [{ ...why, ref }]), ...ofMembers]
  }

  #whyMembers(): readonly Why[] {
    const now = this.#clock.now()
    const offset = this.#clock.offset(now)
    return this.#claims.claimedMembers().flatMap((claimed) => explain(claimed, now, offset))
  }

  /** What is wrong with the ticket. */
  get whyTicket(): Omit<Why, 'ref'> | undefined {
    return this.ticket === undefined ? this.#spec.keeper().why : this.ticket.why
  }

  /** The ticket as it is now. */
  ticketNow(): Ticket {
    return this.ticket?.now() ?? this.#spec.keeper().ticket(this.#claims.claimedMembers())
  }
}

/** The clock of a run, which reports and events can still be dated by when the caller's clock throws. */
export class RunClock {
  readonly #clock: Clock
  /** The last time that it told. */
  #told: number

  constructor(clock: Clock) {
    this.#clock = clock
    this.#told = clock.now()
  }

  now(): number {
    return (this.#told = this.#clock.now())
  }

  /** What to add to its times for the wall clock, in milliseconds. */
  offset(now: number): number {
    return wallOf(this.#clock) - now
  }

  /** Milliseconds since a time; if the clock throws, up to the last time that it told. */
  since(moment: number): number {
    try {
      return Math.round(this.now() - moment)
    } catch {
      return Math.round(this.#told - moment)
    }
  }

  /** The present time for events. */
  iso(): string {
    try {
      return isoOf(this.#clock)
    } catch {
      return new Date().toISOString()
    }
  }
}

/** Tracks whether the drain has been in force for every member, once for each. */
export class InForce {
  readonly promise: Promise<boolean>
  readonly #members = new Set<string>()
  #said = false
  #resolve: (inForce: boolean) => void = () => undefined

  constructor() {
    this.promise = new Promise((resolve) => (this.#resolve = resolve))
  }

  note(ref: MemberRef): void {
    if (!this.#said) this.#members.add(refKey(ref))
  }

  /** @param count - how many members the run has */
  check(count: number): void {
    if (this.#said || this.#members.size !== count) return
    this.#said = true
    this.#resolve(true)
  }

  /** Called when the run is over: a drain not in force by now never was. */
  over(): void {
    this.#resolve(false)
  }
}

/** The listeners to members that drains leave idle on a provider. */
const listeners = new WeakMap<DrainableProvider, (claimed: ClaimedMember) => void>()

/** Listens to members that drains leave idle, so that their idle is not reported twice. */
export function onLeftIdle(
  provider: DrainableProvider,
  listener: ((claimed: ClaimedMember) => void) | undefined,
): void {
  if (listener === undefined) listeners.delete(provider)
  else listeners.set(provider, listener)
}

/** Called when a drain lets go of its members. */
export function leaveIdle(
  provider: DrainableProvider,
  claimedMembers: readonly ClaimedMember[],
): void {
  const listener = listeners.get(provider)
  if (listener === undefined) return
  for (const claimed of claimedMembers) if (claimed.claim.phase === 'idle') listener(claimed)
}
