import { ITS_CALL } from '../../provider/option-schemas.js'
import type { DrainableProvider, MemberRef } from '../../provider/contract.js'
import { DrainableError } from '../../provider/error.js'
import { isPromise } from '../../provider/options.js'
import type { DrainReport } from '../../provider/report.js'
import { combinedOf } from '../combined.js'
import type { DrainEvent } from '../events.js'
import { DrainHandle, EventHub, type Drain, type HandleBody } from './handle.js'
import { toError } from '../member/said/report.js'
import type { Run } from './run/run.js'
import { checkProvider } from './call-options.js'
import { startTelemetry } from '../telemetry.js'
import { newDrainRun } from './drain-run.js'
import { parsePolicy, type Policy, type ResolvedPolicy } from './policy.js'
import { parseTarget, namedRefs, targetWords, type ResolvedTarget, type Target } from './target.js'

/**
 * Starts a drain and returns a handle at once; its `done` always resolves with a report.
 *
 * After idle the handle keeps the hold: it watches the member, and puts the drain back after a reload, until it is
 * released, restored or disposed of. It does not keep the process alive for that.
 *
 * @param provider - the balancer, or several as one ({@link combineProviders})
 * @param target - what to drain: one member, a list, a pool, or an address in all pools
 * @param policy - deadlines, the floor, the action at a timeout
 * @throws `INVALID_OPTIONS` at once; everything else is in the report
 *
 * @example Show what it waits for
 * ```ts
 * import { startDrain, type DrainableProvider } from 'drainable'
 *
 * export async function show(lb: DrainableProvider): Promise<string> {
 *   await using run = startDrain(lb, { pool: 'web', member: 'web1' }, { timeout: '10m', every: '1s' })
 *   for await (const event of run) {
 *     if (event.type === 'load') console.log(event.active, event.queued, event.why[0]?.text)
 *   }
 *   return (await run.done).outcome
 * }
 * ```
 */
export function startDrain(
  provider: DrainableProvider,
  target: Target,
  policy: Policy = {},
): Drain {
  const subject = 'startDrain()'
  checkProvider(provider, subject)
  const parsed = parseTarget(target, subject)
  return openAny(provider, target, parsed, parsePolicy(policy, subject), subject).handle
}

/** A drain in progress. */
export interface Opened<R extends HandleBody = HandleBody> {
  readonly handle: DrainHandle
  readonly run: R
}

/** Begins a drain on one balancer; the target is already checked. */
export function openDrain(
  provider: DrainableProvider,
  target: ResolvedTarget,
  resolved: ResolvedPolicy,
  subject: string,
): Opened<Run> {
  return opened(provider, resolved, targetWords(target), namedRefs(target), (emit) =>
    newDrainRun(provider, target, resolved, subject, emit),
  )
}

/** Begins a drain on one balancer or on several. */
export function openAny(
  provider: DrainableProvider,
  target: Target,
  parsed: ResolvedTarget,
  resolved: ResolvedPolicy,
  subject: string,
): Opened {
  const combined = combinedOf(provider)
  if (combined === undefined) return openDrain(provider, parsed, resolved, subject)
  return opened(provider, resolved, targetWords(parsed), namedRefs(parsed), (emit) =>
    combined.drain(target, resolved, subject, emit),
  )
}

/** A run with its handle. @param words - what it is about */
export function opened<R extends HandleBody>(
  provider: DrainableProvider,
  { onEvent, every }: ResolvedPolicy,
  words: string,
  refs: readonly MemberRef[] | undefined,
  begin: (emit: (event: DrainEvent) => void) => R,
): Opened<R> {
  const hub = new EventHub(onEvent, every, startTelemetry(provider, 'drain', refs))
  const run = begin((event) => hub.emit(event))
  return { handle: new DrainHandle(hub, run, words), run }
}

/** The second argument of a drain's action. */
export interface ActionContext {
  /**
   * Fires when the member is no longer idle as reported: work was seen or the hold can't be put back (`IDLE_LOST`),
   * or another client opened the member (`DRAIN_OVERRULED`). It does not fire if a reload lost the hold, the drain
   * put it back and no work was seen. It also fires with the policy's `signal`, with its reason.
   */
  readonly signal: AbortSignal
}

/** The function that runs while a drain is held. */
export type DrainAction<T> = (report: DrainReport, context: ActionContext) => Promise<T>

