import type { MemberRef } from '../../provider/contract.js'
import { DrainableError } from '../../provider/error.js'
import { formatRef } from '../../provider/member-ref.js'
import type { DrainReport, MemberReport, Outcome } from '../../provider/report.js'
import { openGoal, UNDO_LIMIT } from '../machine/goal.js'
import { QUIET_LIMIT } from './look/call.js'
import { isUnreachable, toDrainableError } from '../../provider/thrown.js'
import { closeUndone } from './close-ticket.js'
import type { Contest } from './balancer/contest.js'
import type { Ending } from './ending.js'
import type { LastLook } from './last-look.js'
import type { Looking } from './looking.js'
import type { Members } from './members.js'
import { boundPreparing } from './prepare.js'
import { reportAll, unreached, withTicket } from './report.js'
import type { RunSpec } from './run-spec.js'
import type { RunState } from './run-state.js'

/** Options of an undo. */
export interface UndoOptions {
  /** How long to wait for a change of ours that may be carried out late, in milliseconds; null: without limit. */
  readonly lateFor: number | null
}

/** The parts that an undo uses. */
export interface UndoParts {
  readonly run: RunState
  readonly contest: Contest
  readonly looking: Looking
  readonly lastLook: LastLook
  readonly ending: Ending
  /** Resolves at the end of the preparation, with or without success. */
  readonly prepared: () => Promise<void>
  readonly changed: () => void
}

/** An undo in progress. */
interface UnderWay {
  readonly promise: Promise<DrainReport>
  readonly resolve: (report: DrainReport) => void
  readonly startedAt: number
}

/** Undoes a drain: its members get the goal `open`, at any time of the run, and also after it. */
export class Undo {
  readonly #parts: UndoParts
  readonly #run: RunState
  #underWay: UnderWay | undefined
  /** A finished undo that waits for its ticket. */
  #closing: UnderWay | undefined
  /** The members' reports from before an undo that began before the end. */
  #before: readonly MemberReport[] | undefined

  constructor(parts: UndoParts) {
    this.#parts = parts
    this.#run = parts.run
  }

  /** The report promise of an undo in progress. */
  get underWay(): Promise<DrainReport> | undefined {
    return this.#underWay?.promise
  }

  /** Returns the undo's own promise, so that its caller continues before `done` resolves. */
  start(options: UndoOptions): Promise<DrainReport> {
    if (this.#underWay !== undefined) {
      this.#run.guard(() => this.#again()) // a later call than any drain that was begun since
      return this.#underWay.promise
    }
    const startedAt = this.#run.now()
    let resolve: UnderWay['resolve'] = () => undefined
    const promise = new Promise<DrainReport>((done) => (resolve = done))
    this.#underWay = { promise, resolve, startedAt }
    const undo = this.#underWay
    this.#run.guard(() => this.#begin(undo, options))
    return promise
  }

  async #again(): Promise<void> {
    const { contest, changed } = this.#parts
    // Before its members are known, the undo has not counted as the latest call yet.
    if (this.#run.members === undefined || this.#run.left) return
    contest.renew()
    await contest.decide()
    changed()
  }

  /** Resolves a waiting undo if the members can't be ended either. */
  break(report: DrainReport): void {
    const undo = this.#underWay ?? this.#closing
    this.#underWay = undefined
    this.#closing = undefined
    undo?.resolve(report)
  }

  async #begin(undo: UnderWay, options: UndoOptions): Promise<void> {
    const { run, prepared } = this.#parts
    if (run.members === undefined) {
      // Nothing was changed yet, and nothing will be; only the changes in a ticket are undone.
      if (run.spec.resumed === undefined)
        run.stop.abort(new DrainableError('CONFLICT', 'the drain was undone'))
      else if (!run.left) boundPreparing(run, undo.startedAt + UNDO_LIMIT)
      await prepared()
    }
    if (this.#underWay !== undo) return
    if (run.members !== undefined) await this.#openMembers(run.members, undo, options)
    else if (run.spec.resumed === undefined) {
      this.#underWay = undefined
      undo.resolve(reportAll([], run.since(undo.startedAt)))
    } else await this.failUnprepared(new DrainableError('CONFLICT', 'it was released'))
  }

