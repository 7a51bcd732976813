/** Hundreds of these: `npm run soak -- envoy`. */
import { describe, it } from 'vitest'
import { engines } from '../../support/engines.js'
import { drainAtRandom } from '../../support/envoy/random.js'

const DRAINS = 3

describe('random drains over three proxies', () => {
  const options = { timeout: 300_000 }
  it.concurrent.for(engines('envoy'))('Envoy $version', options, async (engine, { expect }) => {
    const { outcomes, falseIdles, requests } = await drainAtRandom(engine, 1, DRAINS)
    expect(falseIdles).toEqual([])
    expect(Object.values(outcomes).reduce((sum, count) => sum + count, 0)).toBe(DRAINS)
    expect(requests).toBeGreaterThan(DRAINS)
  })
})
