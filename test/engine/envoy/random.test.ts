/** Hundreds of these: `npm run soak -- envoy`. */
import { describe, it } from 'vitest'
import { engines } from '../../support/engines.js'
import { drainAtRandom } from '../../support/envoy/random.js'
import { isCi } from '../../support/skipped.js'

/** Each takes seven seconds: a run outside of CI plays some of them. */
const DRAINS = isCi() ? 10 : 4
/** What a hot restart or a kill cuts is lost, and such an idle is not verified. */
const LEAST = isCi() ? 5 : 1

describe('random drains over three proxies', () => {
  const options = { timeout: 300_000 }
  it.concurrent.for(engines('envoy'))('Envoy $version', options, async (engine, { expect }) => {
    const run = await drainAtRandom(engine, 1, DRAINS)
    const { outcomes, falseIdles, requests, disturbances } = run
    expect(falseIdles).toEqual([])
    expect(Object.values(outcomes).reduce((sum, count) => sum + count, 0)).toBe(DRAINS)
    expect(outcomes['idle'], JSON.stringify(outcomes)).toBeGreaterThanOrEqual(LEAST)
    const disturbed = Object.keys(disturbances ?? {}).sort()
    if (isCi()) expect(disturbed).toEqual(['cut', 'hot restart', 'pause', 'restart'])
    else expect(disturbed).not.toEqual([])
    expect(requests).toBeGreaterThan(100 * DRAINS)
  })
})
