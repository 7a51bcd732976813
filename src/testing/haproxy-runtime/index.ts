/**
 * A fake HAProxy for tests: the Runtime API on a real socket, with the words, columns, framing and refusals of 2.6,
 * 3.0 or 3.2, a master process with its reloads and old workers, and a small data plane that forwards HTTP and TCP.
 *
 * @example
 * ```ts
 * import { drain } from 'drainable'
 * import { haproxyRuntime } from 'drainable/haproxy-runtime'
 * import { startFake } from 'drainable/testing/haproxy-runtime'
 *
 * await using fake = await startFake({ pools: { web: ['web1', 'web2'] }, version: '3.2' })
 * await using lb = haproxyRuntime({ socket: fake.socket })
 * const web1 = { pool: 'web', member: 'web1' }
 * const end = await fake.occupy(web1) // a request is in flight on web1
 * setTimeout(() => void end(), 500)
 * const report = await drain(lb, web1, { timeout: '10s' })
 * console.log(report.outcome, fake.load(web1)) // idle 0
 * ```
 *
 * @module drainable/testing/haproxy-runtime
 */
import { openFake } from './fake.js'
import type { HaproxyFake } from './fake.js'
import type { FakeOptions } from './options.js'

export type { HaproxyFake } from './fake.js'
export type { SocketAddress } from './listener.js'
export type {
  FakeFailure,
  FakeFrontend,
  FakeOptions,
  FakeRequest,
  FakeServer,
  Level,
  Series,
} from './options.js'

/**
 * Starts a fake HAProxy. Dispose of it (`await using`) or close it at the end.
 *
 * @throws `INVALID_OPTIONS` for a configuration that HAProxy would not load, and for unknown options
 */
export function startFake(options: FakeOptions = {}): Promise<HaproxyFake> {
  return openFake(options)
}
