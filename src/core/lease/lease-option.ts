import * as z from 'zod'
import { durationOption } from '../../provider/duration-option.js'
import { LEASE_TTL } from './leadership.js'
import type { Lease } from './lease.js'
import { once } from '../../provider/once.js'

/** A lease among options. */
export const leaseSchema = once(() =>
  z.custom<Lease>(
    (value) =>
      ['acquire', 'renew', 'release'].every(
        (call) => typeof (value as Record<string, unknown> | null)?.[call] === 'function',
      ),
    'expected a lease with acquire, renew and release, such as redisLease() gives',
  ),
)

/** For how long it is taken, in milliseconds. */
export const leaseTtlOption = once(() =>
  durationOption({ bareSeconds: 'refuse' })
    .refine((ms) => ms >= 1_000, 'expected at least 1s')
    .default(LEASE_TTL),
)
