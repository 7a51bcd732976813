import type { PresentReading, Snapshot } from '../provider/contract.js'
import { DrainableError } from '../provider/error.js'
import { formatRef, poolKey } from '../provider/member-ref.js'
import type { Reservations } from './reservations.js'

/**
 * Whether a pool keeps `keepReady` serving members if this one goes.
 *
 * A member that does not serve takes nothing away. Members other drains are about to take count as
 * gone already.
 *
 * @returns why not, or undefined where it may go
 */
export function refuseAtMinimum(
  reading: PresentReading,
  snapshot: Snapshot,
  reservations: Reservations,
  keepReady: number,
): DrainableError | undefined {
  if (keepReady === 0 || !reading.serves || reservations.has(reading.ref)) return undefined
  const key = poolKey(reading.ref)
  const pool = snapshot.pools.find((candidate) => poolKey(candidate) === key)
  const serving = (pool?.serving ?? 0) - reservations.count(reading.ref)
  if (serving - 1 >= keepReady) return undefined
  const left = Math.max(0, serving - 1)
  const known =
    pool === undefined
      ? `the balancer did not say how many members of ${reading.ref.pool} serve`
      : `${left} of ${pool.total} members of ${reading.ref.pool} would be left serving`
  const advice =
    left === 0 ? 'keepReady: 0 lets the last one go' : 'lower keepReady if that is enough'
  return new DrainableError(
    'POOL_AT_MINIMUM',
    `${formatRef(reading.ref)} was not drained: ${known}, keepReady is ${keepReady}; bring another member up, onMinimum: 'wait' waits for it, ${advice}`,
    { ref: reading.ref },
  )
}

/** Whether a pool has fewer serving members than it was to keep. */
export function belowMinimum(
  reading: PresentReading,
  snapshot: Snapshot,
  keepReady: number,
): boolean {
  const key = poolKey(reading.ref)
  const pool = snapshot.pools.find((candidate) => poolKey(candidate) === key)
  return pool !== undefined && pool.serving < keepReady
}
