import { type Followers, keepServing } from '../../../kit/haproxy/followers.js'
import type { CallContext, Change, MemberRef } from '../../../provider/contract.js'
import { refKey } from '../../../provider/member-ref.js'
import { serves, toPoolReading } from '../read/reading.js'
import { PROVIDER } from '../session/session.js'
import type { Tools } from './sent.js'

/**
 * A drained server takes those that track it along.
 *
 * @throws `POOL_AT_MINIMUM` where that would leave too few in their backends
 */
export async function keepFollowers(
  { reader, settings, followers }: Tools,
  ref: MemberRef,
  ctx: CallContext,
): Promise<void> {
  const along = followers.of(ref)
  if (along.length === 0 || settings.keepFollowers === 0) return
  const view = await reader.view(along, ctx)
  const least = settings.keepFollowers
  keepServing(ref, along, { factory: 'haproxyDataplane', provider: PROVIDER, least }, (pool) => {
    const members = view.pools.get(pool)
    const { serving } = toPoolReading(pool, view)
    const lost = [ref, ...along].filter((one) => {
      const found = one.pool === pool ? members?.get(one.member) : undefined
      return found !== undefined && serves(found, members)
    }).length
    return { serving, lost }
  })
}

/**
 * The places of changes in the order in which they are made: a server that tracks another one is drained
 * before that, because behind an inherited drain its own can't be seen, and set back after it.
 */
export function orderOf(changes: readonly Change[], followers: Followers): readonly number[] {
  const leads = new Map(changes.map(({ ref }) => [refKey(ref), keysOf(followers.of(ref))]))
  const isBefore = (one: Change, other: Change): boolean => {
    const [first, second] = other.kind === 'restore' ? [other, one] : [one, other]
    return leads.get(refKey(second.ref))?.has(refKey(first.ref)) === true
  }
  const order: number[] = []
  for (const [i, change] of changes.entries()) {
    const key = refKey(change.ref)
    const own = order.findLastIndex((k) => refKey(changes[k]?.ref ?? change.ref) === key)
    const at = order.findIndex((k, place) => {
      const placed = changes[k]
      return place > own && placed !== undefined && isBefore(change, placed)
    })
    order.splice(at < 0 ? order.length : at, 0, i)
  }
  return order
}

function keysOf(refs: readonly MemberRef[]): ReadonlySet<string> {
  return new Set(refs.map(refKey))
}