  /**
   * Handles a failed preparation: our changes in a ticket could not be undone, and the ticket stays.
   *
   * @returns the report for `done`; undefined if there was no ticket to undo
   */
  async failUnprepared(thrown: unknown): Promise<DrainReport | undefined> {
    const undo = this.#underWay
    const { spec } = this.#run
    if (undo === undefined || spec.resumed === undefined) return undefined
    this.#underWay = undefined
    const { outcome, error } = unreachedBy(this.#parts.ending.ended, spec, thrown)
    const elapsed = this.#run.since(undo.startedAt)
    const members = unreached(spec.resumed, { outcome, members: [], elapsed }).map((member) => ({
      ...member,
      error: notUndone(member.ref, spec.resumed?.id ?? '', error),
    }))
    undo.resolve(reportAll(members, elapsed))
    await undo.promise
    const aborted = members.map((member) => ({ ...member, outcome: 'aborted' as const }))
    return reportAll(aborted, this.#run.since(this.#run.startedAt))
  }

  async #openMembers(
    members: Members,
    { startedAt }: UnderWay,
    { lateFor }: UndoOptions,
  ): Promise<void> {
    const { contest, looking, lastLook, ending, changed } = this.#parts
    if (ending.ended === undefined) {
      this.#before = members.report(this.#run.startedAt).members
      ending.takeBack()
    }
    this.#rejoin()
    const goal = openGoal({
      of: 'ours',
      until: startedAt + UNDO_LIMIT,
      lateUntil: lateFor === null ? null : startedAt + lateFor,
    })
    contest.renew()
    // A look now could show another run's change before this run knows whose it is.
    if (contest.takeOver()) looking.leave()
    for (const key of members.keys) {
      this.#run.sender?.send(members.take(key, { type: 'goal', goal }))
    }
    this.#limitSent()
    await contest.decide()
    looking.sit(false)
    lastLook.arm()
    changed()
  }

  /** Rejoins the runs of this balancer, for an undo after the release. */
  #rejoin(): void {
    this.#run.alarm.clear()
    if (this.#run.left) {
      this.#run.left = false
      this.#run.stop = new AbortController()
      this.#parts.contest.rejoin()
    }
    this.#run.life = 'looking'
  }

  /** Limits the wait for a pending change, to less than the time limit of a call. */
  #limitSent(): void {
    const { spec, sender } = this.#run
    const giveUp = (): void => {
      const error = new DrainableError('CALL_TIMEOUT', 'apply: no answer before the undo')
      for (const state of this.#run.states) sender?.giveUp(state, error)
      this.#parts.changed()
    }
    const cancel = spec.clock.setTimeout(() => this.#run.guard(giveUp), QUIET_LIMIT)
    void sender?.settled().then(cancel)
  }

  /** Ends the undo when every member has its outcome: the run lets go. */
  async end(): Promise<void> {
    const { ending } = this.#parts
    const { members, startedAt } = this.#run
    const undo = this.#underWay
    if (members === undefined || undo === undefined) return
    this.#underWay = undefined
    this.#closing = undo
    this.#run.life = 'held'
    this.#run.alarm.clear()
    const now = members.report(startedAt)
    const report = reportAll(now.members, this.#run.since(undo.startedAt))
    for (const key of members.keys) members.take(key, { type: 'settle' })
    ending.leave()
    await closeUndone(this.#run)
    this.#closing = undefined
    undo.resolve(withTicket(report, this.#run.whyTicket))
    await undo.promise
    if (ending.ended !== undefined) return
    const aborted = withTicket(abortedReport(now, this.#before), this.#run.whyTicket)
    ending.say(aborted)
    ending.resolve(aborted)
  }
}

/** The report for `done` of an undone drain: aborted, with the errors of the undo. */
function abortedReport(now: DrainReport, before: readonly MemberReport[] | undefined): DrainReport {
  const members = now.members.map((member, i): MemberReport => {
    const was = before?.[i] ?? member
    const error = member.error ?? was.error
    return {
      ...was,
      outcome: 'aborted',
      held: member.held,
      ...(error === undefined ? {} : { error }),
    }
  })
  return { ...reportAll(members, now.elapsed), outcome: 'aborted' }
}

/** The error if a run that continues from a ticket could not begin. */
function unreachedBy(
  ended: DrainReport | undefined,
  { provider, subject }: RunSpec,
  thrown: unknown,
): { readonly outcome: Outcome; readonly error: DrainableError } {
  const error = ended?.error ?? toDrainableError(thrown, provider.name, subject)
  const outcome = isUnreachable(error) ? 'unreachable' : 'refused'
  return { outcome: ended?.error === undefined ? outcome : ended.outcome, error }
}

function notUndone(ref: MemberRef, id: string, cause: DrainableError): DrainableError {
  const { code, message, retryable } = cause
  const words = `${formatRef(ref)} was left as it is: ${message}; ticket '${id}' is kept, restore() undoes it`
  return new DrainableError(code, words, { ref, cause, retryable })
}
