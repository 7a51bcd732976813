/**
 * A fake Envoy as a gateway, for tests without one: its admin API on a real socket, a balancer in front that checks its
 * health, and clients with requests, idle connections, WebSockets and raw TCP.
 *
 * @example
 * ```ts
 * import { envoyListener } from 'drainable/envoy-listener'
 * import { startFake } from 'drainable/testing/envoy-listener'
 *
 * await using fake = await startFake({ version: '1.39.3' })
 * await using lb = envoyListener({ admin: fake.url })
 * const end = await fake.occupy()
 * await end()
 * ```
 *
 * @module drainable/testing/envoy-listener
 */
import { openFake, type EnvoyListenerFake } from './fake.js'
import { toSettings, type FakeOptions } from './options.js'

/**
 * Starts a fake Envoy.
 *
 * @throws `INVALID_OPTIONS`
 */
export async function startFake(options: FakeOptions = {}): Promise<EnvoyListenerFake> {
  return openFake(toSettings(options))
}

export type {
  HttpFakeFailure as FakeFailure,
  HttpFakeRequest as FakeRequest,
} from '../http/request.js'
export type { EnvoyListenerFake } from './fake.js'
export type { FakeOptions } from './options.js'
