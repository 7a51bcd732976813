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
 * @packageDocumentation
 */
import { type ProviderEvents, withEvents } from '../../core/with-events.js'
import type { DrainableProvider } from '../../provider/contract.js'
import type { Duration } from '../../provider/duration.js'
import { type OldWorkers, type SocketAddress, toSettings } from './options.js'
import { HaproxyRuntimeProvider } from './provider.js'

export type { OldWorkers, SocketAddress }

/** How to reach one HAProxy, and what to do about what can't be seen of it. */
export interface HaproxyRuntimeOptions {
  /**
   * The stats socket: a `stats socket /path level admin` of the `global` section, or host and port of
   * a `stats socket ipv4@... level admin`. Level operator is enough to look.
   */
  readonly socket: SocketAddress
  /**
   * The master socket (`haproxy -W -S /path,level,admin`): the way to old workers, which a reload
   * leaves behind with their connections. Looked for by itself on 2.6 and 3.0, where the process says.
   */
  readonly master?: SocketAddress | undefined
  /** What to do about old workers that can't be seen. @default 'wait' */
  readonly oldWorkers?: OldWorkers | undefined
  /**
   * Your servers have `on-marked-down shutdown-sessions`: maintenance cuts their connections. HAProxy
   * does not tell, so say it: the door is then not closed by itself after idle, and `hold: 'maint'`
   * and `escalateAfter` want `onTimeout: 'terminate'` beside them.
   *
   * @default false
   */
  readonly maintCuts?: boolean | undefined
  /**
   * Servers that `track` a drained one go along with it. A drain is refused (`POOL_AT_MINIMUM`) where
   * that would leave one of their backends with fewer serving servers than this. `keepReady` of the
   * drain counts the drained member alone.
   *
   * @default 1
   */
  readonly keepFollowers?: number | undefined
  /** Longest time a connection may take, at least 10 ms. @default '2s' */
  readonly connectTimeout?: Duration | undefined
  /**
   * Longest silence while an answer is owed, at least 10 ms: HAProxy is frozen, or its `stats maxconn`
   * is used up.
   *
   * @default '5s'
   */
  readonly replyTimeout?: Duration | undefined
  /**
   * Connections at once, of the 10 that `stats maxconn` allows by default. One more is kept open
   * during a drain where there is no master socket.
   *
   * @default 4
   */
  readonly maxConnections?: number | undefined
}

/**
 * A provider for one HAProxy.
 *
 * @throws `INVALID_OPTIONS` naming the field
 */
export function haproxyRuntime(options: HaproxyRuntimeOptions): DrainableProvider & ProviderEvents {
  return withEvents(new HaproxyRuntimeProvider(toSettings(options)))
}
