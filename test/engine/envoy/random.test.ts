/** Hundreds of these: `npm run soak -- envoy`. */
import { describe, it } from 'vitest'
import { engines } from '../../support/engines.js'
import { drainAtRandom } from '../../support/envoy/random.js'

const DRAINS = 10
/** What a hot restart or a kill cuts is lost, and such an idle is not verified. */
const LEAST = 5

describe('random drains over three proxies', () => {
  const options = { timeout: 300_000 }
  it.concurrent.for(engines('envoy'))('Envoy $version', options, async (engine, { expect }) => {
    const run = await drainAtRandom(engine, 1, DRAINS)
    const { outcomes, falseIdles, requests, disturbances } = run
    expect(falseIdles).toEqual([])
    expect(Object.values(outcomes).reduce((sum, count) => sum + count, 0)).toBe(DRAINS)
    expect(outcomes['idle'], JSON.stringify(outcomes)).toBeGreaterThanOrEqual(LEAST)
    expect(Object.keys(disturbances ?? {}).sort()).toEqual([
      'cut',
      'hot restart',
      'pause',
      'restart',
    ])
    expect(requests).toBeGreaterThan(100 * DRAINS)
  })
})