/**
 * Drains and waits for the end. Resolves if the outcome is `idle`, `removed`, `terminated` or `proceeded`; otherwise
 * rejects with `signal.reason` on abort, or with a {@link DrainableError} that carries the report.
 *
 * @param provider - the balancer, or several as one ({@link combineProviders})
 * @param target - what to drain: one member, a list, a pool, or an address in all pools
 * @param policy - deadlines, the floor, the action at a timeout
 * @throws `INVALID_OPTIONS`, `UNSUPPORTED`, `NOT_FOUND`, `POOL_AT_MINIMUM`, `UNREACHABLE`, `CALL_TIMEOUT`, `CONNECTION_LOST`, `PROVIDER_FAILED` before anything is changed
 * @throws `DRAIN_TIMEOUT`, `DRAIN_OVERRULED`, `MEMBER_GONE`, `UNREACHABLE`, or the code of the balancer's refusal,
 *   with the report
 *
 * @example
 * ```ts
 * import { drain, isDrainableError, type DrainableProvider } from 'drainable'
 *
 * export async function mayStop(lb: DrainableProvider): Promise<boolean> {
 *   try {
 *     const report = await drain(lb, { address: '10.1.2.3' }, { timeout: '5m', keepReady: 2 })
 *     return report.members.every((member) => member.verifiedIdle)
 *   } catch (error) {
 *     if (!isDrainableError(error, 'DRAIN_TIMEOUT')) throw error
 *     console.error(error.message) // what it still waits for
 *     return false
 *   }
 * }
 * ```
 */
export async function drain(
  provider: DrainableProvider,
  target: Target,
  policy?: Policy,
): Promise<DrainReport>
/**
 * Drains, and keeps the hold, also through reloads, until the action has ended. The action runs only if the outcome
 * is `idle`, `removed`, `terminated` or `proceeded`. The call always waits for the action: if the action rejects with
 * the reason of its signal, the call rejects with it too.
 *
 * An abort by the policy's `signal` reaches the action through its own signal. Once the action has begun, an abort
 * leaves the member drained, even with `onAbort: 'restore'`, because it is not known how far the action came.
 * `ready()` opens it.
 *
 * @param provider - the balancer, or several as one ({@link combineProviders})
 * @param target - what to drain: one member, a list, a pool, or an address in all pools
 * @param policy - deadlines, the floor, the action at a timeout
 * @param action - runs while nothing reaches the server; gets the report, and a signal that fires when the member is
 *   no longer idle
 * @returns the result of the action
 * @throws `IDLE_LOST`, `DRAIN_OVERRULED` if the action gave up because its signal fired
 *
 * @example
 * ```ts
 * import { drain, ready, type DrainableProvider } from 'drainable'
 *
 * export async function deploy(lb: DrainableProvider, install: () => Promise<void>): Promise<void> {
 *   const web1 = { pool: 'web', member: 'web1' }
 *   await drain(lb, web1, { timeout: '2m' }, async (report) => {
 *     console.log(report.members[0]?.proof?.text) // how we know
 *     await install()
 *   })
 *   await ready(lb, web1, { waitHealthy: '60s' })
 * }
 * ```
 */
export async function drain<T>(
  provider: DrainableProvider,
  target: Target,
  policy: Policy,
  action: DrainAction<T>,
): Promise<T>
export async function drain<T>(
  provider: DrainableProvider,
  target: Target,
  policy: Policy = {},
  action?: DrainAction<T>,
): Promise<T | DrainReport> {
  const subject = 'drain()'
  checkProvider(provider, subject)
  const parsed = parseTarget(target, subject)
  if (typeof policy === 'function') {
    throw new DrainableError(
      'INVALID_OPTIONS',
      `${subject}: policy: expected options, found a function; the action comes after them: drain(lb, target, { timeout: '2m' }, action)`,
    )
  }
  const resolved = parsePolicy(policy, subject)
  if (action !== undefined && typeof action !== 'function') {
    const words = isPromise(action)
      ? ITS_CALL
      : `expected a function, found ${describe(action)}; leave it out to wait for the report alone`
    throw new DrainableError('INVALID_OPTIONS', `${subject}: action: ${words}`)
  }
  const { handle, run } = openAny(provider, target, parsed, resolved, subject)
  try {
    const report = await handle.done
    if (report.outcome === 'aborted' && resolved.signal?.aborted === true)
      throw resolved.signal.reason
    const error = toError(report)
    if (error !== undefined) throw error
    if (action === undefined) return report
    if (resolved.signal?.aborted === true) {
      // The caller aborted after the outcome and before the action: nothing is half done.
      if (resolved.data.onAbort === 'restore') await handle.restore()
      throw resolved.signal.reason
    }
    return await actHeld(run, action, report, resolved.signal)
  } finally {
    await run.release() // no call is waited for: a caller that gave up is in a hurry
  }
}

/**
 * Runs the action with one signal for two cases: the hold was lost, or the caller aborted. It is not known how far an
 * aborted action came, so the hold stays whatever `onAbort` says.
 */
async function actHeld<T>(
  run: Pick<HandleBody, 'act'>,
  action: DrainAction<T>,
  report: DrainReport,
  given: AbortSignal | undefined,
): Promise<T> {
  if (given === undefined) return run.act((signal) => action(report, { signal }))
  try {
    return await run.act((lost) => action(report, { signal: AbortSignal.any([lost, given]) }))
  } catch (error) {
    // Many APIs wrap the reason of the signal they were given.
    if (given.aborted && error instanceof Error && error.cause === given.reason) throw given.reason
    throw error
  }
}

function describe(value: unknown): string {
  return value === null ? 'null' : typeof value
}
