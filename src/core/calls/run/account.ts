import type { DrainableError } from '../../../provider/error.js'
import type { DrainReport, Why } from '../../../provider/report.js'
import { emitOn } from '../../balancer/emitters.js'
import type { DrainEvent } from '../../events.js'
import { reportAll, reportMember, withTicket } from '../../member/said/report.js'
import { explain } from '../../member/said/why.js'
import type { Ticket } from '../../tickets/ticket.js'
import type { Claims } from './claims.js'
import type { RunClock } from './run-clock.js'
import type { RunSpec } from './run-spec.js'
import type { TicketWrites } from './ticket-writes.js'
import { namedBy } from './unprepared.js'

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
    if (this.#spec.background === true) return
    this.hand({ type: 'end', at: this.#clock.iso(), outcome: report.outcome, report })
  }

  /** Each member as it is now. */
  report(): DrainReport {
    const now = this.#clock.now()
    const offset = this.#clock.offset(now)
    const members = this.#claims.sights().map((sight) => reportMember(sight, now, offset))
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
    return this.#claims.sights().flatMap((sight) => explain(sight, now, offset))
  }

  /** What is wrong with the ticket. */
  get whyTicket(): Omit<Why, 'ref'> | undefined {
    return this.ticket === undefined ? this.#spec.keeper().why : this.ticket.why
  }

  /** The ticket as it is now. */
  ticketNow(): Ticket {
    return this.ticket?.now() ?? this.#spec.keeper().ticket(this.#claims.sights())
  }
}
