import { z } from 'zod'
import type { Capabilities, DrainableProvider, Reading } from '../provider/contract.js'
import { systemClock } from '../provider/clock.js'
import { parseOptions } from '../provider/options.js'
import { firstLook } from './first-look.js'
import { DrainHandle, EventHub, type Drain } from './handle.js'
import { laneOf } from './lane.js'
import { initialState, type MachinePolicy } from './machine/state.js'
import {
  callShape,
  durationOption,
  parsePolicy,
  type Policy,
  type ResolvedPolicy,
} from './policy.js'
import { newLedger, Session } from './session.js'
import { parseTarget, type Target } from './target.js'

/** Options of {@link watch}. */
export type WatchOptions = Pick<Policy, 'signal' | 'clock' | 'onEvent' | 'settle'>

const watchSchema = z.strictObject({ ...callShape, settle: durationOption().exactOptional() })

/**
 * Looks without changing anything, at drains begun by anybody: `load`, `phase`, `idle`, `idle-lost`.
 * Goes on until it is closed, aborted, or every member is gone.
 *
 * @throws `INVALID_OPTIONS` at once; everything else is in the report
 */
export function watch(p: DrainableProvider, target: Target, o: WatchOptions = {}): Drain {
  const subject = 'watch()'
  const given = parseOptions(watchSchema, o, subject) as WatchOptions
  const policy = parsePolicy(given, subject)
  const forever: ResolvedPolicy = { ...policy, data: { ...policy.data, timeout: null } }
  const parsed = parseTarget(target, subject)
  const hub = new EventHub(forever.onEvent)
  const session = new Session(p, forever, hub, subject, async (own) => {
    const info = await own.lane.describe(own.signal)
    const { look, readings } = await firstLook(own.lane, parsed, own.signal)
    return {
      policy: watchPolicy(info.capabilities, forever.data.settle),
      states: readings.map((reading) => initialState(reading.ref, own.startedAt, null)),
      ledger: newLedger(forever, p, own.lane, own.startedAt),
      first: look,
    }
  })
  return new DrainHandle(hub, session)
}

/** A machine that only looks. */
export function watchPolicy(capabilities: Capabilities, settle: number): MachinePolicy {
  return {
    mode: 'watch',
    hold: 'drain',
    seal: 'never',
    settle,
    until: 'idle',
    onTimeout: 'fail',
    onOverrule: 'fail',
    escalateAfter: null,
    capabilities,
  }
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
  const { clock = systemClock, signal } = parseOptions(z.strictObject(callShape), o, 'select()')
  const lane = laneOf(p, clock)
  const { readings } = await firstLook(
    lane,
    parseTarget(target, 'select()'),
    signal ?? new AbortController().signal,
  )
  return readings
}
