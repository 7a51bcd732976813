import type { PlannedChange } from '../provider/desired.js'
import type { ResolvedPolicy } from '../core/calls/policy.js'
import type { Wish } from '../endpoints/plan/wish.js'
import { wallOf } from '../provider/clock.js'
import type { Capabilities } from '../provider/contract.js'
import type { DrainShape } from './member-drain.js'

/** Beyond the proof itself, what a drain needs at least, in milliseconds. */
const LEAST_TIME = 2_000
/** A drain that is not waited for: only the hold itself, in milliseconds. */
const NO_WAIT = 2_000

/** A drain of the same member that the new one takes the place of. */
export interface EarlierDrain {
  /** Epoch milliseconds; null for none. */
  readonly deadline: number | null
  readonly shape?: DrainShape
}

/** How a drain is to go: as the plan has it, and no weaker than the one before it. */
export function shapeOf(
  {
    step,
    wish,
    before,
  }: {
    readonly step: PlannedChange | undefined
    readonly wish: Wish
    readonly before: EarlierDrain | undefined
  },
  {
    policy,
    waits,
    capabilities,
  }: {
    readonly policy: ResolvedPolicy
    readonly waits: boolean
    readonly capabilities: Capabilities
  },
): DrainShape {
  const { data } = policy
  const planned = step?.change.kind === 'hold' ? step.change.to : 'drain'
  const isMaint = [planned, data.hold, before?.shape?.hold].includes('maint')
  const floor = wish.state === 'gone' ? Math.min(1, data.keepReady) : data.keepReady
  const shape = {
    hold: isMaint ? ('maint' as const) : ('drain' as const),
    until: step?.change.kind === 'remove' ? ('removed' as const) : ('idle' as const),
    keepReady: step?.keepReady ?? floor,
  }
  if (!waits) return { ...shape, timeout: NO_WAIT }
  if (data.timeout === null || before?.deadline == null) return { ...shape, timeout: data.timeout }
  // It goes on: what is left of its time, and enough for a proof.
  const { blind, freshness } = capabilities
  const least = Math.max(data.settle, blind) + freshness + LEAST_TIME
  const left = before.deadline - wallOf(policy.clock)
  return { ...shape, timeout: Math.min(data.timeout, Math.max(least, left)) }
}
