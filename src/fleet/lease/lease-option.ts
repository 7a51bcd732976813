import * as z from 'zod/mini'
import { DrainableError } from '../../provider/error.js'
import { durationOption } from '../../provider/option-schemas.js'
import { LEASE_TTL } from './leadership.js'
import type { Lease } from './lease.js'
import { missingMethods, once } from '../../provider/options.js'

/** The schema of a lease option. */
export const leaseSchema = /* @__PURE__ */ once(() =>
  z.custom<Lease>(
    (value) => missingMethods(value, ['acquire', 'renew', 'release']).length === 0,
    'expected a lease with acquire, renew and release, such as redisLease() gives',
  ),
)

/** The schema of `leaseTtl`, in milliseconds. */
export const leaseTtlOption = /* @__PURE__ */ once(() =>
  z._default(
    durationOption().check(z.refine((ms) => ms >= 1_000, 'expected at least 1s')),
    LEASE_TTL,
  ),
)

/** @throws `INVALID_OPTIONS` for the time of a lease that is not there: a slip, after which nothing is under one */
export function checkLeaseTtl(
  { lease, leaseTtl }: { readonly lease?: unknown; readonly leaseTtl?: unknown },
  subject: string,
): void {
  if (leaseTtl === undefined || lease !== undefined) return
  const words = 'leaseTtl: there is no lease, add lease or leave it out'
  throw new DrainableError('INVALID_OPTIONS', `${subject}: ${words}`)
}
