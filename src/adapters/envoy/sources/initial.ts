import { askOption } from '../../../provider/abort.js'
import * as z from 'zod/mini'
import type { MemberRef } from '../../../provider/contract.js'
import { DrainableError, wordsOf } from '../../../provider/error.js'
import { nonEmpty } from '../../../provider/option-schemas.js'
import { parseOptions } from '../../../provider/options.js'

/** Held members, or a function that reads them. The function gets the sink's `instance`. */
export type HeldMembers =
  readonly MemberRef[] | ((instance: string) => Promise<readonly MemberRef[]>)

/** Takes over the sets that the proxies hold, with a fallback for sets that can't be adopted. */
export interface AdoptedEndpoints {
  /** Takes the sets over from the proxies' admin API. */
  readonly adopt: true
  /**
   * The full sets for a new fleet, or one that can't be adopted from. A set is served if no proxy holds one of that
   * name, if the proxies hold different members in it, or if there is no admin address. While there are addresses and
   * none answers, nothing is served.
   */
  readonly else?: readonly unknown[] | undefined
  /**
   * Members that drains hold, from `heldMembers(store)`: they are `DRAINING` in the first set that is served,
   * whatever the proxies or `else` say. While the function fails, nothing is served.
   */
  readonly held?: HeldMembers | undefined
}

/** The sets that a sink serves first. */
export type InitialEndpoints = 'adopt' | readonly unknown[] | AdoptedEndpoints

const refs = z.array(
  z.object({
    pool: nonEmpty(),
    member: nonEmpty(),
    balancer: z.exactOptional(z.string()),
  }),
)

/** One schema for every sink that serves. */
export const initialOption = z.union(
  [
    z.literal('adopt'),
    z.array(z.unknown()),
    z.strictObject({
      adopt: z.literal(true),
      else: z.exactOptional(z.array(z.unknown())),
      held: z.exactOptional(
        z.union([
          refs,
          z.custom<(instance: string) => Promise<readonly MemberRef[]>>(
            (value) => typeof value === 'function',
            'expected a list of { pool, member } or a function that returns one',
          ),
        ]),
      ),
    }),
  ],
  "expected 'adopt', a list of endpoint sets, or { adopt: true, else, held }",
)

/** The same, checked: a list is served from the start on. */
export type Initial = z.output<typeof initialOption>

/**
 * Reads who is held.
 *
 * @throws what the caller's function failed with, as `UNREACHABLE`; `INVALID_OPTIONS` where it returned no refs
 */
export async function readHeld(held: HeldMembers, instance: string): Promise<readonly MemberRef[]> {
  if (typeof held !== 'function') return held
  let found: unknown
  try {
    found = await askOption('initial.held', () => held(instance))
  } catch (cause) {
    throw new DrainableError(
      'UNREACHABLE',
      `${instance}: initial.held failed, nothing is served before it is known who is held: ${wordsOf(cause)}`,
      { provider: 'envoy', cause },
    )
  }
  const { held: checked } = parseOptions(
    z.object({ held: refs }),
    { held: found },
    `${instance}: initial`,
  )
  return checked
}
