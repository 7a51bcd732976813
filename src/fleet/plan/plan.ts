import type { DrainableProvider } from '../../provider/contract.js'
import { rollNames, type RollOptions } from '../roll/options.js'
import type { RollTarget } from '../roll/servers.js'
import { checkProvider } from '../../core/calls/call-options.js'
import { parsePolicy, policyNames, type Policy } from '../../core/calls/policy.js'
import { parseTarget, type Target } from '../../core/calls/target.js'
import { expectation, notesOf, planMember, toPlan, type DrainPlan } from './assemble.js'
import { judge } from './judge.js'
import { isRoll, planRoll } from './plan-roll.js'

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
  if (isRoll(target, options, SUBJECT)) return planRoll(provider, target, options, SUBJECT)
  const own = target as Target
  parseTarget(own, SUBJECT)
  const names = [...new Set([...policyNames(), ...rollNames()])]
  const resolved = parsePolicy(options, SUBJECT, names)
  resolved.signal?.throwIfAborted()
  const judged = await judge(provider, own, resolved, () => 'all', SUBJECT)
  const { data } = resolved
  const short = judged.members.flatMap((member) => member.short ?? [])
  // If one member is refused, a drain of several does not begin; if one waits for others, the rest goes on.
  const refused = data.onMinimum === 'fail' ? [...judged.refused, ...short] : judged.refused
  const waits = data.onMinimum === 'fail' ? [] : short
  const planned = judged.members.map((member) => planMember(member, data, refused[0]?.message))
  const least = Math.max(0, ...judged.members.map((member) => member.least))
  const most = data.timeout
  const notes = [
    ...notesOf(judged, data),
    ...waits.map(({ message }) => `waits until enough others serve: ${message}`),
    ...(refused.length > 0 ? [] : [expectation(least, most)]),
  ]
  return toPlan('drain', planned, { refused, expected: { least, most }, notes })
}

const SUBJECT = 'plan()'
