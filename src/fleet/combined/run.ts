import { wallOf, type Clock } from '../../provider/clock.js'
import type { DrainableProvider, MemberRef } from '../../provider/contract.js'
import {
  DrainableError,
  isDrainableError,
  isUnreachable,
  toDrainableError,
} from '../../provider/error.js'
import type { DrainReport, Why } from '../../provider/report.js'
import type { DrainEvent } from '../../core/events.js'
import { emitOn } from '../../core/balancer/home.js'
import type { HandleBody } from '../../core/calls/handle.js'
import { unread, withTicket, worst } from '../../core/member/said/report.js'
import type { Run } from '../../core/calls/run/run.js'
import { RunGroup } from '../../core/calls/run/run-group.js'
import type {
  Opening,
  PartHooks,
  Prepared,
  RunContext,
  RunSpec,
} from '../../core/calls/run/run-spec.js'
import type { PolicyData, Ticket } from '../../core/tickets/ticket.js'
import type { Target } from '../../core/calls/target.js'
import { isLeftOut, whyUnread, type Divided, type FindOptions } from './divide.js'
import { Beginning } from './beginning.js'
import type { Parts } from '../../core/combined.js'
import { joinMissing, tagError, tagEvent, tagRef, tagReport, tagWhy } from './tag.js'

/** What a verb wants run over several balancers. */
export interface CombinedSpec {
  readonly provider: DrainableProvider
  readonly parts: Parts
  readonly subject: string
  readonly clock: Clock
  /** The caller's. */
  readonly signal: AbortSignal | undefined
  readonly emit: (event: DrainEvent) => void
  /** Whether an outcome is one only while every part has one. */
  readonly together: boolean
  readonly target: Target
  /** Whether a balancer that can't be read is waited for. */
  readonly waits: boolean
  readonly onTimeout: PolicyData['onTimeout']
  /** Whether it goes on from a ticket, which may hold members. */
  readonly isResumed: boolean
  /** What becomes of the others where one refuses after they began. */
  readonly onAbort: 'leave' | 'restore'
  /** Which parts it is about, and what each was pointed at. */
  readonly divide: (signal: AbortSignal, away: NonNullable<FindOptions['away']>) => Promise<Divided>
  readonly open: (key: string, provider: DrainableProvider, target: Target, hooks: PartHooks) => Run
  /** What is known of a part before anything is changed. */
  readonly seed: (key: string, prepared: Prepared) => void
  /** A part has nothing to do. */
  readonly without: (key: string) => void
  /** The parts' tickets as one. */
  readonly join: (tickets: ReadonlyMap<string, Ticket>) => Ticket
  /** What is wrong with that ticket. */
  readonly whyTicket: () => Omit<Why, 'ref'> | undefined
}

