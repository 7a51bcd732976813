import { expect, test } from 'vitest'
import { UnlistedBounds } from '../../../src/adapters/envoy/session/unlisted.js'

/** The statistics of a cluster, as far as its hosts change. */
function stats(membership_change: number): Parameters<UnlistedBounds['isProved']>[1] {
  const values: Readonly<Record<string, number>> = { membership_change }
  return {
    of: (_: string, name: string) => values[name],
    isGone: () => false,
    versionOf: () => undefined,
  } as unknown as Parameters<UnlistedBounds['isProved']>[1]
}

test('changed hosts are proved a second after their look', () => {
  const bounds = new UnlistedBounds()
  const none = { most: 0, isExact: true }
  // The look began at 0 and took 1.9 s; the hosts changed at its end. The next one begins at 2 s.
  bounds.isProved('web', stats(1), 0)
  bounds.seen('web', none, stats(2), 0)
  bounds.isProved('web', stats(2), 2_000)
  bounds.seen('web', none, stats(2), 2_000)
  expect(bounds.isProved('web', stats(2), 2_001)).toBe(false)
})
