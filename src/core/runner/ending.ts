import { DrainableError } from '../../provider/error.js'
import type { DrainReport } from '../../provider/report.js'
import { closeTicket, leaveTicketOpen } from './close-ticket.js'
import type { Contest } from './balancer/contest.js'
import type { InForce } from './in-force.js'
import { withTicket } from './report.js'
import { leaveIdle } from './balancer/left-idle.js'
import type { Looking } from './looking.js'
import type { RunState } from './run-state.js'

/** The callbacks of an end. */
export interface EndingOptions {
  /** Goes on looking, because an idle was lost before it was reported. */
  readonly again: () => void
  /** Called once the ticket is written, if other runs decide whether the outcome stands. */
  readonly closed?: () => void
}

/** Ends a run: reports and resolves once, and lets go of the balancer. */
export class Ending {
  readonly done: Promise<DrainReport>
  readonly #run: RunState
  readonly #contest: Contest
  readonly #looking: Looking
  readonly #inForce: InForce
  readonly #again: () => void
  #givenUp = false
  #takenBack = false
  #ended: DrainReport | undefined
  /** The report from when every member had its outcome. */
  #report: DrainReport | undefined
  readonly #closed: (() => void) | undefined
  #finish: (report: DrainReport) => void = () => undefined

  constructor(
    run: RunState,
    contest: Contest,
    looking: Looking,
    inForce: InForce,
    { again, closed }: EndingOptions,
  ) {
    this.#again = again
    this.#closed = closed
    this.#run = run
    this.#contest = contest
    this.#looking = looking
    this.#inForce = inForce
    this.done = new Promise((resolve) => (this.#finish = resolve))
  }

  /** The value that `done` was resolved with; undefined before. */
  get ended(): DrainReport | undefined {
    return this.#ended
  }

  /** Ends the run before its members are known: nothing was changed. */
  endEarly(report: DrainReport): void {
    if (this.#ended !== undefined) return
    this.#run.life = 'released'
    this.leave()
    this.say(report)
    this.resolve(report)
  }

  /**
   * Ends the run when every member has its outcome. It reports once the ticket is written: until then, an idle can
   * still be lost. A held drain is kept up until it is released.
   */
  end(): void {
    const { members, spec, alarm } = this.#run
    if (members === undefined) return
    this.#run.life = 'held'
    alarm.clear()
    const report = members.report(this.#run.startedAt)
    this.#report = report
    const held = members.all.some(({ ending }) => ending.holding)
    const goesOn = held && spec.side !== 'open' && spec.announced === undefined
    if (!goesOn) this.#settle()
    this.#run.guard(() => closeTicket(this.#run, report).then(() => this.#written()))
    if (goesOn) this.#looking.sit(true)
    else this.leave()
  }

  /** Whether any idle was lost since every member had its outcome. */
  hasLost(): boolean {
    const { life, states } = this.#run
    return life === 'held' && states.some(({ ending }) => ending.ended === null)
  }

  /** Drops the outcome and goes on looking. */
  resume(): void {
    if (this.#run.life !== 'held' || this.#isOver()) return
    this.#run.life = 'looking'
    this.#again()
  }

  /** Confirms the outcome. */
  stand(): void {
    const { members, life } = this.#run
    if (members === undefined || this.#isOver()) return
    this.#settle()
    const report = this.#report
    const final =
      life === 'held' || report === undefined ? members.report(this.#run.startedAt) : report
    const said = withTicket(this.#givenUp ? abortedReport(final) : final, this.#run.whyTicket)
    this.say(said)
    this.resolve(said)
  }

  /** Called when an undo began before the outcome was reported: the undo reports its own result. */
  takeBack(): void {
    this.#takenBack = true
  }

  /** Called when the caller's signal fired before the outcome was reported. */
  giveUp(): void {
    this.#givenUp = true
  }

  /** Called when the ticket is written: the outcome stands, unless something changed meanwhile. */
  #written(): void {
    if (this.#isOver()) return
    if (this.#closed !== undefined) this.#closed()
    else if (this.hasLost()) this.resume()
    else this.stand()
  }

  #isOver(): boolean {
    return this.#ended !== undefined || this.#takenBack
  }

  #settle(): void {
    const { members, sender } = this.#run
    for (const key of members?.keys ?? []) {
      if (members?.get(key)?.ending.settled === true) continue
      sender?.send(members?.take(key, { type: 'settle' }) ?? [])
    }
  }

  /** Ends a run whose members can't be ended either. */
  break(report: DrainReport): void {
    try {
      this.leave()
    } catch {
      // a failed release must not prevent the report
    } finally {
      if (this.#ended === undefined) this.say(report)
      this.resolve(report)
    }
  }

  say(report: DrainReport): void {
    if (this.#run.spec.background === true) return
    this.#run.emit({ type: 'end', at: this.#run.iso(), outcome: report.outcome, report }, true)
  }

  resolve(report: DrainReport): void {
    if (this.#ended !== undefined) return
    this.#ended = report
    this.#inForce.over()
    this.#finish(report)
  }

  /** Stops the looks and stops keeping the drain up; changes nothing. */
  leave(): void {
    const { alarm, spec, stop } = this.#run
    alarm.clear()
    this.#looking.leave()
    this.#run.life = 'released'
    if (this.#run.left) return
    this.#run.left = true
    stop.abort(new DrainableError('CONFLICT', 'the drain was released'))
    if (spec.side === 'drain') leaveIdle(spec.provider, this.#run.states)
    leaveTicketOpen(this.#run)
    this.#contest.leave()
  }

  /** The final or present report. */
  report(): DrainReport {
    const { members, startedAt } = this.#run
    if (members !== undefined) return withTicket(members.report(startedAt), this.#run.whyTicket)
    const elapsed = this.#run.since(startedAt)
    return this.#ended ?? { outcome: 'aborted', members: [], elapsed }
  }
}

/** The report if the caller gave up just before it was sent. */
function abortedReport(report: DrainReport): DrainReport {
  const members = report.members.map((member) => ({ ...member, outcome: 'aborted' as const }))
  return { ...report, outcome: 'aborted', members }
}
