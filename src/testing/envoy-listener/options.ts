import * as z from 'zod/mini'
import { matching, nonEmpty, whole } from '../../provider/option-schemas.js'
import { parseOptions } from '../../provider/options.js'

/** Options of `startFake`. */
export interface FakeOptions {
  /** Port of the admin API; 0 takes a free one. @default 0 */
  readonly port?: number
  /** Unix socket of the admin API, in place of a port. */
  readonly socket?: string
  /** @default '1.40.0' */
  readonly version?: string
  /** The pool that its member is in, as given to `envoyListener()`. @default 'envoy' */
  readonly pool?: string
  /** `node.id`. @default 'gateway-1' */
  readonly node?: string
  /** Whether its HTTP listener has the health check filter. @default true */
  readonly healthCheck?: boolean
  /** How often the balancer in front checks its health, ms; 0: it does not. @default 20 */
  readonly checkInterval?: number
  /** Prefixes of the admin paths that are allowed. @default every path */
  readonly allowPaths?: readonly string[]
  /** What `stats_matcher` keeps from being shown: patterns of names. @default none */
  readonly hiddenStats?: readonly RegExp[]
  /** `--drain-time-s`, in ms: how long after `/drain_listeners?graceful` its listeners close. @default 600000 */
  readonly drainTime?: number
  /** `--parent-shutdown-time-s`, in ms. @default 900000 */
  readonly parentShutdown?: number
  /** `stats_flush_interval`, ms: how old the figures of the process before a hot restart are. @default 5000 */
  readonly statsFlush?: number
}

const ms = z.number().check(z.minimum(0))

const schema = z.strictObject({
  port: z._default(whole(0, 65_535), 0),
  socket: z.exactOptional(nonEmpty()),
  version: z._default(matching(/^\d+\.\d+\.\d+$/, "expected a version such as '1.40.0'"), '1.40.0'),
  pool: z._default(nonEmpty(), 'envoy'),
  node: z._default(z.string(), 'gateway-1'),
  healthCheck: z._default(z.boolean(), true),
  checkInterval: z._default(ms, 20),
  allowPaths: z.exactOptional(z.array(z.string())),
  hiddenStats: z._default(z.array(z.instanceof(RegExp)), []),
  drainTime: z._default(ms, 600_000),
  parentShutdown: z._default(ms, 900_000),
  statsFlush: z._default(ms, 5_000),
})

export type Settings = Readonly<z.output<typeof schema>>

/** @throws `INVALID_OPTIONS` */
export function toSettings(options: FakeOptions): Settings {
  return parseOptions(schema, options, 'startFake()')
}
