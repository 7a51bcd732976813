import { refusal } from '../../../kit/errors.js'
import type { CallContext, MemberRef } from '../../../provider/contract.js'
import { formatRef } from '../../../provider/member-ref.js'
import { serves, toPoolReading } from '../read/reading.js'
import { PROVIDER } from '../session/session.js'
import type { Tools } from './tools.js'

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
  const pools = new Set(along.map(({ pool }) => pool))
  const view = await reader.view(along, ctx)
  for (const pool of pools) {
    const members = view.pools.get(pool)
    const { serving } = toPoolReading(pool, view)
    const lost = [ref, ...along].filter((one) => {
      const found = one.pool === pool ? members?.get(one.member) : undefined
      return found !== undefined && serves(found, members)
    }).length
    if (lost === 0 || serving - lost >= settings.keepFollowers) continue
    const names = along.map(({ pool: of, member }) => `${of}/${member}`).join(', ')
    throw refusal(
      'POOL_AT_MINIMUM',
      `${formatRef(ref)} was not drained: ${names} ${along.length === 1 ? 'tracks' : 'track'} it and would go along, which leaves ${Math.max(0, serving - lost)} serving in ${pool}; the option keepFollowers of haproxyDataplane() is ${settings.keepFollowers}`,
      { provider: PROVIDER, ref },
    )
  }
}
