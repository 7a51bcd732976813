/**
 * What a proxy was told, as its `/config_dump` has it.
 *
 * `/config_dump?include_eds` shows the endpoint sets, with three traps: its `health_status` is the
 * computed health (a DRAINING host is UNHEALTHY there), hosts that were removed and only wait for a
 * failing check are still in it, and a locality without a weight has weight 0, which Envoy itself
 * would reject. {@link adoptable} undoes all three with the help of `/clusters`.
 */
import { durationOf, statName } from '../../../kit/envoy/answers.js'
import { isObject, type JsonObject, type JsonValue } from '../../../kit/json.js'
import type { Json } from '../../../provider/contract.js'
import type { HostRow } from './admin.js'
import { answer, NOBODY } from './answer.js'
import { problemError } from './assignment.js'
import { JsonAssignment } from './json.js'
import { failsOnPanic, policiesOf, subsetsOf, type SubsetRules } from './policies.js'
import { field, withoutKeys } from './proto-json.js'
import { ownStatsMatcher, type StatsMatcher } from './stats-matcher.js'

/** What a proxy's configuration says about a cluster; undefined where it cannot be read. */
export interface ClusterConfig {
  readonly cluster: string
  /** Name of its endpoint set. */
  readonly service: string
  /** What its statistics go by: `cluster.<stat>.`. */
  readonly stat: string
  /** Which of them it makes; undefined: those that the proxy makes of any. */
  readonly shows: StatsMatcher | undefined
  readonly activeChecks: boolean
  readonly ignoreHealthOnRemoval: boolean
  readonly closeOnSetChange: boolean
  /** Percent, rounded as Envoy does; 50 where it is not set. */
  readonly panicThreshold: number
  /** A panic answers 503, see `failsOnPanic`. */
  readonly failOnPanic: boolean
  /** Milliseconds; 1,000 where it is not set. */
  readonly mergeWindow: number
  readonly connectTimeout: number
  /** The status, listed in `override_host_status`, as which sticky sessions can come back to a draining host. */
  readonly returningAs: 'DRAINING' | 'UNHEALTHY' | undefined
  /** Sticky sessions reach hosts that are UNHEALTHY in their set. */
  readonly stickyWhileUnhealthy: boolean
  /** Hosts are picked by a header or by metadata of the request, draining ones too. */
  readonly overrideHost: boolean
  /** How its hosts are divided into subsets, each with a panic of its own; undefined: they are not. */
  readonly subsets: SubsetRules | undefined
}

/** A cluster that is not fed by EDS. */
export interface OtherCluster {
  readonly cluster: string
  /** What its statistics go by. */
  readonly stat: string
  /** Such as `STRICT_DNS`; of a custom type its name. */
  readonly type: string
  /** The clusters that an aggregate hands its requests on to; none: it is no aggregate. */
  readonly parts: readonly string[]
  /** As in {@link ClusterConfig.panicThreshold}. */
  readonly panicThreshold: number
}

/** A cluster that hands its requests on to others, in their order. */
export type Aggregate = OtherCluster

/** `/config_dump?resource=static_clusters` or `dynamic_active_clusters`. */
export function parseClusters(
  text: string,
  from = NOBODY,
): { readonly eds: ClusterConfig[]; readonly others: OtherCluster[] } {
  const clusters = configsOf(text, from).map((config) => config.at('cluster').needed('a cluster'))
  const isEds = (cluster: JsonValue): boolean => cluster.at('type').word() === 'EDS'
  return {
    eds: clusters.filter(isEds).map(toClusterConfig),
    others: clusters.filter((cluster) => !isEds(cluster)).map(toOtherCluster),
  }
}

function toOtherCluster(cluster: JsonValue): OtherCluster {
  const custom = cluster.at('cluster_type')
  const parts = custom.at('typed_config').at('clusters').list()
  const name = cluster.at('name').neededText()
  return {
    cluster: name,
    stat: statOf(cluster, name),
    // The default of the enum is left out.
    type: custom.at('name').text() ?? cluster.at('type').word() ?? 'STATIC',
    parts: parts.map((part) => part.text() ?? ''),
    panicThreshold: panicThresholdOf(cluster),
  }
}

/** A threshold that is there without a value is 0: proto3 leaves a zero out. */
function panicThresholdOf(cluster: JsonValue): number {
  const threshold = cluster.at('common_lb_config').at('healthy_panic_threshold')
  return threshold.present ? percentOf(threshold.at('value')) : 50
}

