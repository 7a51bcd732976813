import * as z from 'zod'
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
  z.string().regex(/^(\[[^\]]+\]|[^:/]+):\d+$|^\//, "expected '10.0.0.1:80', '[::1]:80' or a path"),
  z.strictObject({
    address: z.string().min(1),
    port: z.number().int().min(1).max(65_535),
    hostname: z.string().exactOptional(),
    labels: z.record(z.string(), z.string()).exactOptional(),
  }),
])
const ms = z.number().min(0)
const flag = z.boolean()

const schema = z.strictObject({
  pools: z.record(z.string().min(1), z.array(endpoint)).exactOptional(),
  eds: z
    .union([
      z.strictObject({ file: z.string().min(1) }),
      z.strictObject({ files: z.record(z.string().min(1), z.string().min(1)) }),
      z.strictObject({ rest: z.url(), interval: ms.exactOptional() }),
      z.strictObject({ grpc: z.url(), ads: flag.exactOptional(), delta: flag.exactOptional() }),
    ])
    .exactOptional(),
  services: z.record(z.string(), z.string()).exactOptional(),
  port: z.number().int().min(0).max(65_535).exactOptional(),
  socket: z.string().min(1).exactOptional(),
  version: z
    .string()
    .regex(/^\d+\.\d+\.\d+$/, "expected a version such as '1.40.0'")
    .exactOptional(),
  node: z.string().exactOptional(),
  loads: z.url().exactOptional(),
  mergeWindow: ms.exactOptional(),
  panicThreshold: z.number().min(0).max(100).exactOptional(),
  activeChecks: flag.exactOptional(),
  ignoreHealthOnRemoval: flag.exactOptional(),
  closeOnSetChange: flag.exactOptional(),
  connectTimeout: ms.exactOptional(),
  subsets: z.array(z.array(z.string().min(1)).min(1)).exactOptional(),
  overrideHost: flag.exactOptional(),
  parentShutdown: ms.exactOptional(),
  statsFlush: ms.exactOptional(),
  hiddenStats: z.array(z.instanceof(RegExp)).exactOptional(),
  deferredStats: flag.exactOptional(),
  allowPaths: z.array(z.string()).exactOptional(),
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
