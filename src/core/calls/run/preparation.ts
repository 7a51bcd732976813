import { abortable } from '../../../provider/abort.js'
import { pause } from '../../../provider/clock.js'
import { DrainableError, isUnreachable, toDrainableError } from '../../../provider/error.js'
import type { DrainReport, MemberReport, Outcome, Why } from '../../../provider/report.js'
import type { Balancer } from '../../balancer/balancer.js'
import { CALL_LIMIT, isNobodyThere, LAST_LOOK } from '../../balancer/look/call.js'
import type { Scheduler } from '../../balancer/look/scheduler.js'
import type { Alarm } from '../../balancer/look/timer.js'
import type { Prepared, RunContext, RunSpec } from './run-spec.js'
import { formatRef } from '../../../provider/member-ref.js'
import { printable } from '../../../provider/quote.js'
import type { MemberRef } from '../../../provider/contract.js'
import { reportAll, unreached, unread } from '../../member/said/report.js'

const RETRY_FIRST = 100
const RETRY_MOST = 1_000

/** What the beginning of a call is about. */
interface Beginning {
  readonly spec: RunSpec
  readonly startedAt: number
  readonly balancer: Balancer
  readonly scheduler: Scheduler
  readonly alarm: Alarm
  /** Of the call: it is given up, or its time has passed. */
  readonly stop: AbortController
  /** Tells of a failure that is tried again. */
  readonly fault: (error: DrainableError) => void
  /** What is wrong with its ticket. */
  readonly whyTicket: () => Omit<Why, 'ref'> | undefined
}

/** How a call begins: describe and first look, tried again for as long as a failure can pass. Nothing is changed yet. */
export class Preparation {
  readonly #of: Beginning
  #until: number
  #isTooLate = false
  /** The error of the last try. */
  #failure: DrainableError | undefined

  constructor(beginning: Beginning) {
    const { spec, startedAt } = beginning
    this.#of = beginning
    this.#until = spec.timeout === null ? Infinity : startedAt + spec.timeout
  }

