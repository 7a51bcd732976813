import type { Clock } from '../../provider/clock.js'
import type { DrainableProvider } from '../../provider/contract.js'
import { type DrainableError, isDrainableError } from '../../provider/error.js'
import { CALL_LIMIT } from '../balancer/look/call.js'
import type { Target } from '../calls/target.js'
import { divide, isLeftOut } from './divide.js'
import type { Parts } from './parts.js'
import { tagError, tagMissing } from './tag.js'

/** How a call goes to each balancer of a target. */
export interface EachOptions {
  readonly clock: Clock
  readonly signal: AbortSignal | undefined
}

/**
 * One call on each balancer that a target concerns, side by side. All are waited for, also where one
 * fails: nothing goes on after the call.
 *
 * @throws what the first of them failed with, and its key in front; `NOT_FOUND` where nothing is hit
 */
export async function onEach<T>(
  target: Target,
  parts: Parts,
  subject: string,
  { clock, signal = new AbortController().signal }: EachOptions,
  call: (part: DrainableProvider, target: Target, key: string) => Promise<T>,
): Promise<readonly (readonly [string, T])[]> {
  const divided = await divide(target, parts, subject, { clock, signal, limit: CALL_LIMIT })
  return callEach(divided, parts, signal, call)
}

/** One call on each of the balancers, side by side; see {@link onEach}. */
export async function callEach<T, D extends Target | 'all'>(
  divided: ReadonlyMap<string, D>,
  parts: Parts,
  signal: AbortSignal,
  call: (part: DrainableProvider, target: D, key: string) => Promise<T>,
): Promise<readonly (readonly [string, T])[]> {
  const hits: (readonly [string, T])[] = []
  const failures: unknown[] = []
  const missing = new Map<string, DrainableError>()
  await Promise.all(
    [...divided].map(async ([key, own]) => {
      const part = parts.all.get(key)
      if (part === undefined) return
      try {
        hits.push([key, await call(part, own, key)])
      } catch (error) {
        if (!isDrainableError(error)) failures.push(error)
        else if (own !== 'all' && isLeftOut(own, parts, error)) missing.set(key, error)
        else failures.push(tagError(error, key))
      }
    }),
  )
  signal.throwIfAborted()
  if (failures.length > 0) throw failures[0]
  const order = [...parts.all.keys()]
  if (hits.length === 0 && missing.size > 0)
    throw tagMissing(order.flatMap((key) => [...missing].filter(([of]) => of === key)))
  return hits.sort(([a], [b]) => order.indexOf(a) - order.indexOf(b))
}
