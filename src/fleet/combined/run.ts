import { isoOf, type Clock } from '../../provider/clock.js'
import type { DrainableProvider, MemberRef } from '../../provider/contract.js'
import { DrainableError, isUnreachable, toDrainableError } from '../../provider/error.js'
import type { DrainReport, Why } from '../../provider/report.js'
import type { DrainEvent } from '../../core/events.js'
import { emitOn } from '../../core/balancer/home.js'
import type { HandleBody } from '../../core/calls/handle.js'
import { withTicket, worst } from '../../core/member/said/report.js'
import { Action } from '../../core/calls/run/action.js'
import { unpreparedReport } from '../../core/calls/run/preparation.js'
import type { Run } from '../../core/calls/run/run.js'
import { RunGroup } from '../../core/calls/run/run-group.js'
import type {
  Opening,
  PartHooks,
  Prepared,
  RunContext,
  RunSpec,
} from '../../core/calls/run/run-spec.js'
import type { ResolvedPolicy } from '../../core/calls/policy.js'
import type { Ticket } from '../../core/tickets/ticket.js'
import type { Target } from '../../core/calls/target.js'
import { isLeftOut, whyUnread, type Divided, type FindOptions } from './divide.js'
import { Beginning } from './beginning.js'
import type { Parts } from '../../core/combined.js'
import { checkAs, joinMissing, tagError, tagEvent, tagRef, tagReport, tagWhy } from './tag.js'
import type { SharedTicket } from './ticket.js'

/** What a verb wants run over several balancers. */
export interface CombinedSpec {
  /** An outcome of a drain is one only while every part has one. One that is resumed may hold members already. */
  readonly kind: 'drain' | 'resume' | 'watch'
  readonly provider: DrainableProvider
  readonly parts: Parts
  readonly subject: string
  readonly policy: ResolvedPolicy
  readonly emit: (event: DrainEvent) => void
  readonly target: Target
  /** Whether a balancer that can't be read is waited for. */
  readonly waits: boolean
  /** Which parts it is about, and what each was pointed at. */
  readonly divide: (signal: AbortSignal, away: NonNullable<FindOptions['away']>) => Promise<Divided>
  readonly open: (key: string, provider: DrainableProvider, target: Target, hooks: PartHooks) => Run
  /** The parts' tickets as one; undefined where nothing is changed. */
  readonly ticket: SharedTicket | undefined
  /** The ticket before any part is known. */
  readonly unbegun: Ticket
}

/** One drain or watch over several balancers: a run on each, and one word for all of them. */
export class CombinedRun implements HandleBody {
  readonly done: Promise<DrainReport>
  readonly inForce: Promise<boolean>
  readonly #spec: CombinedSpec
  readonly #clock: Clock
  readonly #startedAt: number
  readonly #runs = new Map<string, Run>()
  readonly #stop = new AbortController()
  readonly #begun: Promise<void>
  #beginning: Beginning | undefined
  #divided: Divided = new Map()
  /** Those that must be read before the target can be divided, and can't be. */
  readonly #away = new Map<string, DrainableError>()
  /** It could not be divided. */
  #refused: DrainReport | undefined
  #ended: DrainReport | undefined

