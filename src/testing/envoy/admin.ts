import type { Cluster, Host } from './cluster.js'
import type { Settings } from './options.js'
import type { Process } from './process.js'

/** What the admin API answers from. */
export interface AdminState {
  readonly settings: Settings
  readonly process: Process
}

export interface AdminReply {
  readonly status: number
  readonly text: string
}

/** One request to the admin API: reads are GET, and a path that is not allowed is a 403. */
export function answerAdmin(method: string, target: string, state: AdminState): AdminReply {
  const url = new URL(target, 'http://admin')
  const { allowPaths, version } = state.settings
  if (allowPaths !== undefined && !allowPaths.some((path) => url.pathname.startsWith(path))) {
    return { status: 403, text: `request to path ${target} not allowed\n` }
  }
  const query = url.searchParams
  switch (url.pathname) {
    case '/ready':
      return ok('LIVE\n')
    case '/server_info':
      return ok(serverInfo(state))
    case '/runtime':
      return ok('{\n "entries": {},\n "layers": []\n}')
    case '/stats':
      return stats(state, query)
    case '/clusters': {
      // Ignored before 1.38.3.
      const filters = version[1] > 38 || (version[1] === 38 && version[2] >= 3)
      const pattern = filters ? toPattern(query.get('filter')) : undefined
      const clusters = [...state.process.clusters.values()].filter(
        ({ name }) => pattern?.test(name) ?? true,
      )
      return ok(
        query.get('format') === 'json'
          ? clustersJson(clusters, state)
          : clustersText(clusters, state),
      )
    }
    case '/config_dump':
      return ok(configDump(state, query))
    case '/healthcheck/fail':
    case '/healthcheck/ok':
    case '/reset_counters':
    case '/quitquitquit':
      return method === 'POST'
        ? ok('OK\n')
        : { status: 405, text: `Method ${method} not allowed, POST required.` }
    default:
      return { status: 404, text: 'invalid path. admin commands are:\n' }
  }
}

function ok(text: string): AdminReply {
  return { status: 200, text }
}

function serverInfo({ settings, process }: AdminState): string {
  const { current, all } = process.uptime
  return JSON.stringify(
    {
      version: `0000000000000000000000000000000000000000/${settings.version.join('.')}/Clean/RELEASE/fake`,
      state: 'LIVE',
      uptime_current_epoch: `${current}s`,
      uptime_all_epochs: `${all}s`,
      hot_restart_version: '11.104',
      command_line_options: {
        restart_epoch: process.epoch,
        parent_shutdown_time: `${settings.parentShutdown / 1_000}s`,
        skip_hot_restart_parent_stats: false,
      },
      node: { id: settings.node, cluster: 'fake', user_agent_name: 'envoy' },
    },
    undefined,
    1,
  )
}

function stats({ process, settings }: AdminState, query: URLSearchParams): AdminReply {
  const pattern = toPattern(query.get('filter'))
  const isShown = (name: string): boolean =>
    (pattern?.test(name) ?? true) && !settings.hiddenStats.some((hidden) => hidden.test(name))
  // A removed one has its statistics until its last request has ended.
  const removed = process.removed.filter(
    ({ name, active }) => active > 0 && !process.clusters.has(name),
  )
  const shown = [...process.clusters.values(), ...removed]
  const lines = [...serverStats(process), ...shown.flatMap(clusterStats)]
  const found = lines.filter(([name]) => isShown(name))
  return ok(found.map(([name, value]) => `${name}: ${value}\n`).join(''))

  function clusterStats(cluster: Cluster): [string, number | string][] {
    const pending = [...cluster.hosts.values()].reduce((sum, host) => sum + host.pending, 0)
    const before = process.removed.filter((one) => one !== cluster && one.name === cluster.name)
    const active = before.reduce((sum, one) => sum + one.active, cluster.active)
    const { total, healthy, degraded, excluded } = cluster.membership
    const hasBegun = cluster.totals.requests + pending + active > 0
    const isDeferred = settings.deferredStats && !hasBegun
    const begun = { 'ClusterTrafficStats.initialized': hasBegun ? 1 : 0 }
    const traffic = {
      upstream_rq_active: active + process.parents(cluster.name),
      upstream_rq_pending_active: pending,
      upstream_rq_total: cluster.totals.requests,
      upstream_cx_active: before.reduce((sum, one) => sum + one.connections, cluster.connections),
      upstream_cx_total: cluster.totals.connections,
    }
    const values: Readonly<Record<string, number | string>> = {
      version_text: `"${cluster.version}"`,
      lb_healthy_panic: cluster.counters.panic,
      membership_change: cluster.totals.changes,
      lb_subsets_fallback_panic: 0,
      membership_total: total,
      membership_healthy: healthy,
      membership_degraded: degraded,
      membership_excluded: excluded,
      update_attempt: cluster.counters.attempt,
      update_failure: cluster.counters.failure,
      update_no_rebuild: cluster.counters.noRebuild,
      update_rejected: cluster.counters.rejected,
      update_success: cluster.counters.success,
      ...(settings.deferredStats && query.get('hidden') === 'include' ? begun : {}),
      ...(isDeferred ? {} : traffic),
    }
    return Object.entries(values).map(([name, value]) => [`cluster.${cluster.name}.${name}`, value])
  }
}

