/**
 * Drain an Envoy itself, as a member of the load balancer in front of it: a gateway pod, an edge proxy, a sidecar.
 *
 * `envoyListener()` fails its health check (`/healthcheck/fail`), so that the balancer in front sends nothing new,
 * and reports idle once no downstream request and no non-HTTP connection is left. Idle keep-alive clients do not
 * count: they keep `server.total_connections`, which the shutdown managers of gateways wait for, above zero as long
 * as they like.
 *
 * @example The preStop hook of a gateway pod
 * ```ts
 * import { drain } from 'drainable'
 * import { envoyListener } from 'drainable/envoy-listener'
 *
 * await using proxy = envoyListener({ admin: 'http://127.0.0.1:9901', noticed: { checks: 3 } })
 * await drain(
 *   proxy,
 *   { pool: 'envoy' },
 *   { timeout: '50s', onTimeout: 'proceed', keepReady: 0 },
 *   () => proxy.quit(),
 * )
 * ```
 *
 * @module drainable/envoy-listener
 */
import { withEvents, type ProviderEvents } from '../../core/with-events.js'
import type { DrainableProvider, MemberRef } from '../../provider/contract.js'
import { type EnvoyListenerOptions, readOptions } from './options.js'
import { EnvoyListenerProvider } from './provider.js'

/** Commands for a whole Envoy that only the caller gives, once it is idle or its time is over. */
export interface EnvoyListenerCommands {
  /**
   * Makes Envoy close its listeners (`POST /drain_listeners?graceful`): for `--drain-time-s` (10 minutes unless set)
   * it asks clients to go (`Connection: close`, GOAWAY), then it accepts nothing any more. It can't be undone.
   *
   * Once its listeners are closed, no failed health check is waited for; once nobody is connected either, it is sealed.
   *
   * @param member - one of several. Default: all members
   * @param call - `skipExit`: only asks clients to go, and goes on accepting afterwards (`skip_exit`)
   * @throws `NOT_FOUND` for a member that is not listed, `FORBIDDEN`, or the error that prevented the call
   */
  drainListeners(
    member?: MemberRef,
    call?: { readonly signal?: AbortSignal; readonly skipExit?: boolean },
  ): Promise<void>
  /**
   * Ends the process (`POST /quitquitquit`), with any work left in it.
   *
   * @param member - one of several. Default: all members
   * @throws as {@link EnvoyListenerCommands.drainListeners}
   */
  quit(member?: MemberRef, call?: { readonly signal?: AbortSignal }): Promise<void>
}

/**
 * Makes a provider with Envoys as members, named by the addresses of their admin APIs: `{ pool: 'envoy', member:
 * '127.0.0.1:9901' }`, or `'/run/envoy/admin.sock'`.
 *
 * @throws `INVALID_OPTIONS`
 */
export function envoyListener(
  options: EnvoyListenerOptions,
): DrainableProvider & ProviderEvents & EnvoyListenerCommands {
  return withEvents(new EnvoyListenerProvider(readOptions(options)))
}

export type { AdminAddresses, EnvoyListenerOptions, Noticed } from './options.js'