/** One drain or watch over several balancers: a run on each, and one word for all of them. */
export class CombinedRun implements HandleBody {
  readonly done: Promise<DrainReport>
  readonly inForce: Promise<boolean>
  readonly #spec: CombinedSpec
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
    this.#startedAt = spec.clock.now()
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
    const ticket = this.#spec.whyTicket()
    const ref = (late[0] ?? said[0])?.ref ?? { pool: '*', member: '*' }
    return [...(ticket === undefined ? [] : [{ ...ticket, ref }]), ...late, ...said]
  }

  async ticket(): Promise<Ticket> {
    await this.#begun
    const { late, skipped } = this.#beginning ?? {}
    const prepared = [...this.#runs].filter(
      ([key]) => late?.has(key) !== true && skipped?.has(key) !== true,
    )
    await Promise.race([this.done, Promise.all(prepared.map(([, run]) => run.prepared))])
    const tickets = prepared.map(([key, run]) => [key, run.ticketNow()] as const)
    return this.#spec.join(new Map(tickets))
  }

  /** Runs the caller's action while every part is held; its signal fires when one of them is lost. */
  async act<T>(action: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const stop = new AbortController()
    const lost = new Map<unknown, DrainableError>()
    const listen = (key: string, signal: AbortSignal): void => {
      const tell = (): void => {
        const { reason } = signal as { reason: unknown }
        const error = isDrainableError(reason) ? tagError(reason, key) : reason
        if (isDrainableError(error)) lost.set(reason, error)
        stop.abort(error)
      }
      if (signal.aborted) tell()
      else signal.addEventListener('abort', tell, { once: true })
    }
    const whole = [...this.#runs].reduce<() => Promise<T>>(
      (inner, [key, run]) =>
        () =>
          run.act((signal) => {
            listen(key, signal)
            return inner()
          }),
      () => action(stop.signal),
    )
    try {
      return await whole()
    } catch (error) {
      throw lost.get(error) ?? error
    }
  }

  async restore(how?: Opening): Promise<DrainReport> {
    this.#stop.abort(new DrainableError('CONFLICT', 'the drain was undone'))
    await this.#begun
    const from = this.#spec.clock.now()
    const reports = await Promise.all(
      [...this.#runs].map(async ([key, run]) =>
        tagReport(await run.restore(openingOn(key, how)), key),
      ),
    )
    const elapsed = Math.round(this.#spec.clock.now() - from)
    if (reports.length === 0) return { outcome: 'restored', members: [], elapsed }
    return withTicket({ ...joinReports(reports), elapsed }, this.#spec.whyTicket())
  }

  open(): readonly MemberRef[] {
    return [...this.#runs].flatMap(([key, run]) => run.open().map((ref) => tagRef(ref, key)))
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
    try {
      const signals = spec.signal === undefined ? [] : [spec.signal]
      const signal = AbortSignal.any([this.#stop.signal, ...signals])
      this.#divided = await spec.divide(signal, (key, error) => {
        if (error === null) this.#away.delete(key)
        else this.#away.set(key, error)
      })
    } catch (thrown) {
      this.#refused = this.#refusal(thrown)
      return
    }
    const beginning = new Beginning(this.#divided.keys(), {
      clock: spec.clock,
      waits: spec.waits,
      refused: () => this.#standDown(),
      refusedLate: () => this.#giveUp(),
    })
    this.#beginning = beginning
    const group = spec.together ? new RunGroup() : undefined
    for (const [key, target] of this.#divided) {
      const provider = spec.parts.all.get(key)
      if (provider === undefined) continue
      const run = spec.open(key, provider, target, {
        emit: (event) => this.#hear(event, key),
        startedAt: this.#startedAt,
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
    if (away === undefined) beginning.skip(key, new DrainableError('CONFLICT', 'it was given up'))
    else if (this.#spec.waits && isUnreachable(away)) beginning.isLate(key, away)
    else beginning.fail(key, away)
  }

  #refusal(thrown: unknown): DrainReport {
    const { signal, provider, subject, target, waits, onTimeout } = this.#spec
    const elapsed = Math.round(this.#spec.clock.now() - this.#startedAt)
    if (signal?.aborted === true || this.#stop.signal.aborted)
      return { outcome: 'aborted', members: [], elapsed }
    const error = toDrainableError(thrown, provider.name, subject)
    if (!isUnreachable(error)) return { outcome: 'refused', members: [], elapsed, error }
    if (!waits) return { outcome: 'unreachable', members: [], elapsed, error }
    const outcome = onTimeout === 'proceed' ? 'proceeded' : 'unreachable'
    const members = namedBy(target).map((ref) => unread(ref, outcome, elapsed, error))
    return { outcome, members, elapsed, ...(onTimeout === 'proceed' ? {} : { error }) }
  }

  async #prepare(
    key: string,
    provider: DrainableProvider,
    context: RunContext,
    prepare: RunSpec['prepare'],
  ): Promise<Prepared> {
    const { parts, subject, clock } = this.#spec
    const beginning = this.#beginning
    let prepared: Prepared
    try {
      prepared = await prepare(context)
    } catch (thrown) {
      context.signal.throwIfAborted()
      const error = toDrainableError(thrown, provider.name, subject)
      if (isLeftOut(this.#divided.get(key), parts, error)) {
        beginning?.skip(key, error)
        this.#spec.without(key)
      } else if (isUnreachable(error) && error.retryable && this.#spec.waits)
        beginning?.isLate(key, error)
      throw error // a run that may be tried again is
    }
    this.#spec.seed(key, prepared)
    const before = clock.now()
    await beginning?.arrive(key)
    if (clock.now() === before) return prepared
    // The others took their time: what was seen then is too old to be changed by.
    const { claims, keeper, last } = prepared
    return { claims, keeper, ...(last === undefined ? {} : { last }) }
  }

  /** One has refused: none begins. */
  #standDown(): void {
    for (const run of this.#runs.values()) void run.release()
  }

  /** One has refused after the others began: they end as after an abort. */
  #giveUp(): void {
    const { onAbort } = this.#spec
    for (const run of this.#runs.values())
      void (onAbort === 'restore' ? run.restore() : run.release())
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
    const at = new Date(wallOf(this.#spec.clock)).toISOString()
    const event: DrainEvent = { type: 'end', at, outcome: report.outcome, report }
    this.#spec.emit(event)
    emitOn(this.#spec.provider, event)
    return report
  }

  /** The parts' reports as one; without those that were left out. */
  #joined(reportOf: (run: Run, key: string) => DrainReport | undefined): DrainReport {
    if (this.#refused !== undefined) return this.#refused
    const elapsed = Math.round(this.#spec.clock.now() - this.#startedAt)
    const { failed, isOpen } = this.#beginning ?? {}
    if (failed !== undefined && isOpen !== true) {
      const error = tagError(failed.error, failed.key)
      const outcome = isUnreachable(error) ? 'unreachable' : 'refused'
      return { outcome, members: [], elapsed, error: this.#unchanged(error) }
    }
    const skipped = this.#beginning?.skipped
    const asked = [...this.#runs].filter(([key]) => skipped?.has(key) !== true)
    if (asked.length === 0 && skipped !== undefined && skipped.size > 0) {
      const error = joinMissing([...skipped].map(([key, one]) => tagError(one, key)))
      const outcome = error.code === 'NOT_FOUND' ? 'refused' : 'aborted'
      return { outcome, members: [], elapsed, error }
    }
    const reports = asked.flatMap(([key, run]) => {
      const report = reportOf(run, key)
      return report === undefined ? [] : [tagReport(report, key)]
    })
    const joined = withTicket({ ...joinReports(reports), elapsed }, this.#spec.whyTicket())
    if (failed === undefined) return joined
    return { ...joined, outcome: 'refused', error: tagError(failed.error, failed.key) }
  }

  /** What is said where none began; a roll may have changed other servers, and a watch changes nothing anyhow. */
  #unchanged(error: DrainableError): DrainableError {
    const { isResumed, together } = this.#spec
    if (isResumed || !together) return error
    const { code, message, retryable, ref, provider } = error
    return new DrainableError(code, `${message}; this drain changed nothing on any balancer`, {
      cause: error.cause,
      retryable,
      ...(ref === undefined ? {} : { ref }),
      ...(provider === undefined ? {} : { provider }),
    })
  }
}

/** The caller's own check knows a member by its balancer. */
function openingOn(key: string, how: Opening | undefined): Opening | undefined {
  if (how?.check === undefined) return how
  const { check } = how
  return { ...how, check: (ref, signal) => check(tagRef(ref, key), signal) }
}

function joinReports(reports: readonly DrainReport[]): Omit<DrainReport, 'elapsed'> {
  const members = reports.flatMap((report) => report.members)
  const error = reports.find((report) => report.error !== undefined)?.error
  const outcome = worst(reports.map((report) => report.outcome))
  return { outcome, members, ...(error === undefined ? {} : { error }) }
}

/** What a target names; `*` where it names no member. */
function namedBy(target: Target): readonly MemberRef[] {
  const all = Array.isArray(target) ? (target as readonly Partial<MemberRef>[]) : [target]
  return all.map(({ pool = '*', member = '*' }: Partial<MemberRef>) => ({ pool, member }))
}
