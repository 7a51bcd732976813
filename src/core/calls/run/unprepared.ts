/** What is said of a run that could not begin. */
import { DrainableError, isUnreachable, toDrainableError } from '../../../provider/error.js'
import { isNobodyThere } from '../../balancer/look/call.js'
import { formatRef } from '../../../provider/member-ref.js'
import { printable } from '../../../provider/quote.js'
import type { DrainReport, MemberReport, Outcome, Why } from '../../../provider/report.js'
import type { MemberRef } from '../../../provider/contract.js'
import { reportAll, unreached, unread } from '../../member/said/report.js'
import type { RunSpec } from './run-spec.js'

/** How long a first look that fails for a reason that can pass is tried again, in milliseconds. */
const RETRY_FOR = 5_000
/** The same if nothing listens: no socket, a refused connection, no such name. */
const NOBODY_FOR = 1_000

/** Whether the balancer is waited for until the deadline. */
export function waitsToTheEnd({ resumed, patient }: RunSpec): boolean {
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

/** What is known of a run that could not begin. */
export interface Unprepared {
  readonly spec: RunSpec
  readonly elapsed: number
  /** Its time has passed. */
  readonly isTooLate: boolean
  /** It was given up before that. */
  readonly isGivenUp: boolean
}

/** The report of a run that could not start: it changed nothing. */
export function unpreparedReport(run: Unprepared, thrown: unknown): DrainReport {
  const { spec, elapsed, isTooLate, isGivenUp } = run
  const { provider, subject, signal } = spec
  if (isGivenUp || signal?.aborted === true) return { outcome: 'aborted', members: [], elapsed }
  const error = toDrainableError(thrown, provider.name, subject)
  if (!isUnreachable(error)) return { outcome: 'refused', members: [], elapsed, error }
  const proceeds = isTooLate && spec.onTimeout === 'proceed' && spec.side === 'drain'
  const outcome = proceeds ? 'proceeded' : 'unreachable'
  const members = neverRead(spec, outcome, elapsed, error)
  return { outcome, members, elapsed, ...(proceeds ? {} : { error }) }
}

/** The rows of a balancer that a drain waited for and that never came. */
function neverRead(
  spec: RunSpec,
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
export function namedBy({ refs, resumed }: RunSpec, isSaid = false): readonly MemberRef[] {
  const named = refs ?? resumed?.members.map(({ ref }) => ref) ?? []
  return named.length === 0 && isSaid ? [{ pool: '*', member: '*' }] : named
}

/** The error of a run whose time passed before it could begin. */
export function tooSlow(
  { provider, subject, resumed, company, side }: RunSpec,
  failure: DrainableError | undefined,
  ticket: Omit<Why, 'ref'> | undefined,
): DrainableError {
  const isAlone = company === undefined && side === 'drain'
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
