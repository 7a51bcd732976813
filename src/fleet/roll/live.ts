import type { DrainableProvider, MemberRef } from '../../provider/contract.js'
import { DrainableError } from '../../provider/error.js'
import { formatRef } from '../../provider/member-ref.js'
import { homeOf } from '../../core/balancer/home.js'
import { balancersOf } from '../balancers.js'

/** What is under way in this process, and by which roll. */
const live = (): Map<string, string> => homeOf('rolls', () => new Map<string, string>())

/** A roll that is under way in this process. */
export interface LiveRoll {
  /**
   * Takes its servers for itself: no second roll acts on one at once, whatever its id.
   *
   * @throws `CONFLICT` naming the first member of which another roll is under way; none is taken then
   */
  readonly take: (refs: readonly MemberRef[]) => void
  readonly leave: () => void
}

/**
 * Enters a roll, so that no second one goes on with the same ticket.
 *
 * @throws `CONFLICT` where it is under way already
 */
export function enterRoll(provider: DrainableProvider, id: string, subject: string): LiveRoll {
  const { name, instance } = provider
  const key = JSON.stringify([name, instance, id])
  const rolls = live()
  if (rolls.has(key)) {
    throw new DrainableError(
      'CONFLICT',
      `${subject}: roll '${id}' is under way in this process; wait for its end, or close it first`,
    )
  }
  rolls.set(key, id)
  const claimed = [key]
  return {
    take: (refs) => {
      const keys = refs.map((ref) => [memberKey(provider, ref), ref] as const)
      const taken = keys.find(([member]) => rolls.has(member))
      if (taken !== undefined) {
        const [member, ref] = taken
        throw new DrainableError(
          'CONFLICT',
          `${subject}: roll '${rolls.get(member) ?? ''}' has ${formatRef(ref)}, and is under way in this process; wait for its end, or leave that server out`,
          { ref },
        )
      }
      for (const [member] of keys) {
        rolls.set(member, id)
        claimed.push(member)
      }
    },
    leave: () => {
      for (const own of claimed.splice(0)) rolls.delete(own)
    },
  }
}

/** A member by its own balancer: the same one alone and behind a combined provider. */
function memberKey(provider: DrainableProvider, { pool, member, balancer }: MemberRef): string {
  const part = balancersOf(provider).get(balancer) ?? provider
  return JSON.stringify([part.name, part.instance, pool, member])
}
