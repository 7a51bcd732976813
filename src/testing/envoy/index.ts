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
 * @packageDocumentation
 */
import type { AdminState as MemberState, MemberRef } from '../../provider/contract.js'
import { FakeEnvoyServer } from './fake.js'
import { toSettings, type FakeEds, type FakeOptions } from './options.js'

/** A request that the fake's data plane holds. */
export interface FakeRequest {
  /** Where it went. */
  readonly member: string
  /** Lets it end in good order. */
  end(): void
}

/** What a fault does. */
export interface FakeFailure {
  /** Paths that it hits. @default every path */
  readonly match?: RegExp
  /** `status` answers 503; the others do to the connection what they say. */
  readonly how: 'status' | 'refuse' | 'silent' | 'reset' | 'garbage'
  /** How many requests it hits. @default all */
  readonly times?: number
}

/** A running fake. */
export interface EnvoyFake extends AsyncDisposable {
  /** Address of the admin API, for `admin` of `envoy()`. */
  readonly url: string
  /** Every request to the admin API so far. */
  readonly requests: readonly { readonly method: string; readonly path: string }[]
  /** Takes endpoint sets from there from now on. */
  follow(eds: FakeEds): Promise<void>
  /** Puts a request in flight on a member, whatever its state. */
  occupy(ref: MemberRef): Promise<() => Promise<void>>
  /** Sends a request as a client would: it goes where the workers send it; undefined is a 503. */
  send(pool: string): FakeRequest | undefined
  /** What active checks find from now on. */
  setHealth(ref: MemberRef, passing: boolean): void
  /** Changes an endpoint that the fake itself owns (without `eds`). */
  setBehind(ref: MemberRef, to: MemberState | 'gone'): void
  /** Faults of the admin API from now on. */
  fail(failure: FakeFailure): void
  /** Another process: counts begin anew, endpoint sets are fetched again. */
  restart(): Promise<void>
  /** Stops it, and everything it follows. */
  close(): Promise<void>
}

/**
 * Starts a fake Envoy.
 *
 * @throws `INVALID_OPTIONS`
 */
export async function startFake(options: FakeOptions = {}): Promise<EnvoyFake> {
  const fake = new FakeEnvoyServer(toSettings(options))
  await fake.open()
  return fake
}

export type { FakeEds, FakeEndpoint, FakeOptions } from './options.js'