function serverStats({ merged, added, clusters }: Process): [string, number][] {
  return [
    ['cluster_manager.cluster_added', added],
    ['cluster_manager.cluster_modified', 0],
    ['cluster_manager.cluster_removed', added - clusters.size],
    ['server.parent_connections', merged?.connections ?? 0],
    ['server.uptime', merged?.uptime ?? 0],
  ]
}

function clustersJson(clusters: readonly Cluster[], { settings }: AdminState): string {
  if (clusters.length === 0) return '{}'
  return JSON.stringify({
    cluster_statuses: clusters.map((cluster) => ({
      name: cluster.name,
      ...(cluster.hosts.size === 0
        ? {}
        : { host_statuses: [...cluster.hosts.values()].map((host) => hostJson(host, settings)) }),
      observability_name: cluster.name,
      eds_service_name: cluster.service,
    })),
  })
}

function hostJson(host: Host, settings: Settings): unknown {
  const { endpoint } = host
  const stat = (name: string, value: number, type?: string): unknown => ({
    ...(type === undefined ? {} : { type }),
    ...(value === 0 ? {} : { value: String(value) }),
    name,
  })
  return {
    address: addressJson(endpoint),
    stats: [
      stat('cx_connect_fail', 0),
      stat('cx_total', host.connections),
      stat('rq_error', 0),
      stat('rq_success', host.requests - host.active),
      stat('rq_timeout', 0),
      stat('rq_total', host.requests),
      stat('cx_active', host.active + host.idle, 'GAUGE'),
      stat('rq_active', host.active, 'GAUGE'),
      ...(countsPending(settings) ? [stat('rq_pending_active', host.pending, 'GAUGE')] : []),
    ],
    health_status: {
      eds_health_status: shown(host),
      ...(host.failedCheck ? { failed_active_health_check: true } : {}),
      ...(host.pendingRemoval ? { pending_dynamic_removal: true } : {}),
    },
    weight: endpoint.weight ?? 1,
    ...(endpoint.hostname === '' ? {} : { hostname: endpoint.hostname }),
    locality: localityJson(endpoint),
    ...(endpoint.priority === 0 ? {} : { priority: endpoint.priority }),
  }
}

function clustersText(clusters: readonly Cluster[], { settings }: AdminState): string {
  return clusters.map((cluster) => clusterText(cluster, settings)).join('')
}

function clusterText(cluster: Cluster, settings: Settings): string {
  const lines = [
    `observability_name::${cluster.name}`,
    'default_priority::max_connections::1024',
    'added_via_api::false',
    `eds_service_name::${cluster.service}`,
    ...[...cluster.hosts.values()].flatMap((host) => {
      const { endpoint } = host
      const flags = [
        ...(host.failedCheck ? ['/failed_active_hc'] : []),
        ...(shown(host) === 'DRAINING' ? ['/eds_status_draining'] : []),
        ...(shown(host) === 'UNHEALTHY' ? ['/failed_eds_health'] : []),
        ...(shown(host) === 'DEGRADED' ? ['/degraded_eds_health'] : []),
        ...(host.pendingRemoval ? ['/pending_dynamic_removal'] : []),
      ].join('')
      const values: Readonly<Record<string, string | number>> = {
        cx_active: host.active + host.idle,
        cx_connect_fail: 0,
        cx_total: host.connections,
        rq_active: host.active,
        rq_error: 0,
        ...(countsPending(settings) ? { rq_pending_active: host.pending } : {}),
        rq_success: host.requests - host.active,
        rq_timeout: 0,
        rq_total: host.requests,
        hostname: endpoint.hostname,
        health_flags: flags === '' ? 'healthy' : flags,
        weight: endpoint.weight ?? 1,
        region: endpoint.locality.region,
        zone: endpoint.locality.zone,
        sub_zone: endpoint.locality.subZone,
        canary: 'false',
        priority: endpoint.priority,
      }
      return Object.entries(values).map(([key, value]) => `${host.name}::${key}::${value}`)
    }),
  ]
  return lines.map((line) => `${cluster.name}::${line}\n`).join('')
}

function configDump(state: AdminState, query: URLSearchParams): string {
  const resource = query.get('resource')
  const clusters = [...state.process.clusters.values()]
  const updated = state.process.bootAt.toISOString()
  if (query.get('mask') === 'bootstrap.stats_config') return bootstrapDump(state.settings)
  if (resource === 'static_clusters') {
    if (query.get('mask') === 'last_updated') return configs([{ last_updated: updated }])
    return configs(
      clusters.map((cluster) => ({
        cluster: clusterConfig(cluster, state.settings),
        last_updated: updated,
      })),
    )
  }
  if (resource === 'static_endpoint_configs' && query.has('include_eds')) {
    return configs(clusters.map((cluster) => ({ endpoint_config: dumped(cluster) })))
  }
  return configs([])
}

