/**
 * A fake Envoy for tests without one: an admin API on a real socket, and the client side of xDS, with
 * the oddities that matter for a drain (acknowledgements, merge windows before 1.40, panic mode,
 * removals that linger under active checks).
 *
 * @example
 * ```ts
 * import { envoy, callbackEndpoints } from 'drainable/envoy'
 * import { startFake } from 'drainable/testing/envoy'
 *
 * const web = { cluster_name: 'web', endpoints: [] } // the full set, see drainable/envoy
 * await using fake = await startFake({ eds: { file: '/tmp/web.json' }, version: '1.39.3' })
 * await using lb = envoy({
 *   endpoints: callbackEndpoints({ load: () => Promise.resolve([web]), publish: () => Promise.resolve() }),
 *   admin: [fake.url],
 * })
 * const request = fake.send('web') // goes where Envoy would send it
 * request?.end()
 * ```
 *
 * @module drainable/testing/envoy
 */
import { openFake, type EnvoyFake } from './fake.js'
import { toSettings, type FakeOptions } from './options.js'

/**
 * Starts a fake Envoy.
 *
 * @throws `INVALID_OPTIONS`
 */
export async function startFake(options: FakeOptions = {}): Promise<EnvoyFake> {
  return openFake(toSettings(options))
}

export type {
  HttpFakeFailure as FakeFailure,
  HttpFakeRequest as FakeRequest,
} from '../http/request.js'
export type { EnvoyFake, SentRequest } from './fake.js'
export type { FakeEds, FakeEndpoint, FakeOptions } from './options.js'
