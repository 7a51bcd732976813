import type { DrainableProvider } from '../../provider/contract.js'
import { DrainableError } from '../../provider/error.js'
import type { DrainReport } from '../../provider/report.js'
import { drainCombined } from '../combined/drain.js'
import { partsOf } from '../combined/parts.js'
import type { CombinedRun } from '../combined/run.js'
import type { DrainEvent } from '../events.js'
import { DrainHandle, EventHub, type Drain } from '../runner/handle.js'
import { toError } from '../runner/report.js'
import type { Run } from '../runner/run.js'
import { checkProvider } from './call.js'
import { newDrainRun } from './drain-run.js'
import { parsePolicy, type Policy, type ResolvedPolicy } from './policy.js'
import { parseTarget, type ResolvedTarget, type Target } from './target.js'

/**
 * Starts to drain and gives a handle at once; its `done` always resolves with a report.
 *
 * After idle the handle goes on holding: it watches, and puts the drain back after a reload, until
 * it is released, restored or disposed of. It does not keep the process alive for that.
 *
 * @throws `INVALID_OPTIONS` at once; everything else is in the report
 */
export function startDrain(p: DrainableProvider, target: Target, policy: Policy = {}): Drain {
  const subject = 'startDrain()'
  const provider = checkProvider(p, subject)
  const parsed = parseTarget(target, subject)
  return openAny(provider, target, parsed, parsePolicy(policy, subject), subject).handle
}

/** A drain under way. */
export interface Opened<R> {
  readonly handle: DrainHandle
  readonly run: R
}

/** Begins a drain on one balancer, of a target that is checked already. */
export function openDrain(
  provider: DrainableProvider,
  target: ResolvedTarget,
  resolved: ResolvedPolicy,
  subject: string,
): Opened<Run> {
  const hub = new EventHub(resolved.onEvent, resolved.every)
  const run = newDrainRun(provider, target, resolved, subject, (event) => hub.emit(event))
  return { handle: new DrainHandle(hub, run), run }
}

/** The same on one balancer or on several. */
export function openAny(
  provider: DrainableProvider,
  target: Target,
  parsed: ResolvedTarget,
  resolved: ResolvedPolicy,
  subject: string,
): Opened<Run | CombinedRun> {
  const parts = partsOf(provider)
  if (parts === undefined) return openDrain(provider, parsed, resolved, subject)
  const hub = new EventHub(resolved.onEvent, resolved.every)
  const hear = (event: DrainEvent): void => hub.emit(event)
  const run = drainCombined(provider, parts, target, resolved, subject, hear)
  return { handle: new DrainHandle(hub, run), run }
}

/** What the action of a drain is given. */
export interface ActionContext {
  /**
   * Fires when the idle that was said does not hold any more: work was seen, or the hold can't be put
   * back (`IDLE_LOST`), or somebody opened the member (`DRAIN_OVERRULED`). Not for a hold that a reload
   * forgot and that was put back with nothing seen.
   */
  readonly signal: AbortSignal
}

/** What to do while a drain is held. */
export type DrainAction<T> = (report: DrainReport, context: ActionContext) => Promise<T>

/**
 * Drains and waits. Resolves where the outcome is `idle`, `removed`, `terminated` or `proceeded`;
 * rejects with `signal.reason` on abort, and else with a {@link DrainableError} that carries the
 * report.
 *
 * @throws `INVALID_OPTIONS`, `UNSUPPORTED`, `NOT_FOUND`, `POOL_AT_MINIMUM`, `UNREACHABLE`, `CALL_TIMEOUT`, `CONNECTION_LOST`, `PROVIDER_FAILED` before anything is changed
 * @throws `DRAIN_TIMEOUT`, `DRAIN_OVERRULED`, `MEMBER_GONE`, `UNREACHABLE`, or the balancer's own code where it refused, with the report
 */
export async function drain(
  p: DrainableProvider,
  target: Target,
  policy?: Policy,
): Promise<DrainReport>
/**
 * Drains, and holds the drain, through reloads too, until the action has ended. The action runs only
 * where the outcome is `idle`, `removed`, `terminated` or `proceeded`. It is waited for in any case:
 * one that rejects with the reason of its signal makes this call reject with it.
 *
 * @throws `IDLE_LOST`, `DRAIN_OVERRULED` where the action gave up because its signal fired
 */
export async function drain<T>(
  p: DrainableProvider,
  target: Target,
  policy: Policy,
  action: DrainAction<T>,
): Promise<T>
export async function drain<T>(
  p: DrainableProvider,
  target: Target,
  policy: Policy = {},
  action?: DrainAction<T>,
): Promise<T | DrainReport> {
  const subject = 'drain()'
  const provider = checkProvider(p, subject)
  const parsed = parseTarget(target, subject)
  const resolved = parsePolicy(policy, subject)
  if (action !== undefined && typeof action !== 'function') {
    throw new DrainableError(
      'INVALID_OPTIONS',
      `${subject}: action: expected a function, found ${describe(action)}; leave it out to wait for the report alone`,
    )
  }
  const { handle, run } = openAny(provider, target, parsed, resolved, subject)
  try {
    const report = await handle.done
    if (report.outcome === 'aborted' && resolved.signal?.aborted === true)
      throw resolved.signal.reason
    const error = toError(report)
    if (error !== undefined) throw error
    if (action === undefined) return report
    return await run.act((signal) => action(report, { signal }))
  } finally {
    await run.release() // no call is waited for: whoever gave up is in a hurry
  }
}

function describe(value: unknown): string {
  return value === null ? 'null' : typeof value
}
