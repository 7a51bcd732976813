import type { DrainableProvider } from '../../provider/contract.js'
import type { DrainableError } from '../../provider/error.js'
import { rollNames, type RollOptions } from '../roll/options.js'
import type { RollTarget } from '../roll/servers.js'
import { checkProvider } from '../../core/calls/call-options.js'
import {
  parsePolicy,
  policyNames,
  type Policy,
  type ResolvedPolicy,
} from '../../core/calls/policy.js'
import { parseTarget, type Target } from '../../core/calls/target.js'
import { expectation, sort, toPlan, type DrainPlan, type Sorted } from './assemble.js'
import { judgeAll, type Verdicts } from './judge-all.js'
import { isRoll, planRoll } from './plan-roll.js'
import { notesOf } from './words.js'

/** Options of {@link plan}: those of the drain, or those of the roll without `act`. */
export type PlanPolicy = Policy | Omit<RollOptions, 'act'>

/**
 * Plans what `startDrain` or `roll` would do with these arguments, member by member: what it would hold, what it
 * would wait for, which errors would refuse it, how long it would take. It looks and changes nothing. It reports
 * every obstacle at once, while the drain itself stops at the first.
 *
 * It plans a roll if an option is given that only a roll has (`act`, `maxUnavailable`, `canary`, `group`, `waitHealthy`,
 * `onFailure`, `lease`, `onTimeout: 'postpone'`). It does not take the lease, calls no callbacks, and only reads a
 * ticket of the same `id`.
 *
 * @throws `INVALID_OPTIONS` naming the field, `NOT_FOUND`, the balancer's own error; `signal.reason` on abort
 *
 * @example
 * ```ts
 * import { plan, type DrainableProvider } from 'drainable'
 *
 * export async function dryRun(lb: DrainableProvider, host: string): Promise<boolean> {
 *   const { text, refused } = await plan(lb, { address: host }, { timeout: '2m', keepReady: 2 })
 *   console.log(text)
 *   return refused.length === 0
 * }
 * ```
 */
export async function plan(
  provider: DrainableProvider,
  target: RollTarget,
  options: PlanPolicy = {},
): Promise<DrainPlan> {
  checkProvider(provider, SUBJECT)
  if (isRoll(target, options)) return planRoll(provider, target, options, SUBJECT)
  const own = target as Target
  parseTarget(own, SUBJECT)
  const names = [...new Set([...policyNames(), ...rollNames()])]
  const resolved = parsePolicy(options, SUBJECT, names)
  resolved.signal?.throwIfAborted()
  const verdicts = await judgeAll(provider, own, resolved, () => 'all', SUBJECT)
  const { judged } = verdicts
  const { refused, waits } = refusalsOf(verdicts, resolved)
  const found: Sorted = { steps: [], held: [] }
  for (const one of judged)
    for (const reading of one.readings)
      sort(found, reading, one, resolved.data, { unbegun: refused[0]?.message })
  const least = Math.max(0, ...judged.map((one) => one.least))
  const most = resolved.data.timeout
  const notes = [
    ...notesOf(verdicts, resolved.data),
    ...waits,
    ...(refused.length > 0 ? [] : [expectation(least, most)]),
  ]
  return toPlan('drain', found, { refused, expected: { least, most }, notes })
}

const SUBJECT = 'plan()'

/** If one member is refused, a drain of several does not begin; if one waits for others, the rest goes on. */
function refusalsOf(
  { judged, refused: together }: Verdicts,
  { data }: ResolvedPolicy,
): { readonly refused: readonly DrainableError[]; readonly waits: readonly string[] } {
  const refused = [...together, ...judged.flatMap((one) => one.refused)]
  const short = judged.flatMap((one) => [...one.short.values()])
  if (data.onMinimum === 'fail') return { refused: [...refused, ...short], waits: [] }
  const waits = short.map(({ message }) => `waits until enough others serve: ${message}`)
  return { refused, waits }
}
