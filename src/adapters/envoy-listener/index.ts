/**
 * Drain an Envoy itself, as a member of what stands in front of it: a gateway pod, an edge proxy, a sidecar.
 *
 * `envoyListener()` fails its health check (`/healthcheck/fail`), so that whoever asks it sends nothing new, and says
 * idle once no downstream request and no connection that is not HTTP is left. Idle keep-alive clients do not count:
 * `server.total_connections`, which the shutdown managers of gateways wait for, stays up as long as they like.
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

/** What is done to a whole Envoy on the caller's word alone, once it is idle or its time is over. */
export interface EnvoyListenerCommands {
  /**
   * Lets Envoy close its listeners (`POST /drain_listeners?graceful`): for `--drain-time-s` (10 minutes unless set) it
   * asks clients to go (`Connection: close`, GOAWAY), then nothing is accepted any more. It can't be undone.
   *
   * @param member - one of several. Default: every one of the list
   * @throws `NOT_FOUND` for one that is not listed, `FORBIDDEN`, or what kept the call from being carried out
   */
  drainListeners(member?: MemberRef, call?: { readonly signal?: AbortSignal }): Promise<void>
  /**
   * Ends the process (`POST /quitquitquit`), with whatever is left in it.
   *
   * @param member - one of several. Default: every one of the list
   * @throws as {@link EnvoyListenerCommands.drainListeners}
   */
  quit(member?: MemberRef, call?: { readonly signal?: AbortSignal }): Promise<void>
}

/**
 * Envoys as members, by the addresses of their admin APIs: `{ pool: 'envoy', member: '127.0.0.1:9901' }`, or
 * `'/run/envoy/admin.sock'`.
 *
 * @throws `INVALID_OPTIONS`
 */
export function envoyListener(
  options: EnvoyListenerOptions,
): DrainableProvider & ProviderEvents & EnvoyListenerCommands {
  return withEvents(new EnvoyListenerProvider(readOptions(options)))
}

export type { AdminAddresses, EnvoyListenerOptions, Noticed } from './options.js'
