import * as z from 'zod'
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

const ms = z.number().min(0)

const schema = z.strictObject({
  port: z.int().min(0).max(65_535).default(0),
  socket: z.string().min(1).exactOptional(),
  version: z
    .string()
    .regex(/^\d+\.\d+\.\d+$/, "expected a version such as '1.40.0'")
    .default('1.40.0'),
  pool: z.string().min(1).default('envoy'),
  node: z.string().default('gateway-1'),
  healthCheck: z.boolean().default(true),
  checkInterval: ms.default(20),
  allowPaths: z.array(z.string()).exactOptional(),
  hiddenStats: z.array(z.instanceof(RegExp)).default([]),
  drainTime: ms.default(600_000),
  parentShutdown: ms.default(900_000),
  statsFlush: ms.default(5_000),
})

export type Settings = Readonly<z.output<typeof schema>>

/** @throws `INVALID_OPTIONS` */
export function toSettings(options: FakeOptions): Settings {
  return parseOptions(schema, options, 'startFake()')
}
