import { z } from 'zod'
import type { DrainableProvider, Reading } from '../../provider/contract.js'
import { systemClock } from '../../provider/clock.js'
import { parseOptions } from '../../provider/options.js'
import { initialState } from '../machine/state.js'
import { CALL_LIMIT } from '../runner/look/call.js'
import { DrainHandle, EventHub, type Drain } from '../runner/handle.js'
import { Run } from '../runner/run.js'
import { schedulerOf } from '../runner/look/scheduler.js'
import { callSchema, callShape, checkProvider } from './call.js'
import { durationOption } from '../../provider/duration-option.js'
import { firstLook } from './first-look.js'
import { parsePolicy, type Policy, type ResolvedPolicy } from './policy.js'
import { baseSpec, newKeeper } from './spec.js'
import { parseTarget, type Target } from './target.js'
import { watchPolicy } from './watch-policy.js'

/** Options of {@link watch}. */
export type WatchOptions = Pick<Policy, 'signal' | 'clock' | 'onEvent' | 'settle'>

const watchSchema = z.strictObject({
  ...callShape,
  settle: durationOption({ bareSeconds: 'refuse' }).exactOptional(),
})

/**
 * Looks without changing anything, at drains begun by anybody: `load`, `phase`, `idle`, `idle-lost`.
 * Goes on until it is closed, aborted, or every member is gone.
 *
 * @throws `INVALID_OPTIONS` at once; everything else is in the report
 */
export function watch(p: DrainableProvider, target: Target, o: WatchOptions = {}): Drain {
  const subject = 'watch()'
  const provider = checkProvider(p, subject)
  const parsed = parseTarget(target, subject)
  const { settle = 1_000, ...call } = parseOptions(watchSchema, o, subject)
  const policy = parsePolicy({}, subject)
  const resolved: ResolvedPolicy = {
    ...policy,
    data: { ...policy.data, timeout: null, settle },
    clock: call.clock ?? systemClock,
    signal: call.signal,
    onEvent: call.onEvent,
  }
  const hub = new EventHub(resolved.onEvent)
  const run = new Run({
    ...baseSpec(provider, resolved, subject, (event) => hub.emit(event)),
    side: null,
    keeper: () => newKeeper(resolved, provider),
    prepare: async (context) => {
      const { scheduler, signal, startedAt } = context
      const info = await scheduler.describe(signal, context.limit())
      const { look, readings } = await firstLook(scheduler, parsed, context)
      return {
        policy: watchPolicy(info.capabilities, settle),
        states: readings.map(({ ref }) => initialState(ref, startedAt, null, { kind: 'watch' })),
        keeper: undefined,
        first: look,
      }
    },
  })
  return new DrainHandle(hub, run)
}

/** Options of {@link select}. */
export type SelectOptions = Pick<Policy, 'signal' | 'clock' | 'onEvent'>

/**
 * What a target hits.
 *
 * @throws `NOT_FOUND` where nothing is hit, `UNREACHABLE`, `CALL_TIMEOUT`
 */
export async function select(
  p: DrainableProvider,
  target: Target,
  o: SelectOptions = {},
): Promise<readonly Reading[]> {
  const subject = 'select()'
  const provider = checkProvider(p, subject)
  const parsed = parseTarget(target, subject)
  const { clock = systemClock, signal } = parseOptions(callSchema, o, subject)
  const { readings } = await firstLook(schedulerOf(provider, clock), parsed, {
    signal: signal ?? new AbortController().signal,
    limit: () => CALL_LIMIT,
  })
  return readings
}
