import * as z from 'zod/mini'
import { matching, nonEmpty, whole } from '../../provider/option-schemas.js'
import { parseOptions } from '../../provider/options.js'

/** One endpoint of the fake. */
export interface FakeEndpoint {
  readonly address: string
  readonly port: number
  /** Shown by the admin API. */
  readonly hostname?: string
  /** Its `envoy.lb` metadata: what subsets are made by. */
  readonly labels?: Readonly<Record<string, string>>
}

/** Where the fake takes the endpoints of its clusters from, as a real Envoy would. */
export type FakeEds =
  /** A file that is watched: only one that is moved onto the path is noticed. */
  | { readonly file: string }
  /** A file for each cluster. */
  | { readonly files: Readonly<Record<string, string>> }
  /** A REST xDS server, polled every `interval` ms. Default 50. */
  | { readonly rest: string; readonly interval?: number }
  /** A gRPC xDS server: `http://127.0.0.1:18000`, without TLS. */
  | { readonly grpc: string; readonly ads?: boolean; readonly delta?: boolean }

/** Options of `startFake`. */
export interface FakeOptions {
  /**
   * Clusters and their endpoints, `10.0.0.1:80` or with a hostname. Without `eds` the fake owns them
   * itself; with it a cluster starts empty and its endpoints come from there.
   * @default `{ web: ['127.0.0.1:8081', '127.0.0.1:8082', '127.0.0.1:8083'] }`
   */
  readonly pools?: Readonly<Record<string, readonly (string | FakeEndpoint)[]>>
  readonly eds?: FakeEds
  /** EDS service names that differ from the cluster's name. */
  readonly services?: Readonly<Record<string, string>>
  /** Port of the admin API; 0 takes a free one. @default 0 */
  readonly port?: number
  /** Unix socket of the admin API, in place of a port. */
  readonly socket?: string
  /** @default '1.40.0' */
  readonly version?: string
  /** `node.id`. @default 'envoy-1' */
  readonly node?: string
  /** gRPC server that load reports are sent to. */
  readonly loads?: string
  /** `update_merge_window`, ms; it matters before 1.40. @default 1000 */
  readonly mergeWindow?: number
  /** `healthy_panic_threshold`, percent. @default 50 */
  readonly panicThreshold?: number
  /** Active health checks: `setHealth` says what they find. @default false */
  readonly activeChecks?: boolean
  readonly ignoreHealthOnRemoval?: boolean
  readonly closeOnSetChange?: boolean
  /** `connect_timeout`, ms. @default 5000 */
  readonly connectTimeout?: number
  /** Keys of the subset selectors (`lb_subset_config`). @default none */
  readonly subsets?: readonly (readonly string[])[]
  /** The clusters pick hosts by a header (policy `override_host`). @default false */
  readonly overrideHost?: boolean
  /** `--parent-shutdown-time-s`, in ms: how long the process before a hot restart goes on. @default 900000 */
  readonly parentShutdown?: number
  /** `stats_flush_interval`, ms: how old the figures of that process are. @default 5000 */
  readonly statsFlush?: number
  /** What `stats_matcher` keeps from being shown: patterns of names. @default none */
  readonly hiddenStats?: readonly RegExp[]
  /** `deferred_stat_options`: a cluster has no statistics of traffic before its first request. @default false */
  readonly deferredStats?: boolean
  /** Prefixes of the admin paths that are allowed. @default every path */
  readonly allowPaths?: readonly string[]
}

const endpoint = z.union([
  matching(/^(\[[^\]]+\]|[^:/]+):\d+$|^\//, "expected '10.0.0.1:80', '[::1]:80' or a path"),
  z.strictObject({
    address: nonEmpty(),
    port: whole(1, 65_535),
    hostname: z.exactOptional(z.string()),
    labels: z.exactOptional(z.record(z.string(), z.string())),
  }),
])
const ms = z.number().check(z.minimum(0))
const flag = z.boolean()
const url = z.string().check(z.url('Invalid URL'))

