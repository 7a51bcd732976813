import type { EndpointSink, LoadReports, NodeLoad } from '../sources/sink.js'
import type { Proxy } from './proxy.js'
import { viewOf, type ProxyView, type Roster } from './roster.js'

/** Load reports of older ones miss a request that spans an interval. */
const LOADS_FROM = [1, 37] as const
const NODE = 'node '

export interface NodeOptions {
  readonly roster: Roster
  readonly sink: EndpointSink
  readonly loads: LoadReports | undefined
  readonly now: () => number
  /** Whether there are admin addresses at all. */
  readonly hasAdmin: boolean
  /** Whether the caller's list dropped the admin address of that node. */
  readonly isDropped: (node: string) => boolean
}

/** The processes that take sets or report loads, and that no view of an admin address stands for. */
export function nodeViews(views: readonly ProxyView[], options: NodeOptions): ProxyView[] {
  const { sink, roster } = options
  // A proxy that never answered may be any of the nodes; it is unread already. Who was seen stays.
  const strangers = views.some((view) => view.node === undefined)
  const covered = new Map<string | undefined, ProxyView[]>()
  for (const view of views) {
    if (view.state !== 'ended') covered.set(view.node, [...(covered.get(view.node) ?? []), view])
  }
  const loads = new Map<string, NodeLoad[]>()
  for (const load of options.loads?.nodes() ?? []) {
    loads.set(load.node, [...(loads.get(load.node) ?? []), load])
  }
  const found: ProxyView[] = []
  for (const name of new Set([...(sink.subscribers?.nodes() ?? []), ...loads.keys()])) {
    if (isDropped(name, options)) continue
    const reports = loads.get(name) ?? []
    const processes = covered.get(name)
    if (processes !== undefined) {
      found.push(...surplusViews(name, processes, reports, options))
      continue
    }
    if (strangers && !roster.has(nodeKey(name, 0))) continue
    // Each process has streams of its own, whatever node id it was given.
    const count = Math.max(1, reports.length, streamsOf(name, reports, options))
    for (let i = 0; i < count; i++) found.push(nodeView(name, i, reports[i], options))
  }
  return found
}

/**
 * The processes that streams of a node account for. Clusters of one process that take the same set ask for it separately: how
 * many there are is in its load reports. Before the first report the node is unread anyway.
 */
function streamsOf(node: string, reports: readonly NodeLoad[], options: NodeOptions): number {
  const { sink, hasAdmin } = options
  if (!hasAdmin && !reports.some((load) => load.reports)) return 0
  const each = (set: string): number => Math.max(1, ...reports.map((load) => load.clusters(set)))
  return sink.subscribers?.streams(node, each) ?? 0
}

/** A copied bootstrap gives two proxies one node id: then more streams come than admin addresses account for. */
function surplusViews(
  node: string,
  covering: readonly ProxyView[],
  reports: readonly NodeLoad[],
  { sink, roster }: NodeOptions,
): ProxyView[] {
  const processes = covering.length
  const live = reports.filter(({ connected }) => connected).length
  const each = (set: string): number =>
    Math.max(...covering.map(({ proxy }) => clustersFedBy(proxy, set)))
  const count = (): number => Math.max(live, sink.subscribers?.streams(node, each) ?? 0)
  const forget = (): boolean => sink.subscribers?.dropOne(node) ?? false
  while (count() > processes && roster.settle(node, forget));
  const streams = count()
  const note = `${streams} proxies take endpoints from here under the node.id '${node}', and the admin addresses are of ${processes} of them: list every proxy under admin, and give each a node.id of its own`
  return Array.from({ length: Math.max(0, streams - processes) }, (_, i) => {
    const known = roster.of(nodeKey(node, processes + i), scopeOf(node, processes + i))
    known.endedAt = undefined
    return viewOf(known, 'unread', { node, note, role: 'place' })
  })
}

function clustersFedBy(proxy: Proxy | undefined, set: string): number {
  const configs = [...(proxy?.facts?.configs.values() ?? [])]
  return Math.max(1, configs.filter(({ service }) => service === set).length)
}

/** A node whose stream is gone, and whose admin address the caller's list dropped. */
function isDropped(node: string, { sink, isDropped: dropped }: NodeOptions): boolean {
  if (sink.subscribers?.isConnected(node) !== false || !dropped(node)) return false
  sink.subscribers.drop(node)
  return true
}

function nodeView(
  node: string,
  index: number,
  load: NodeLoad | undefined,
  { roster, sink, loads, now, hasAdmin }: NodeOptions,
): ProxyView {
  const known = roster.of(nodeKey(node, index), scopeOf(node, index))
  const trouble = hasAdmin
    ? 'it takes endpoints from here, but none of the admin addresses is its own'
    : loadTrouble(load)
  if (trouble === undefined) {
    known.unseenSince = undefined
    known.endedAt = undefined
    return viewOf(known, 'read', { node, load })
  }
  const connected = load?.connected === true || sink.subscribers?.isConnected(node) === true
  if (roster.isGone(known) && !connected) {
    sink.subscribers?.drop(node)
    loads?.drop(node)
    known.endedAt ??= now()
    return viewOf(known, 'ended', {
      node,
      load,
      note: 'not seen for longer than onProxyGone.after',
    })
  }
  return viewOf(known, 'unread', { node, load, note: trouble })
}

function nodeKey(node: string, index: number): string {
  return `${NODE}${scopeOf(node, index)}`
}

function scopeOf(node: string, index: number): string {
  const name = node === '' ? 'a proxy without node.id' : node
  return index === 0 ? name : `${name}#${index + 1}`
}

/** Why load reports of a node cannot be used; undefined: they can. */
function loadTrouble(load: NodeLoad | undefined): string | undefined {
  if (load === undefined) {
    return 'it takes endpoints from here, but neither its admin API nor its load reports are known: list it under admin, or configure load_stats_config in its bootstrap'
  }
  if (!load.connected) return 'its stream is gone; it goes on with the last set it got'
  const { version } = load
  const [major, minor] = LOADS_FROM
  if (
    version !== undefined &&
    (version.major < major || (version.major === major && version.minor < minor))
  ) {
    return `load reports of Envoy ${version.text} miss requests that outlast an interval: list its admin API`
  }
  return load.reports ? undefined : 'no load report came in lately'
}
