import { pause } from '../../provider/clock.js'
import { DrainableError, isDrainableError } from '../../provider/error.js'
import type { DrainReport } from '../../provider/report.js'
import { CALL_LIMIT, isNobodyThere, LAST_LOOK, toDrainableError } from './call.js'
import type { Contest } from './contest.js'
import type { Prepared, RunContext, RunSpec } from './run-spec.js'
import type { RunState } from './run-state.js'
import { Alarm } from './timer.js'

/** How long a first look that fails is tried again, in milliseconds. */
const RETRY_FOR = 5_000
/** The same where nothing listens: no socket, a refused connection, no such name. */
const NOBODY_FOR = 1_000
const RETRY_FIRST = 100
const RETRY_MOST = 1_000

/**
 * Prepares a run, and tries again where what failed can succeed later: the deadline of a long drain
 * must not hang on one lost packet.
 *
 * @throws `signal.reason`, or why it can't begin; nothing was changed
 */
export async function prepareRun(spec: RunSpec, context: RunContext): Promise<Prepared> {
  const { clock, provider, subject } = spec
  for (let wait = RETRY_FIRST; ; wait = Math.min(RETRY_MOST, wait * 2)) {
    try {
      return await spec.prepare(context)
    } catch (thrown) {
      context.signal.throwIfAborted()
      const error = toDrainableError(thrown, provider.name, subject)
      const spent = clock.now() - context.startedAt
      if (!isNetwork(error) || spent + wait > patienceFor(spec, error)) throw error
      await pause(clock, wait, context.signal)
    }
  }
}

/** Only what the network did is tried again: what the caller or the balancer refused stays refused. */
function isNetwork(error: DrainableError): boolean {
  return (
    error.retryable && isDrainableError(error, 'UNREACHABLE', 'CALL_TIMEOUT', 'CONNECTION_LOST')
  )
}

function patienceFor(spec: RunSpec, error: DrainableError): number {
  const bound = spec.timeout ?? Infinity
  if (spec.resumed) return bound
  return Math.min(bound, isNobodyThere(error) ? NOBODY_FOR : RETRY_FOR)
}

/** What a run hands to its preparation. */
export function contextOf(run: RunState, { membership, floor }: Contest): RunContext {
  const { spec, scheduler, startedAt, stop } = run
  const until = spec.timeout === null ? Infinity : startedAt + spec.timeout
  return {
    provider: spec.provider,
    scheduler,
    membership,
    floor,
    startedAt,
    signal: stop.signal,
    limit: () => Math.min(CALL_LIMIT, Math.max(LAST_LOOK, until - run.now())),
  }
}

/**
 * Stops a preparation that takes too long: the deadline bounds the first look too.
 *
 * @returns takes the bound away again
 */
export function boundPreparing(run: RunState): () => void {
  const { timeout, resumed, clock } = run.spec
  if (timeout === null) return () => undefined
  const bound = resumed ? Math.max(timeout, LAST_LOOK) : timeout
  const alarm = new Alarm(clock)
  alarm.set(run.startedAt + bound, () => run.stop.abort(tooSlow(run.spec)))
  return () => alarm.clear()
}

/** How a run ends that could not start: nothing was changed. */
export function unpreparedReport(run: RunState, thrown: unknown): DrainReport {
  const elapsed = run.since(run.startedAt)
  const { provider, subject, signal } = run.spec
  const givenUp = run.stop.signal.aborted && !isDrainableError(thrown, 'CALL_TIMEOUT')
  if (givenUp || signal?.aborted === true) return { outcome: 'aborted', members: [], elapsed }
  const error = toDrainableError(thrown, provider.name, subject)
  const unreachable = isDrainableError(error, 'UNREACHABLE', 'CALL_TIMEOUT', 'CONNECTION_LOST')
  return { outcome: unreachable ? 'unreachable' : 'refused', members: [], elapsed, error }
}

/** Why a run whose time passed before it could begin has ended. */
function tooSlow(spec: RunSpec): DrainableError {
  return new DrainableError(
    'CALL_TIMEOUT',
    `${spec.subject}: the balancer gave no whole answer before the deadline, nothing was changed`,
    { provider: spec.provider.name },
  )
}