const schema = z.strictObject({
  pools: z.exactOptional(z.record(nonEmpty(), z.array(endpoint))),
  eds: z.exactOptional(
    z.union([
      z.strictObject({ file: nonEmpty() }),
      z.strictObject({ files: z.record(nonEmpty(), nonEmpty()) }),
      z.strictObject({ rest: url, interval: z.exactOptional(ms) }),
      z.strictObject({
        grpc: url,
        ads: z.exactOptional(flag),
        delta: z.exactOptional(flag),
      }),
    ]),
  ),
  services: z.exactOptional(z.record(z.string(), z.string())),
  port: z.exactOptional(whole(0, 65_535)),
  socket: z.exactOptional(nonEmpty()),
  version: z.exactOptional(matching(/^\d+\.\d+\.\d+$/, "expected a version such as '1.40.0'")),
  node: z.exactOptional(z.string()),
  loads: z.exactOptional(url),
  mergeWindow: z.exactOptional(ms),
  panicThreshold: z.exactOptional(z.number().check(z.minimum(0), z.maximum(100))),
  activeChecks: z.exactOptional(flag),
  ignoreHealthOnRemoval: z.exactOptional(flag),
  closeOnSetChange: z.exactOptional(flag),
  connectTimeout: z.exactOptional(ms),
  subsets: z.exactOptional(z.array(z.array(nonEmpty()).check(z.minLength(1)))),
  overrideHost: z.exactOptional(flag),
  parentShutdown: z.exactOptional(ms),
  statsFlush: z.exactOptional(ms),
  hiddenStats: z.exactOptional(z.array(z.instanceof(RegExp))),
  deferredStats: z.exactOptional(flag),
  allowPaths: z.exactOptional(z.array(z.string())),
})

/** Options with every default filled in. */
export interface Settings {
  readonly pools: Readonly<Record<string, readonly FakeEndpoint[]>>
  readonly eds: FakeEds | undefined
  readonly services: Readonly<Record<string, string>>
  readonly port: number
  readonly socket: string | undefined
  readonly version: readonly [number, number, number]
  readonly node: string
  readonly loads: string | undefined
  readonly mergeWindow: number
  readonly panicThreshold: number
  readonly activeChecks: boolean
  readonly ignoreHealthOnRemoval: boolean
  readonly closeOnSetChange: boolean
  readonly connectTimeout: number
  readonly subsets: readonly (readonly string[])[]
  readonly overrideHost: boolean
  readonly parentShutdown: number
  readonly statsFlush: number
  readonly hiddenStats: readonly RegExp[]
  readonly deferredStats: boolean
  readonly allowPaths: readonly string[] | undefined
}

/** What the options leave out. */
const DEFAULTS = {
  pools: { web: ['127.0.0.1:8081', '127.0.0.1:8082', '127.0.0.1:8083'] },
  eds: undefined,
  services: {},
  port: 0,
  socket: undefined,
  version: '1.40.0',
  node: 'envoy-1',
  loads: undefined,
  mergeWindow: 1_000,
  panicThreshold: 50,
  activeChecks: false,
  ignoreHealthOnRemoval: false,
  closeOnSetChange: false,
  connectTimeout: 5_000,
  subsets: [],
  overrideHost: false,
  parentShutdown: 900_000,
  statsFlush: 5_000,
  hiddenStats: [],
  deferredStats: false,
  allowPaths: undefined,
}

/** @throws `INVALID_OPTIONS` */
export function toSettings(options: FakeOptions): Settings {
  const filled = { ...DEFAULTS, ...parseOptions(schema, options, 'startFake()') }
  const [major = 1, minor = 40, patch = 0] = filled.version.split('.').map(Number)
  return {
    ...filled,
    pools: Object.fromEntries(
      Object.entries(filled.pools).map(([pool, members]) => [pool, members.map(toEndpoint)]),
    ),
    version: [major, minor, patch],
  }
}

function toEndpoint(given: string | FakeEndpoint): FakeEndpoint {
  if (typeof given !== 'string') return given
  if (given.startsWith('/')) return { address: given, port: 0 }
  const cut = given.lastIndexOf(':')
  return {
    address: given.slice(0, cut).replace(/^\[|\]$/g, ''),
    port: Number(given.slice(cut + 1)),
  }
}
