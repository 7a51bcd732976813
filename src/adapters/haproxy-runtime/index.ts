/**
 * Drain servers of a HAProxy through its Runtime API: the stats socket, and the master socket for
 * the old workers of a reload.
 *
 * @example
 * ```ts
 * import { drain, ready } from 'drainable'
 * import { haproxyRuntime } from 'drainable/haproxy-runtime'
 *
 * export async function deploy(install: () => Promise<void>): Promise<void> {
 *   const web1 = { pool: 'web', member: 'web1' }
 *   await using lb = haproxyRuntime({
 *     socket: '/run/haproxy/admin.sock',
 *     master: '/run/haproxy-master.sock',
 *   })
 *   await drain(lb, web1, { timeout: '2m' }, install)
 *   await ready(lb, web1, { waitHealthy: '60s' })
 * }
 * ```
 *
 * @module drainable/haproxy-runtime
 */
import { type ProviderEvents, withEvents } from '../../core/with-events.js'
import type { DrainableProvider } from '../../provider/contract.js'
import {
  type HaproxyRuntimeOptions,
  type OldWorkers,
  readOptions,
  type SocketAddress,
} from './options.js'
import { HaproxyRuntimeProvider } from './provider.js'

export type { HaproxyRuntimeOptions, OldWorkers, SocketAddress }

/**
 * Makes a provider for one HAProxy.
 *
 * @throws `INVALID_OPTIONS` naming the field
 */
export function haproxyRuntime(options: HaproxyRuntimeOptions): DrainableProvider & ProviderEvents {
  return withEvents(new HaproxyRuntimeProvider(readOptions(options)))
}