/** What it hides, as a `stats_matcher` says it. */
function bootstrapDump({ hiddenStats }: Settings): string {
  const patterns = hiddenStats.map(({ source }) => ({ safe_regex: { regex: `.*(?:${source}).*` } }))
  const matcher = { stats_matcher: { exclusion_list: { patterns } } }
  const bootstrap = patterns.length === 0 ? {} : { stats_config: matcher }
  return configs([{ '@type': 'type.googleapis.com/envoy.admin.v3.BootstrapConfigDump', bootstrap }])
}

function configs(list: readonly unknown[]): string {
  return list.length === 0 ? '{}' : JSON.stringify({ configs: list })
}

function clusterConfig({ name, service }: Cluster, settings: Settings): unknown {
  const { panicThreshold, subsets, overrideHost } = settings
  const roundRobin = policyOf('round_robin.v3.RoundRobin', {})
  return {
    name,
    type: 'EDS',
    eds_cluster_config: service === name ? {} : { service_name: service },
    connect_timeout: `${settings.connectTimeout / 1_000}s`,
    ...(settings.activeChecks ? { health_checks: [{ timeout: '1s', interval: '1s' }] } : {}),
    ...(settings.ignoreHealthOnRemoval ? { ignore_health_on_host_removal: true } : {}),
    ...(subsets.length === 0
      ? {}
      : {
          lb_subset_config: {
            fallback_policy: 'ANY_ENDPOINT',
            subset_selectors: subsets.map((keys) => ({ keys })),
          },
        }),
    ...(overrideHost
      ? {
          load_balancing_policy: policyOf('override_host.v3.OverrideHost', {
            override_host_sources: [{ header: 'x-pick' }],
            fallback_policy: roundRobin,
          }),
        }
      : {}),
    common_lb_config: {
      update_merge_window: `${settings.mergeWindow / 1_000}s`,
      healthy_panic_threshold: panicThreshold === 0 ? {} : { value: panicThreshold },
      ...(settings.closeOnSetChange ? { close_connections_on_host_set_change: true } : {}),
    },
  }
}

function policyOf(type: string, config: Readonly<Record<string, unknown>>): unknown {
  const typed = {
    '@type': `type.googleapis.com/envoy.extensions.load_balancing_policies.${type}`,
    ...config,
  }
  return { policies: [{ typed_extension_config: { name: 'policy', typed_config: typed } }] }
}

/** The set as the dump shows it: health as computed, removed hosts still in it, a weight of 0 where there is none. */
function dumped(cluster: Cluster): unknown {
  const groups = new Map<string, { locality: unknown; priority: number; hosts: Host[] }>()
  for (const host of cluster.hosts.values()) {
    const { locality, priority } = host.endpoint
    const key = JSON.stringify([locality, priority])
    const group = groups.get(key) ?? { locality: localityJson(host.endpoint), priority, hosts: [] }
    group.hosts.push(host)
    groups.set(key, group)
  }
  return {
    '@type': 'type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment',
    cluster_name: cluster.service,
    endpoints: [...groups.values()].map(({ locality, priority, hosts }) => ({
      locality,
      lb_endpoints: hosts.map((host) => ({
        endpoint: {
          address: addressJson(host.endpoint),
          health_check_config: {},
          ...(host.endpoint.hostname === '' ? {} : { hostname: host.endpoint.hostname }),
        },
        health_status: shown(host) === 'HEALTHY' && !host.failedCheck ? 'HEALTHY' : 'UNHEALTHY',
        ...(Object.keys(host.endpoint.labels).length === 0
          ? {}
          : { metadata: { filter_metadata: { 'envoy.lb': host.endpoint.labels } } }),
        load_balancing_weight: host.endpoint.weight ?? 1,
      })),
      load_balancing_weight: 0,
      ...(priority === 0 ? {} : { priority }),
    })),
    policy: { overprovisioning_factor: 140 },
  }
}

function addressJson({ address, port }: Host['endpoint']): unknown {
  return address.startsWith('/')
    ? { pipe: { path: address } }
    : { socket_address: { address, port_value: port } }
}

function localityJson({ locality }: Host['endpoint']): unknown {
  const parts = { region: locality.region, zone: locality.zone, sub_zone: locality.subZone }
  return Object.fromEntries(Object.entries(parts).filter(([, value]) => value !== ''))
}

/** How the admin API names a status: unset is healthy, a time-out is unhealthy. */
function shown({ endpoint }: Host): string {
  if (endpoint.status === 'UNKNOWN') return 'HEALTHY'
  return endpoint.status === 'TIMEOUT' ? 'UNHEALTHY' : endpoint.status
}

function countsPending({ version: [, minor, patch] }: Settings): boolean {
  return minor >= 40 || (minor === 39 && patch >= 3)
}

function toPattern(filter: string | null): RegExp | undefined {
  return filter === null ? undefined : new RegExp(filter)
}
