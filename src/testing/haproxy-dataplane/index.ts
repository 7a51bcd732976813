/**
 * A fake HAProxy Data Plane API on a real socket, with the shapes and quirks of its three generations (2.x; 3.0 to
 * 3.3; 3.4). It works over a HAProxy in memory, or in front of a real one.
 *
 * @example
 * ```ts
 * import { drain } from 'drainable'
 * import { haproxyDataplane } from 'drainable/haproxy-dataplane'
 * import { startFake } from 'drainable/testing/haproxy-dataplane'
 *
 * await using fake = await startFake({ pools: { web: ['web1', 'web2'] }, version: '3.2' })
 * await using lb = haproxyDataplane({ url: fake.url, username: 'admin', password: 'secret' })
 * const end = await fake.occupy({ pool: 'web', member: 'web1' })
 * setTimeout(() => void end(), 100)
 * const report = await drain(lb, { pool: 'web', member: 'web1' }, { timeout: '10s' })
 * console.log(report.outcome) // idle
 * ```
 *
 * @module drainable/testing/haproxy-dataplane
 */
import { openFake } from './fake.js'
import type { DataplaneFake, FakeOptions } from './options.js'

export type { HttpFakeRequest as FakeRequest } from '../http/request.js'
export type { DataplaneFake, FakeFailure, FakeOptions, FakeServer } from './options.js'
export type { FrontOptions } from './socket-haproxy.js'

/** Starts the fake. */
export function startFake(options: FakeOptions = {}): Promise<DataplaneFake> {
  return openFake(options)
}
