/**
 * A fake BIG-IP: iControl REST over HTTPS as TMOS 13.1, 15.1, 17.1, 17.5 and 21.0 speak it, with tokens, pools, members,
 * nodes, statistics, roles, config-sync, transactions, restarts and the device's refusals. It keeps its own state, and
 * is independent of the adapter.
 *
 * @example
 * ```ts
 * import { startFake } from 'drainable/testing/f5-bigip'
 *
 * await using fake = await startFake({ pools: { web: ['10.0.0.1:80', '10.0.0.2:80'] } })
 * const release = await fake.occupy({ pool: 'web', member: '10.0.0.1:80' })
 * console.log(fake.url) // https://127.0.0.1:40123, its certificate is fake.ca
 * await release()
 * ```
 *
 * @module drainable/testing/f5-bigip
 */
import { BigipFake } from './fake.js'
import type { FakeOptions } from './options.js'

export type { FakeMemberOptions, FakePoolOptions, MonitorState } from './device/config.js'
export type { BigipFake, BigipFakeLoad, BigipFakeRef } from './fake.js'
export type {
  BigipVersion,
  FakeFailure,
  FakeOptions,
  FakeRequest,
  FakeVirtualOptions,
} from './options.js'

/**
 * Starts a fake BIG-IP, or the units of a device group, on loopback.
 *
 * @param options - pools, credentials, release, and how the device behaves
 * @returns the running fake; close it, or bind it with `await using`
 */
export async function startFake(options: FakeOptions = {}): Promise<BigipFake> {
  return BigipFake.start(options)
}
