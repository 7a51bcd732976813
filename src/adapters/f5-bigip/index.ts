/**
 * Drain pool members and nodes of an F5 BIG-IP (LTM, TMOS 13 to 17) over iControl REST.
 *
 * @example
 * ```ts
 * import { drain, ready } from 'drainable'
 * import { f5Bigip } from 'drainable/f5-bigip'
 *
 * await using lb = f5Bigip({
 *   url: ['https://bigip1.example', 'https://bigip2.example'],
 *   username: 'drainer',
 *   password: () => process.env['BIGIP_PASSWORD'] ?? '',
 *   tls: { ca: '/etc/ssl/corp.pem' },
 * })
 * const member = { pool: '/Common/web', member: '/Common/10.0.0.1:80' }
 * await drain(lb, member, { timeout: '10m', escalateAfter: '5m' })
 * await ready(lb, member, { waitHealthy: '60s' })
 * ```
 *
 * @packageDocumentation
 */
import type { Dispatcher } from 'undici'
import { withEvents, type ProviderEvents } from '../../core/with-events.js'
import type { DrainableProvider, Secret, Tls } from '../../provider/contract.js'
import type { Duration } from '../../provider/duration.js'
import { readOptions } from './options.js'
import { F5BigipProvider } from './provider.js'

/** How {@link f5Bigip} reaches the device, and what it may do there beside draining. */
export interface F5BigipOptions {
  /**
   * Management address of the device, or those of every unit of a pair: connections and counts live on
   * the active unit, so with one address a failover in mid-drain leaves nothing to read.
   */
  readonly url: string | readonly string[]
  /** A user with at least the Operator role on the partition; cutting connections needs more. */
  readonly username: string
  /** Its password. A function is asked again for every login, so that it can rotate in mid-drain. */
  readonly password: Secret
  /** How the device's certificate is known; it is self-signed from the factory. @default the system's authorities */
  readonly tls?: Tls | undefined
  /** A dispatcher of undici in place of our own Agent; never closed here. */
  readonly dispatcher?: Dispatcher | undefined
  /** Send credentials over plain HTTP to hosts other than loopback. @default false */
  readonly allowPlaintext?: boolean | undefined
  /** Partition that names without a path are in. @default 'Common' */
  readonly partition?: string | undefined
  /** `token` logs in once and logs out on close; `basic` sends the password with every request. @default 'token' */
  readonly auth?: 'token' | 'basic' | undefined
  /** Name of the login provider, for users from LDAP, RADIUS or TACACS+ that have one of their own. @default 'tmos' */
  readonly loginProvider?: string | undefined
  /** Traffic group of the virtual servers in front; a unit counts as active where it is active for that group. @default any */
  readonly trafficGroup?: string | undefined
  /**
   * Push the change to the other unit (`config-sync to-group`). It pushes everything that is pending,
   * so a change is refused while the group is not in sync. Leave it out where autoSync is on, or where
   * the other unit is not to follow. @default no push
   */
  readonly configSync?: { readonly group: string } | undefined
  /** Save the running configuration after a change, so that it survives a reboot; saves all of it. @default false */
  readonly save?: boolean | undefined
  /** How old the device's statistics can be; two samples are taken at least that far apart. @default '4s' */
  readonly freshness?: Duration | undefined
  /** Shortest pause between two looks. @default '2s' */
  readonly minInterval?: Duration | undefined
  /** How long one request may take, connect included; at least 50 ms. @default '15s' */
  readonly callTimeout?: Duration | undefined
}

/**
 * Drain members of a BIG-IP's pools.
 *
 * Members are `{ pool: '/Common/web', member: '/Common/10.0.0.1:80' }`; names without a path are in
 * `partition`, and a member can also be named by address and port, or by its node's name where that
 * is clear. A node, in every pool it is in, is `{ pool: '@nodes', member: '/Common/10.0.0.1' }`.
 *
 * @param options - where the device is and how to log in; nothing is sent before the first call
 * @throws `INVALID_OPTIONS` naming what was expected
 */
export function f5Bigip(options: F5BigipOptions): DrainableProvider & ProviderEvents {
  return withEvents(new F5BigipProvider(readOptions(options)))
}
