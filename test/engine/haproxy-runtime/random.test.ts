/** Thousands of these: `npm run soak -- haproxy`. */
import { describe, it } from 'vitest'
import { engines } from '../../support/engines.js'
import { drainAtRandom } from '../../support/haproxy-random.js'

/** On each version, side by side. */
const DRAINS = 5

describe('random drains over mixed traffic', () => {
  const options = { timeout: 300_000 }
  it.concurrent.for(engines('haproxy'))('HAProxy $version', options, async (engine, { expect }) => {
    const { outcomes, falseIdles, requests } = await drainAtRandom(engine, 1, DRAINS)
    expect(falseIdles).toEqual([])
    expect(Object.values(outcomes).reduce((sum, count) => sum + count, 0)).toBe(DRAINS)
    expect(requests).toBeGreaterThan(DRAINS)
  })
})
