/**
 * Drain services and service group members of a Citrix ADC (NetScaler) over NITRO.
 *
 * @example
 * ```ts
 * import { drain, ready } from 'drainable'
 * import { citrixAdc } from 'drainable/citrix-adc'
 *
 * await using adc = citrixAdc({
 *   url: ['https://10.0.0.11', 'https://10.0.0.12'],
 *   username: 'drainer',
 *   password: () => process.env.ADC_PASSWORD ?? '',
 *   tls: { ca: '/etc/ssl/adc.pem' },
 * })
 * const web1 = { pool: 'sg_web', member: '10.0.1.1:80' }
 * await drain(adc, web1, { timeout: '5m' })
 * await ready(adc, web1)
 * ```
 *
 * @packageDocumentation
 */
import type { Dispatcher } from 'undici'
import { type ProviderEvents, withEvents } from '../../core/with-events.js'
import type { DrainableProvider, Secret, Tls } from '../../provider/contract.js'
import type { Duration } from '../../provider/duration.js'
import { parseOptions } from '../../provider/options.js'
import { optionsSchema } from './options.js'
import { CitrixAdcProvider } from './provider.js'

/** How to reach an appliance, and what to do there. */
export interface CitrixAdcOptions {
  /**
   * Management address: an NSIP, a SNIP with management access, or a cluster's own address. Of a pair
   * give both NSIPs, or the SNIP, which always reaches the primary.
   */
  readonly url: string | readonly string[]
  /** User of the appliance; the docs list the commands it must be allowed. */
  readonly username: string
  /** Its password, or a function that fetches it, asked again at each login. */
  readonly password: Secret
  /**
   * `session` logs in once, shares the session and logs out at the end; `headers` sends the password
   * with each request, leaves no session behind, and cannot choose a partition.
   *
   * @default 'session'
   */
  readonly auth?: 'session' | 'headers' | undefined
  /**
   * How long the appliance keeps our session when nothing is asked: what is left of it where this
   * process is killed. From 5 minutes to 24 hours. Where the appliance allows less, its own figure holds.
   *
   * @default '15m'
   */
  readonly sessionTimeout?: Duration | undefined
  /** Partition to work in. @default the default partition */
  readonly partition?: string | undefined
  /**
   * Save the configuration after each change. It writes the whole running configuration, other
   * people's changes too. Without it a reboot forgets a drain, and a drain that is held puts it back.
   *
   * @default false
   */
  readonly save?: boolean | undefined
  /**
   * Groups whose members are kept by a desired state (`autoscale` API) or by DNS: a change of one
   * member is refused here, or tried.
   *
   * @default 'refuse'
   */
  readonly desiredState?: 'refuse' | 'try' | undefined
  /**
   * How old the appliance's counts can be. They are repeated for about seven seconds; a smaller value
   * is for simulators.
   *
   * @default '8s'
   */
  readonly freshness?: Duration | undefined
  /** How long one request may take, connecting included. @default '10s' */
  readonly callTimeout?: Duration | undefined
  /** How the appliance's certificate is verified. @default the system's authorities */
  readonly tls?: Tls | undefined
  /** Send the password over plain HTTP to a host that is not this one. @default false */
  readonly allowPlaintext?: boolean | undefined
  /** A dispatcher of undici's to send requests with. It wins over `tls`, and is never closed here. */
  readonly dispatcher?: Dispatcher | undefined
}

/**
 * A provider for a Citrix ADC, an HA pair or a cluster.
 *
 * Members are `{ pool: <service group>, member: 'server:port' }` or
 * `{ pool: <lb virtual server>, member: <service> }`. Port `*` is written as it is.
 *
 * @throws `INVALID_OPTIONS` naming every wrong option
 */
export function citrixAdc(options: CitrixAdcOptions): DrainableProvider & ProviderEvents {
  return withEvents(new CitrixAdcProvider(parseOptions(optionsSchema, options, 'citrixAdc()')))
}