  /** @throws what the last try threw, or why the call was stopped */
  async run(): Promise<Prepared> {
    this.bound(this.#until)
    try {
      return await abortable(this.#try(), this.#of.stop.signal)
    } finally {
      this.#of.alarm.clear()
    }
  }

  /** Stops it if it takes too long: the deadline, or the time of an undo, includes the first look. */
  bound(until: number): void {
    const { spec, startedAt, alarm, stop, whyTicket } = this.#of
    this.#until = until
    if (until === Infinity) return
    const bound = spec.resumed === undefined ? until : Math.max(until, startedAt + LAST_LOOK)
    alarm.set(bound, () => {
      this.#isTooLate = true
      stop.abort(tooSlow(spec, this.#failure, whyTicket()))
    })
  }

  /** Retries failures that can pass: one lost packet must not end a long drain. */
  async #try(): Promise<Prepared> {
    const { spec, balancer, scheduler, startedAt, stop, fault } = this.#of
    const { clock, provider, subject } = spec
    const { signal } = stop
    const limit = (): number => {
      const left = this.#until - clock.now()
      return Math.min(CALL_LIMIT, Math.max(LAST_LOOK, left))
    }
    const context: RunContext = { provider, balancer, scheduler, startedAt, signal, limit }
    for (let wait = RETRY_FIRST; ; wait = Math.min(RETRY_MOST, wait * 2)) {
      try {
        return await spec.prepare(context)
      } catch (thrown) {
        signal.throwIfAborted()
        const error = toDrainableError(thrown, provider.name, subject)
        const left = patienceFor(spec, error, { startedAt, until: this.#until }) - clock.now()
        // One that is waited for to the end is given up by its own alarm.
        if (!canPass(error) || (left <= wait && !waitsToTheEnd(spec))) throw error
        if (this.#failure?.code !== error.code) fault(error)
        this.#failure = error
        await pause(clock, left > 0 ? Math.min(wait, left) : wait, signal)
      }
    }
  }

  /** The report of a call that could not begin. */
  report(thrown: unknown, elapsed: number): DrainReport {
    const { spec, stop } = this.#of
    const isGivenUp = stop.signal.aborted && !this.#isTooLate
    return unpreparedReport({ spec, elapsed, isTooLate: this.#isTooLate, isGivenUp }, thrown)
  }

  /** What it waits for. */
  why(): readonly Why[] {
    return this.#failure === undefined ? [] : whyUnprepared(this.#of.spec, this.#failure)
  }
}

// --- what is said of a run that could not begin

/** How long a first look that fails for a reason that can pass is tried again, in milliseconds. */
const RETRY_FOR = 5_000
/** The same if nothing listens: no socket, a refused connection, no such name. */
const NOBODY_FOR = 1_000

/** Whether the balancer is waited for until the deadline. */
export function waitsToTheEnd({ resumed, patient }: Pick<RunSpec, 'resumed' | 'patient'>): boolean {
  return resumed !== undefined || patient
}

/**
 * Whether a failure can pass: network failures, and a balancer's statement about its own state, such as a reload or a
 * failover in progress. Refusals are final, and so is a conflict that we found in a reading, which names no provider.
 */
export function canPass(error: DrainableError): boolean {
  const isOfBalancer = error.code === 'CONFLICT' && error.provider !== undefined
  return error.retryable && (isUnreachable(error) || isOfBalancer)
}

/** Until when a failure is retried. */
export function patienceFor(
  spec: RunSpec,
  error: DrainableError,
  { startedAt, until }: { readonly startedAt: number; readonly until: number },
): number {
  if (waitsToTheEnd(spec) || error.retryAfter !== undefined) return until
  return Math.min(until, startedAt + (isNobodyThere(error) ? NOBODY_FOR : RETRY_FOR))
}

/** What a call is about that could not begin. */
type Unbegun = Pick<
  RunSpec,
  'provider' | 'subject' | 'signal' | 'side' | 'onTimeout' | 'patient' | 'refs' | 'resumed'
>

/** What is known of a call that could not begin. */
export interface Unprepared {
  readonly spec: Unbegun
  readonly elapsed: number
  /** Its time has passed. */
  readonly isTooLate: boolean
  /** It was given up before that. */
  readonly isGivenUp: boolean
}

/** The report of a call that could not begin: it changed nothing. */
export function unpreparedReport(run: Unprepared, thrown: unknown): DrainReport {
  const { spec, elapsed, isTooLate, isGivenUp } = run
  const { provider, subject, signal } = spec
  if (isGivenUp || signal?.aborted === true) return { outcome: 'aborted', members: [], elapsed }
  const error = toDrainableError(thrown, provider.name, subject)
  if (!isUnreachable(error)) return { outcome: 'refused', members: [], elapsed, error }
  // One that is not waited for is refused, however long its first look took: nothing was done that could go on.
  const isDrain = spec.side === 'drain' && spec.onTimeout === 'proceed'
  const proceeds = isTooLate && isDrain && waitsToTheEnd(spec)
  const outcome = proceeds ? 'proceeded' : 'unreachable'
  const members = neverRead(spec, outcome, elapsed, error)
  return { outcome, members, elapsed, ...(proceeds ? {} : { error }) }
}

/** The rows of a balancer that a drain waited for and that never came. */
function neverRead(
  spec: Unbegun,
  outcome: Outcome,
  elapsed: number,
  error: DrainableError,
): readonly MemberReport[] {
  if (spec.side !== 'drain' || !waitsToTheEnd(spec)) return []
  if (spec.resumed !== undefined)
    return unreached(spec.resumed, { outcome, members: [], elapsed, error })
  return namedBy(spec, true).map((ref) => unread(ref, outcome, elapsed, error))
}

/** The named members; further ones can still be found. `isSaid`: at least one row. */
export function namedBy(
  { refs, resumed }: Pick<RunSpec, 'refs' | 'resumed'>,
  isSaid = false,
): readonly MemberRef[] {
  const named = refs ?? resumed?.members.map(({ ref }) => ref) ?? []
  return named.length === 0 && isSaid ? [{ pool: '*', member: '*' }] : named
}

/** The error of a run whose ticket another call of this process writes from now on. */
export function goneOnWith(spec: Pick<RunSpec, 'refs' | 'resumed'>, id: string): DrainableError {
  const [ref] = namedBy(spec, true)
  const words = `${ref === undefined ? '' : `${formatRef(ref)} `}another call of this process goes on with ticket '${id}'`
  return new DrainableError('DRAIN_OVERRULED', words, ref === undefined ? {} : { ref })
}

/** The error of a run whose time passed before it could begin. */
export function tooSlow(
  { provider, subject, resumed, group, side }: RunSpec,
  failure: DrainableError | undefined,
  ticket: Omit<Why, 'ref'> | undefined,
): DrainableError {
  const isAlone = group === undefined && side === 'drain'
  // On other balancers something may be held, or opened: whoever joins the reports says so.
  const alone = isAlone ? ', this drain changed nothing' : ''
  const left = resumed === undefined ? alone : '; what its ticket holds stays as it was left'
  if (ticket !== undefined) {
    const words = `${subject}: ${ticket.text}${left}`
    return new DrainableError('TICKET_INVALID', words, { retryable: true })
  }
  const words =
    failure === undefined
      ? 'the balancer did not complete its answer before the deadline'
      : `the balancer could not be read before the deadline: ${failure.message}`
  return new DrainableError(failure?.code ?? 'CALL_TIMEOUT', `${subject}: ${words}${left}`, {
    provider: provider.name,
    ...(failure === undefined ? {} : { cause: failure }),
  })
}

/** The report of an undo whose run could not begin: what its ticket holds could not be undone, and the ticket stays. */
export function notUndone(
  spec: RunSpec & { readonly resumed: NonNullable<RunSpec['resumed']> },
  ended: DrainReport | undefined,
  thrown: unknown,
  elapsed: number,
): DrainReport {
  const { provider, subject, resumed } = spec
  const error = ended?.error ?? toDrainableError(thrown, provider.name, subject)
  const { code, message, retryable } = error
  const byError = isUnreachable(error) ? 'unreachable' : 'refused'
  const outcome = ended?.error === undefined ? byError : ended.outcome
  const members = unreached(resumed, { outcome, members: [], elapsed }).map((member) => {
    const { ref } = member
    const words = `${formatRef(ref)} was left as it is: ${message}; ticket '${resumed.id}' is kept, restore() undoes it`
    return { ...member, error: new DrainableError(code, words, { ref, cause: error, retryable }) }
  })
  return reportAll(members, elapsed)
}

/** What a run waits for whose balancer can't be read yet. */
export function whyUnprepared(spec: RunSpec, failure: DrainableError): readonly Why[] {
  const changed = spec.resumed === undefined ? '; nothing was changed yet' : ''
  const text = `the balancer can't be read: ${printable(failure.message)}${changed}`
  const hint = 'the read is retried; members in a ticket stay held as they were left'
  return namedBy(spec, true).map((ref) => ({ code: 'unreadable', ref, text, hint }))
}
