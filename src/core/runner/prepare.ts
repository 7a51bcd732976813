import { pause } from '../../provider/clock.js'
import { DrainableError } from '../../provider/error.js'
import type { DrainReport, MemberReport, Outcome } from '../../provider/report.js'
import { CALL_LIMIT, isNobodyThere, LAST_LOOK } from './look/call.js'
import { isUnreachable, toDrainableError } from '../../provider/thrown.js'
import type { Contest } from './balancer/contest.js'
import { unread, unreached } from './report.js'
import type { Prepared, RunContext } from './run-spec.js'
import type { RunState } from './run-state.js'

/** How long a first look that fails for a reason that can pass is tried again, in milliseconds. */
const RETRY_FOR = 5_000
/** The same if nothing listens: no socket, a refused connection, no such name. */
const NOBODY_FOR = 1_000
const RETRY_FIRST = 100
const RETRY_MOST = 1_000

/**
 * Prepares a run, and retries failures that can pass: one lost packet must not end a long drain.
 *
 * @throws `signal.reason`, or the reason why it can't begin; nothing was changed
 */
export async function prepareRun(run: RunState, context: RunContext): Promise<Prepared> {
  const { spec } = run
  const { clock, provider, subject } = spec
  for (let wait = RETRY_FIRST; ; wait = Math.min(RETRY_MOST, wait * 2)) {
    try {
      return await spec.prepare(context)
    } catch (thrown) {
      context.signal.throwIfAborted()
      const error = toDrainableError(thrown, provider.name, subject)
      const left = patienceFor(run, error) - clock.now()
      // One that is waited for to the end is given up by its own alarm.
      if (!canPass(error) || (left <= wait && !waitsToTheEnd(run))) throw error
      if (run.unprepared?.code !== error.code) run.fault(error)
      run.unprepared = error
      await pause(clock, left > 0 ? Math.min(wait, left) : wait, context.signal)
    }
  }
}

/**
 * Whether a failure can pass: network failures, and a balancer's statement about its own state, such as a reload or a
 * failover in progress. Refusals are final, and so is a conflict that we found in a reading, which names no provider.
 */
function canPass(error: DrainableError): boolean {
  const ofBalancer = error.code === 'CONFLICT' && error.provider !== undefined
  return error.retryable && (isUnreachable(error) || ofBalancer)
}

/** Whether the balancer is waited for until the deadline. */
function waitsToTheEnd({ spec }: RunState): boolean {
  return spec.resumed !== undefined || spec.patient
}

/** Until when a failure is retried. */
function patienceFor(run: RunState, error: DrainableError): number {
  const { startedAt, prepareUntil } = run
  if (waitsToTheEnd(run)) return prepareUntil
  return Math.min(prepareUntil, startedAt + (isNobodyThere(error) ? NOBODY_FOR : RETRY_FOR))
}

/** The context that a run passes to its preparation. */
export function contextOf(run: RunState, { membership, floor }: Contest): RunContext {
  const { spec, scheduler, startedAt, stop } = run
  return {
    provider: spec.provider,
    scheduler,
    membership,
    floor,
    startedAt,
    signal: stop.signal,
    limit: () => Math.min(CALL_LIMIT, Math.max(LAST_LOOK, run.prepareUntil - run.now())),
  }
}

/** Stops a preparation that takes too long: the deadline, or the time of an undo, includes the first look. */
export function boundPreparing(run: RunState, until: number): void {
  const { alarm, spec, stop } = run
  run.prepareUntil = until
  if (until === Infinity) return
  const bound = spec.resumed === undefined ? until : Math.max(until, run.startedAt + LAST_LOOK)
  alarm.set(bound, () => {
    run.isTooLate = true
    stop.abort(tooSlow(run))
  })
}

/** The report of a run that could not start: it changed nothing. */
export function unpreparedReport(run: RunState, thrown: unknown): DrainReport {
  const elapsed = run.since(run.startedAt)
  const { provider, subject, signal } = run.spec
  const givenUp = run.stop.signal.aborted && !run.isTooLate
  if (givenUp || signal?.aborted === true) return { outcome: 'aborted', members: [], elapsed }
  const error = toDrainableError(thrown, provider.name, subject)
  if (!isUnreachable(error)) return { outcome: 'refused', members: [], elapsed, error }
  const proceeds = run.isTooLate && run.spec.onTimeout === 'proceed'
  return proceeds && run.spec.side === 'drain'
    ? { outcome: 'proceeded', members: neverRead(run, 'proceeded', error), elapsed }
    : { outcome: 'unreachable', members: neverRead(run, 'unreachable', error), elapsed, error }
}

/** The rows of a balancer that a drain waited for and that never came. */
function neverRead(
  run: RunState,
  outcome: Outcome,
  error: DrainableError,
): readonly MemberReport[] {
  const { resumed, side } = run.spec
  if (side !== 'drain' || !waitsToTheEnd(run)) return []
  const elapsed = run.since(run.startedAt)
  if (resumed !== undefined) return unreached(resumed, { outcome, members: [], elapsed, error })
  const refs = run.named.length > 0 ? run.named : [{ pool: '*', member: '*' }]
  return refs.map((ref) => unread(ref, outcome, elapsed, error))
}

/** The error of a run whose time passed before it could begin. */
function tooSlow({ spec, unprepared, whyTicket }: RunState): DrainableError {
  const { provider, subject, resumed, company, side } = spec
  const isAlone = company === undefined && side === 'drain'
  // On other balancers something may be held, or opened: whoever joins the reports says so.
  const alone = isAlone ? ', this drain changed nothing' : ''
  const left = resumed === undefined ? alone : '; what its ticket holds stays as it was left'
  if (whyTicket !== undefined) {
    const words = `${subject}: ${whyTicket.text}${left}`
    return new DrainableError('TICKET_INVALID', words, { retryable: true })
  }
  const words =
    unprepared === undefined
      ? 'the balancer did not complete its answer before the deadline'
      : `the balancer could not be read before the deadline: ${unprepared.message}`
  return new DrainableError(unprepared?.code ?? 'CALL_TIMEOUT', `${subject}: ${words}${left}`, {
    provider: provider.name,
    ...(unprepared === undefined ? {} : { cause: unprepared }),
  })
}
