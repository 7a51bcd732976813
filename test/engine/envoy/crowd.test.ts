/** With the time to idle: `npm run soak -- envoy-crowd`. */
import { describe, expect, test } from 'vitest'
import { engines } from '../../support/engines.js'
import { drainCrowd } from '../../support/envoy/crowd.js'

const PROXIES = 30

describe.each(engines('envoy'))('a crowd of Envoy $version', (engine) => {
  test('one request on one of thirty proxies keeps a member busy', async () => {
    const { proxies, scopes, faults } = await drainCrowd(engine, PROXIES)
    expect({ proxies, scopes, faults }).toEqual({ proxies: PROXIES, scopes: PROXIES, faults: [] })
  }, 240_000)
})