function toClusterConfig(cluster: JsonValue): ClusterConfig {
  const name = cluster.at('name').neededText()
  const service = cluster.at('eds_cluster_config').at('service_name').text() ?? ''
  const common = cluster.at('common_lb_config')
  const listed = common.at('override_host_status').at('statuses').list()
  const statuses = new Set(listed.map((status) => status.word()))
  const policies = policiesOf(cluster.at('load_balancing_policy'))
  return {
    cluster: name,
    service: service === '' ? name : service,
    stat: statOf(cluster, name),
    shows: ownStatsMatcher(cluster),
    activeChecks: hasChecks(cluster),
    ignoreHealthOnRemoval: cluster.at('ignore_health_on_host_removal').flag() === true,
    closeOnSetChange: common.at('close_connections_on_host_set_change').flag() === true,
    panicThreshold: panicThresholdOf(cluster),
    failOnPanic: failsOnPanic(cluster),
    mergeWindow: durationOf(common.at('update_merge_window')) ?? 1_000,
    connectTimeout: durationOf(cluster.at('connect_timeout')) ?? 5_000,
    returningAs: returningAs(cluster, statuses),
    stickyWhileUnhealthy: statuses.has('UNHEALTHY'),
    overrideHost: policies.some(({ type }) => type.endsWith('.override_host.v3.OverrideHost')),
    subsets: subsetsOf([
      cluster.at('lb_subset_config'),
      ...policies.flatMap(({ type, config }) =>
        type.endsWith('.subset.v3.Subset') ? [config] : [],
      ),
    ]),
  }
}

/**
 * While its active check fails, or it is ejected, a host counts as UNHEALTHY, whatever its set says. TIMEOUT is never said of
 * it then, not even where the check times out. Envoy 1.39.3, 1.40.0.
 */
function returningAs(
  cluster: JsonValue,
  statuses: ReadonlySet<string | undefined>,
): ClusterConfig['returningAs'] {
  if (statuses.has('DRAINING')) return 'DRAINING'
  const isWatched = hasChecks(cluster) || cluster.at('outlier_detection').present
  return isWatched && statuses.has('UNHEALTHY') ? 'UNHEALTHY' : undefined
}

function hasChecks(cluster: JsonValue): boolean {
  return cluster.at('health_checks').list().length > 0
}

function percentOf(value: JsonValue): number {
  const percent = value.number() ?? 0
  if (percent >= 0 && percent <= 100) return Math.round(percent)
  throw value.wrong('a percentage')
}

function statOf(cluster: JsonValue, name: string): string {
  const alternative = cluster.at('alt_stat_name').text() ?? ''
  return statName(alternative === '' ? name : alternative)
}

/** Where requests are sent to clusters. */
const ROUTING = ['Listeners', 'Routes', 'ScopedRoutes', 'Ecds'].map((what) => `.${what}ConfigDump`)
/** Here the request itself, or a plugin, says which cluster it goes to. */
const OPEN = new Set([
  'cluster_header',
  'cluster_specifier_plugin',
  'inline_cluster_specifier_plugin',
])

/** Those of the clusters that a listener or a route may send requests to itself, by the whole of `/config_dump`. */
export function namedClusters(
  text: string,
  clusters: readonly string[],
  from = NOBODY,
): ReadonlySet<string> {
  const named = new Set<string>()
  const visit = (value: unknown): void => {
    if (typeof value === 'string' && clusters.includes(value)) named.add(value)
    else if (Array.isArray(value)) for (const inner of value) visit(inner)
    else if (isObject(value)) {
      for (const [key, inner] of Object.entries(value)) {
        if (OPEN.has(key)) for (const cluster of clusters) named.add(cluster)
        visit(inner)
      }
    }
  }
  for (const config of configsOf(text, from)) {
    const type = config.at('@type').text() ?? ''
    if (ROUTING.some((known) => type.endsWith(known))) visit(config.value)
  }
  return named
}

/** The endpoint sets in `/config_dump?include_eds`, as they stand there. */
export function parseEndpointsDump(text: string, from = NOBODY): JsonValue[] {
  return configsOf(text, from).map((config) => {
    const set = config.at('endpoint_config').needed('an endpoint set')
    for (const group of set.at('endpoints').rows()) group.at('lb_endpoints').rows()
    return set
  })
}

/**
 * An endpoint set of `/config_dump` as its owner wrote it, as far as a proxy still knows: statuses by
 * `/clusters`, removed hosts left out, localities without the weight they never had.
 */
export function adoptable(
  dump: JsonObject,
  rows: ReadonlyMap<string, HostRow>,
  from = NOBODY,
): JsonAssignment {
  const groups = field(dump, 'endpoints')
  const endpoints = (Array.isArray(groups) ? groups : []).map((group: Json) =>
    isObject(group) && group['load_balancing_weight'] === 0
      ? withoutKeys(group, 'load_balancing_weight')
      : group,
  )
  const hosts = [...rows.values()]
  const removed = hosts.filter(({ pendingRemoval }) => pendingRemoval)
  try {
    return JsonAssignment.parse({ ...dump, endpoints })
      .without(new Set(removed.map(({ member }) => member)))
      .withStatus(new Map(hosts.map(({ member, eds }) => [member, eds])))
  } catch (problem) {
    throw problemError(problem, 'MALFORMED_REPLY', from)
  }
}

function configsOf(text: string, from: string): readonly JsonValue[] {
  return answer(text, '/config_dump', from).at('configs').rows()
}
