import type { DesiredMember } from '../../core/desired.js'
import type { PresentReading } from '../../provider/contract.js'
import { canonicalAddress } from '../address.js'

/** Which desired member is which member of one pool. */
export interface PoolMatch {
  /** One pair per member found. */
  readonly matched: readonly (readonly [DesiredMember, PresentReading])[]
  /** Desired, and not in the balancer. */
  readonly missing: readonly DesiredMember[]
  /** In the balancer, and no endpoint any more. */
  readonly vanished: readonly PresentReading[]
  /** In the balancer without an address, and not wanted by name: nothing can be said about them. */
  readonly unaddressed: readonly PresentReading[]
}

/**
 * Matches by address and port; by address alone where either side has no port; by name where a
 * desired member has no address. Where several desired members mean one (two port names on one
 * number), the one that wants most of it counts.
 */
export function matchPool(
  desired: readonly DesiredMember[],
  readings: readonly PresentReading[],
): PoolMatch {
  const byAddress = Map.groupBy(readings, ({ address }) => addressKey(address))
  const byName = new Map(readings.map((reading) => [reading.ref.member, reading]))
  const chosen = new Map<PresentReading, DesiredMember>()
  const missing = new Map<string, DesiredMember>()
  for (const one of desired) {
    const hits = findReadings(one, byAddress, byName)
    for (const hit of hits) chosen.set(hit, stronger(chosen.get(hit), one))
    if (hits.length === 0) {
      const key = JSON.stringify([
        addressKey(one.address),
        one.port,
        one.address === undefined ? one.member : '',
      ])
      missing.set(key, stronger(missing.get(key), one))
    }
  }
  const left = readings.filter((reading) => !chosen.has(reading))
  return {
    matched: Array.from(chosen, ([reading, one]) => [one, reading] as const),
    missing: [...missing.values()],
    vanished: left.filter(({ address }) => address !== undefined && address !== ''),
    unaddressed: left.filter(({ address }) => address === undefined || address === ''),
  }
}

function findReadings(
  one: DesiredMember,
  byAddress: ReadonlyMap<string, readonly PresentReading[]>,
  byName: ReadonlyMap<string, PresentReading>,
): readonly PresentReading[] {
  if (one.address === undefined) {
    const named = one.member === undefined ? undefined : byName.get(one.member)
    return named === undefined ? [] : [named]
  }
  const there = byAddress.get(addressKey(one.address)) ?? []
  return there.filter(
    ({ port }) => port === undefined || one.port === undefined || port === one.port,
  )
}

function addressKey(address: string | undefined): string {
  return address === undefined ? '' : canonicalAddress(address)
}

const RANK = { absent: 0, drain: 1, serve: 2 } as const

function stronger(known: DesiredMember | undefined, one: DesiredMember): DesiredMember {
  if (known === undefined) return one
  const rank =
    RANK[one.state] - RANK[known.state] ||
    Number(one.serving ?? true) - Number(known.serving ?? true)
  return rank > 0 ? one : known
}
