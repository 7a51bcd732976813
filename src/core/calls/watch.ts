import * as z from 'zod/mini'
import { isDrainableError } from '../../provider/error.js'
import type { DrainableProvider, Reading } from '../../provider/contract.js'
import { systemClock } from '../../provider/clock.js'
import { once, parseOptions } from '../../provider/options.js'
import { combinedOf } from '../combined.js'
import type { DrainEvent } from '../events.js'
import { CALL_LIMIT } from '../balancer/look/call.js'
import { DrainHandle, EventHub, type Drain } from './handle.js'
import { Run } from './run/run.js'
import type { PartHooks, RunSpec } from './run/run-spec.js'
import { schedulerOf } from '../balancer/look/scheduler.js'
import { callSchema, callShape, checkProvider } from './call-options.js'
import { startTelemetry } from '../telemetry.js'
import { durationOption } from '../../provider/option-schemas.js'
import { claimsOn, firstLook } from './prepare-drain.js'
import { everyShape, paceShape, parsePolicy, type Policy, type ResolvedPolicy } from './policy.js'
import { baseSpec, newKeeper } from './drain-run.js'
import { parseTarget, namedRefs, targetWords, type ResolvedTarget, type Target } from './target.js'
import { watchPolicy } from './watch-policy.js'

/** Options of {@link watch}. */
export type WatchOptions = Pick<
  Policy,
  'signal' | 'clock' | 'onEvent' | 'every' | 'pace' | 'settle' | 'onUnreachable'
>

const watchSchema = /* @__PURE__ */ once(() =>
  z.strictObject({
    ...callShape(),
    ...everyShape(),
    ...paceShape(),
    settle: z.exactOptional(durationOption()),
    onUnreachable: z._default(z.enum(['wait', 'fail']), 'fail'),
  }),
)

/**
 * Watches drains begun by any client, without changing anything: `load`, `phase`, `idle`, `idle-lost`. Goes on until
 * it is closed, aborted, or every member is gone.
 *
 * @param provider - the balancer, or several as one ({@link combineProviders})
 * @param target - what to watch: one member, a list, a pool, or an address in all pools
 * @param options - how often load is reported, and how long nothing must arrive before idle is reported
 * @throws `INVALID_OPTIONS` at once; everything else is in the report
 *
 * @example
 * ```ts
 * import { watch, type DrainableProvider } from 'drainable'
 *
 * export async function follow(lb: DrainableProvider, signal: AbortSignal): Promise<void> {
 *   await using view = watch(lb, { pool: 'web' }, { signal, every: '1s' })
 *   for await (const event of view) {
 *     if (event.type === 'phase') console.log(event.ref.member, event.to)
 *     if (event.type === 'idle') console.log(event.proof.text)
 *   }
 * }
 * ```
 */
export function watch(
  provider: DrainableProvider,
  target: Target,
  options: WatchOptions = {},
): Drain {
  const subject = 'watch()'
  checkProvider(provider, subject)
  const parsed = parseTarget(target, subject)
  const {
    settle = 1_000,
    every,
    pace,
    onUnreachable,
    ...call
  } = parseOptions(watchSchema(), options, subject)
  const policy = parsePolicy({}, subject)
  const resolved: ResolvedPolicy = {
    ...policy,
    data: { ...policy.data, timeout: null, settle, onUnreachable },
    clock: call.clock ?? systemClock,
    signal: call.signal,
    onEvent: call.onEvent,
    pace,
  }
  const hub = new EventHub(
    resolved.onEvent,
    every,
    startTelemetry(provider, 'watch', namedRefs(parsed)),
  )
  const emit = (event: DrainEvent): void => hub.emit(event)
  const run =
    combinedOf(provider)?.watch(target, resolved, subject, emit, (part, own, hooks) => {
      const its = { ...resolved, onEvent: undefined }
      return watchRun(part, parseTarget(own, subject), its, hooks.emit, hooks)
    }) ?? watchRun(provider, parsed, resolved, emit)
  return new DrainHandle(hub, run, targetWords(parsed))
}

function watchRun(
  provider: DrainableProvider,
  target: ResolvedTarget,
  resolved: ResolvedPolicy,
  emit: (event: DrainEvent) => void,
  hooks: Partial<PartHooks> = {},
): Run {
  const { settle } = resolved.data
  const prepare: RunSpec['prepare'] = async (context) => {
    const { scheduler, signal, startedAt } = context
    const info = await scheduler.describe(signal, context.limit())
    const { look, readings } = await firstLook(scheduler, target, context)
    const policy = watchPolicy(info.capabilities, settle)
    const start = { goal: { kind: 'watch' } as const, policy, startedAt, deadline: null }
    return { claims: claimsOn(readings, start), keeper: undefined, first: look }
  }
  const keeper = newKeeper(resolved, provider)
  return new Run({
    ...baseSpec(provider, resolved, 'watch()', emit),
    side: 'watch',
    keeper: () => keeper,
    prepare: hooks.around?.(prepare) ?? prepare,
  })
}

/** Options of {@link select}. */
export type SelectOptions = Pick<Policy, 'signal' | 'clock' | 'onEvent'>

/**
 * Lists the members that a target matches; `'all'` lists every member there is, possibly none, and an address that no
 * member has gives an empty list.
 *
 * @throws `NOT_FOUND` if there is no member or pool of that name, `UNREACHABLE`, `CALL_TIMEOUT`
 *
 * @example
 * ```ts
 * import { select, type DrainableProvider } from 'drainable'
 *
 * export async function list(lb: DrainableProvider): Promise<void> {
 *   for (const { ref, present } of await select(lb, 'all')) console.log(ref.pool, ref.member, present)
 * }
 * ```
 */
export async function select(
  provider: DrainableProvider,
  target: Target | 'all',
  options: SelectOptions = {},
): Promise<readonly Reading[]> {
  const subject = 'select()'
  checkProvider(provider, subject)
  const { clock = systemClock, signal: given } = parseOptions(callSchema(), options, subject)
  const signal = given ?? new AbortController().signal
  const combined = combinedOf(provider)
  if (combined !== undefined) {
    const its = { ...options, clock, signal }
    return combined.select(target, subject, its, (part, own) => select(part, own, its))
  }
  const scheduler = schedulerOf(provider, clock)
  if (target === 'all') return (await scheduler.look('all', signal, CALL_LIMIT)).snapshot.readings
  const parsed = parseTarget(target, subject)
  try {
    return (await firstLook(scheduler, parsed, { signal, limit: () => CALL_LIMIT })).readings
  } catch (error) {
    // To ask what has an address is no mistake where nothing has it; a name that is not there is one.
    const isByAddress = parsed.kind === 'filter' && parsed.address !== undefined
    if (isByAddress && isDrainableError(error, 'NOT_FOUND')) return []
    throw error
  }
}
