import type { Policy } from 'drainable'
import type { Wish } from './drain-call.js'
import type { Product } from '../world/product.js'
import type { Random } from '../random.js'

/** A policy at random, of those that this product does not refuse outright. */
export function randomPolicy(random: Random, product: Product): Wish {
  const { maint } = product.capabilities
  const timeout = random.pick([3_000, 6_000, 6_000, 12_000, random.chance(0.1) ? Infinity : 4_000])
  const settle = random.pick([0, 200, 200, 500, 1_000])
  const onTimeout = random.weighted([
    ['fail', 6],
    ['proceed', 2],
    ['terminate', product.capabilities.terminate ? 2 : 0],
  ] as const)
  const mayRaise = maint === 'gentle' || onTimeout === 'terminate'
  const optional: { -readonly [K in 'seal' | 'escalateAfter' | 'hold']?: NonNullable<Policy[K]> } =
    {}
  if (maint !== 'none') {
    const seal = random.pick([undefined, undefined, true, true, false])
    if (seal !== undefined) optional.seal = seal
    if (mayRaise && random.chance(0.15)) optional.hold = 'maint'
    if (mayRaise && random.chance(0.15)) optional.escalateAfter = `${random.int(500, 3_000)}ms`
  }
  const until = product.capabilities.remove && random.chance(0.1) ? 'removed' : 'idle'
  const policy: Policy = {
    ...optional,
    timeout: timeout === Infinity ? Infinity : `${timeout}ms`,
    settle: `${settle}ms`,
    onTimeout: until === 'removed' && onTimeout === 'proceed' ? 'remove' : (onTimeout ?? 'fail'),
    until,
    keepReady: random.pick([0, 1, 1]),
    onMinimum: random.pick(['fail', 'wait', 'wait'] as const),
    onOverrule: random.pick(['fail', 'reapply'] as const),
    onAbort: random.pick(['leave', 'restore'] as const),
    ifUnsupported: random.pick(['fail', 'proceed', 'proceed', 'proceed'] as const),
  }
  return { timeout, settle, policy }
}