  constructor(spec: CombinedSpec) {
    this.#spec = spec
    this.#clock = spec.policy.clock
    this.#startedAt = this.#clock.now()
    this.#begun = this.#begin()
    this.done = this.#end()
    this.inForce = this.#begun
      .then(() => Promise.all([...this.#runs.values()].map((run) => run.inForce)))
      .then((all) => this.#refused === undefined && all.length > 0 && all.every(Boolean))
  }

  report(): DrainReport {
    return this.#ended ?? this.#joined((run) => run.report())
  }

  why(): readonly Why[] {
    const unread = this.#beginning?.late ?? this.#away
    const said = [...this.#runs].flatMap(([key, run]) =>
      unread.has(key) ? [] : run.why().map((why) => tagWhy(why, key)),
    )
    const late = [...unread].map(([key, error]) => whyUnread(key, this.#divided.get(key), error))
    const ticket = this.#whyTicket
    const ref = (late[0] ?? said[0])?.ref ?? { pool: '*', member: '*' }
    return [...(ticket === undefined ? [] : [{ ...ticket, ref }]), ...late, ...said]
  }

  async ticket(): Promise<Ticket> {
    await this.#begun
    const { late, leftOut } = this.#beginning ?? {}
    const prepared = [...this.#runs].filter(
      ([key]) => late?.has(key) !== true && leftOut?.has(key) !== true,
    )
    await Promise.race([this.done, Promise.all(prepared.map(([, run]) => run.prepared))])
    const { ticket, unbegun } = this.#spec
    const tickets = new Map(prepared.map(([key, run]) => [key, run.ticketNow()]))
    return ticket === undefined || tickets.size === 0 ? unbegun : ticket.join(tickets)
  }

  /** Runs the caller's action while every part is held; its signal fires when one of them is lost. */
  async act<T>(action: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const whole = new Action()
    for (const [key, run] of this.#runs) {
      const signal = run.action.begin()
      const tell = (): void => whole.lose(tagError(signal.reason as DrainableError, key))
      if (signal.aborted) tell()
      else signal.addEventListener('abort', tell, { once: true })
      run.changed(true)
    }
    try {
      return await whole.run(action)
    } finally {
      for (const run of this.#runs.values()) run.action.end()
    }
  }

  async restore(how?: Opening): Promise<DrainReport> {
    this.#stop.abort(new DrainableError('CONFLICT', 'the drain was undone'))
    await this.#begun
    const from = this.#clock.now()
    const reports = await Promise.all(
      [...this.#runs].map(async ([key, run]) =>
        tagReport(await run.restore(how && { ...how, check: checkAs(how.check, key) }), key),
      ),
    )
    const elapsed = this.#since(from)
    if (reports.length === 0) return { outcome: 'restored', members: [], elapsed }
    return withTicket({ ...joinReports(reports), elapsed }, this.#whyTicket)
  }

  notDown(): readonly MemberRef[] {
    return [...this.#runs].flatMap(([key, run]) => run.notDown().map((ref) => tagRef(ref, key)))
  }

  async release(): Promise<void> {
    this.#stop.abort(new DrainableError('CONFLICT', 'the drain was released'))
    await this.#begun
    await Promise.all([...this.#runs.values()].map((run) => run.release()))
  }

  async called(): Promise<void> {
    await Promise.all([...this.#runs.values()].map((run) => run.called()))
  }

  // --- the beginning

  async #begin(): Promise<void> {
    const spec = this.#spec
    const { signal: given } = spec.policy
    try {
      const signals = given === undefined ? [] : [given]
      const signal = AbortSignal.any([this.#stop.signal, ...signals])
      this.#divided = await spec.divide(signal, (key, error) => {
        if (error === null) this.#away.delete(key)
        else this.#away.set(key, error)
      })
    } catch (thrown) {
      this.#refused = this.#refusal(thrown)
      return
    }
    const beginning = new Beginning(this.#divided.keys(), this.#clock, spec.waits)
    this.#beginning = beginning
    const group = spec.kind === 'watch' ? undefined : new RunGroup()
    for (const [key, target] of this.#divided) {
      const provider = spec.parts.all.get(key)
      if (provider === undefined) continue
      const run = spec.open(key, provider, target, {
        emit: (event) => this.#hear(event, key),
        startedAt: this.#startedAt,
        replaced: () => this.#replaced(),
        ...(group === undefined ? {} : { group }),
        around: (prepare) => (context) => this.#prepare(key, provider, context, prepare),
      })
      this.#runs.set(key, run)
      void run.done.then((report) => this.#endedEarly(beginning, key, report))
    }
  }

  /** One that ended before it was prepared must not keep the others waiting. */
  #endedEarly(beginning: Beginning, key: string, { error, members }: DrainReport): void {
    if (beginning.isSettled(key)) return
    const away = error ?? members.find((member) => member.error !== undefined)?.error
    // One that was given up is not left out: nobody has read it, so it belongs to what is not idle.
    if (away === undefined) beginning.isLate(key, new DrainableError('CONFLICT', 'it was given up'))
    else if (this.#spec.waits && isUnreachable(away)) beginning.isLate(key, away)
    else if (beginning.fail(key, away)) this.#giveUp(beginning)
  }

  #refusal(thrown: unknown): DrainReport {
    const { policy, provider, subject, target, waits: patient } = this.#spec
    const { onTimeout } = policy.data
    const said = { provider, subject, signal: policy.signal, onTimeout, patient }
    const spec = { ...said, side: 'drain' as const, refs: namedBy(target) }
    const isGivenUp = this.#stop.signal.aborted
    const elapsed = this.#since(this.#startedAt)
    return unpreparedReport({ spec, elapsed, isTooLate: patient, isGivenUp }, thrown)
  }

  async #prepare(
    key: string,
    provider: DrainableProvider,
    context: RunContext,
    prepare: RunSpec['prepare'],
  ): Promise<Prepared> {
    const { parts, subject, ticket, waits } = this.#spec
    const beginning = this.#beginning
    let prepared: Prepared
    try {
      prepared = await prepare(context)
    } catch (thrown) {
      context.signal.throwIfAborted()
      const error = toDrainableError(thrown, provider.name, subject)
      if (isLeftOut(this.#divided.get(key), parts, error)) {
        beginning?.skip(key, error)
        ticket?.without(key)
      } else if (isUnreachable(error) && error.retryable && waits) beginning?.isLate(key, error)
      throw error // a run that may be tried again is
    }
    ticket?.prepared(key, prepared)
    const before = this.#clock.now()
    await beginning?.prepared(key)
    if (this.#clock.now() === before) return prepared
    // The others took their time: what was seen then is too old to be changed by.
    const { claims, keeper, last } = prepared
    return { claims, keeper, ...(last === undefined ? {} : { last }) }
  }

  /** One has refused: none begins, or the others end as after an abort. */
  #giveUp({ isOpen }: Beginning): void {
    const undoes = isOpen && this.#spec.policy.data.onAbort === 'restore'
    for (const run of this.#runs.values()) void (undoes ? run.restore() : run.release())
  }

  /** Another call goes on with its ticket, on all balancers: what is still prepared here begins no more. */
  #replaced(): void {
    for (const run of this.#runs.values()) if (run.claimedMembers.length === 0) void run.release()
  }

  // --- what is said

  #hear(event: DrainEvent, key: string): void {
    if (event.type === 'end') return // of one part only
    this.#spec.emit(tagEvent(event, key))
  }

  async #end(): Promise<DrainReport> {
    await this.#begun
    const reports = await Promise.all(
      [...this.#runs].map(async ([key, run]) => [key, await run.done] as const),
    )
    const ended = new Map(reports)
    this.#beginning?.end()
    const report = this.#joined((_, key) => ended.get(key))
    this.#ended = report
    const { outcome } = report
    const event: DrainEvent = { type: 'end', at: isoOf(this.#clock), outcome, report }
    this.#spec.emit(event)
    emitOn(this.#spec.provider, event)
    return report
  }

  /** The parts' reports as one; without those that were left out. */
  #joined(reportOf: (run: Run, key: string) => DrainReport | undefined): DrainReport {
    if (this.#refused !== undefined) return this.#refused
    const elapsed = this.#since(this.#startedAt)
    const { failed, isOpen, leftOut } = this.#beginning ?? {}
    if (failed !== undefined && isOpen !== true) {
      const error = tagError(failed.error, failed.key)
      const outcome = isUnreachable(error) ? 'unreachable' : 'refused'
      return { outcome, members: [], elapsed, error: this.#unchanged(error) }
    }
    const asked = [...this.#runs].filter(([key]) => leftOut?.has(key) !== true)
    if (asked.length === 0 && leftOut !== undefined && leftOut.size > 0) {
      const error = joinMissing([...leftOut].map(([key, one]) => tagError(one, key)))
      const outcome = error.code === 'NOT_FOUND' ? 'refused' : 'aborted'
      return { outcome, members: [], elapsed, error }
    }
    const reports = asked.flatMap(([key, run]) => {
      const report = reportOf(run, key)
      return report === undefined ? [] : [tagReport(report, key)]
    })
    const joined = withTicket({ ...joinReports(reports), elapsed }, this.#whyTicket)
    if (failed === undefined) return joined
    return { ...joined, outcome: 'refused', error: tagError(failed.error, failed.key) }
  }

  /** What is said where none began; a roll may have changed other servers, and a watch changes nothing anyhow. */
  #unchanged(error: DrainableError): DrainableError {
    if (this.#spec.kind !== 'drain') return error
    const { code, message, retryable, ref, provider } = error
    return new DrainableError(code, `${message}; this drain changed nothing on any balancer`, {
      cause: error.cause,
      retryable,
      ...(ref === undefined ? {} : { ref }),
      ...(provider === undefined ? {} : { provider }),
    })
  }

  /** What is wrong with its ticket. */
  get #whyTicket(): Omit<Why, 'ref'> | undefined {
    return this.#spec.ticket?.why
  }

  #since(moment: number): number {
    return Math.round(this.#clock.now() - moment)
  }
}

/** The reports of several balancers as one. */
export function joinReports(reports: readonly DrainReport[]): Omit<DrainReport, 'elapsed'> {
  const members = reports.flatMap((report) => report.members)
  const error = reports.find((report) => report.error !== undefined)?.error
  const outcome = worst(reports.map((report) => report.outcome))
  return { outcome, members, ...(error === undefined ? {} : { error }) }
}

/** What a target names; `*` where it names no member. */
function namedBy(target: Target): readonly MemberRef[] {
  const all = Array.isArray(target) ? (target as readonly Partial<MemberRef>[]) : [target]
  return all.map(({ pool = '*', member = '*', balancer }: Partial<MemberRef>) => ({
    pool,
    member,
    ...(balancer === undefined ? {} : { balancer }),
  }))
}
