import { pause } from '../../provider/clock.js'
import { DrainableError, isDrainableError } from '../../provider/error.js'
import type { DrainReport } from '../../provider/report.js'
import { CALL_LIMIT, isNobodyThere, LAST_LOOK } from './look/call.js'
import { isUnreachable, toDrainableError } from '../../provider/thrown.js'
import type { Contest } from './balancer/contest.js'
import type { Prepared, RunContext, RunSpec } from './run-spec.js'
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
      if (!canPass(error) || clock.now() + wait >= patienceFor(run, error)) throw error
      if (run.unprepared?.code !== error.code) run.fault(error)
      run.unprepared = error
      await pause(clock, wait, context.signal)
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

/** Until when a failure is retried. */
function patienceFor({ spec, startedAt, prepareUntil }: RunState, error: DrainableError): number {
  if (spec.resumed !== undefined || spec.patient === true) return prepareUntil
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
  alarm.set(bound, () => stop.abort(tooSlow(spec)))
}

/** The report of a run that could not start: nothing was changed. */
export function unpreparedReport(run: RunState, thrown: unknown): DrainReport {
  const elapsed = run.since(run.startedAt)
  const { provider, subject, signal } = run.spec
  const givenUp = run.stop.signal.aborted && !isDrainableError(thrown, 'CALL_TIMEOUT')
  if (givenUp || signal?.aborted === true) return { outcome: 'aborted', members: [], elapsed }
  const error = toDrainableError(thrown, provider.name, subject)
  return { outcome: isUnreachable(error) ? 'unreachable' : 'refused', members: [], elapsed, error }
}

/** The error of a run whose time passed before it could begin. */
function tooSlow(spec: RunSpec): DrainableError {
  return new DrainableError(
    'CALL_TIMEOUT',
    `${spec.subject}: the balancer did not complete its answer before the deadline, nothing was changed`,
    { provider: spec.provider.name },
  )
}
