import { endpointsOfNodes, type EndpointInput } from './endpoint.js'
import * as s from './shape.js'

/**
 * The part of a Node (`v1`) that is read. The objects of any client fit, and so does the JSON of the API; other
 * fields are ignored.
 */
export interface Node {
  readonly metadata?: {
    readonly name?: string | null
    readonly uid?: string | null
    readonly labels?: Readonly<Record<string, string>> | null
    /** When its deletion was requested; it stays until its finalizers are done. */
    readonly deletionTimestamp?: string | Date | null
  } | null
  readonly spec?: {
    readonly taints?: readonly NodeTaint[] | null
    /** Whether it is cordoned. */
    readonly unschedulable?: boolean | null
  } | null
  readonly status?: {
    readonly addresses?: readonly NodeAddress[] | null
    readonly conditions?: readonly NodeCondition[] | null
  } | null
}

/** A taint of a node: only its key is read. */
export interface NodeTaint {
  readonly key: string
}

/** An address of a node. */
export interface NodeAddress {
  /** The type, such as `InternalIP`. */
  readonly type: string
  readonly address: string
}

/** A condition of a node: `Ready`, and those that mark a leaving node, are read. */
export interface NodeCondition {
  readonly type: string
  /** `True`, `False` or `Unknown`. */
  readonly status: string
}

/** The signs that a node is leaving. */
export interface NodeEnd {
  /**
   * The keys of taints that mark a leaving node.
   * @default ['ToBeDeletedByClusterAutoscaler', 'karpenter.sh/disrupted']
   */
  readonly taints?: readonly string[]
  /**
   * The types of node conditions that mark a leaving node while they are `True`. Those of KEP-5683 (Kubernetes 1.37,
   * alpha) have their own names. `MaintenancePlanned` and `MaintenanceInProgress` are not defaults: the first can be
   * days ahead, and not all maintenance needs a drain.
   * @default ['DrainInProgress', 'Drained', 'GracefulNodeShutdownInProgress']
   */
  readonly conditions?: readonly string[]
  /**
   * Whether a cordon (`spec.unschedulable`) alone marks a leaving node. It only keeps new pods away. @default
   * 'ignore'
   */
  readonly cordon?: 'ignore' | 'drain'
}

/** Taints of autoscalers. */
export const TAINTS = ['ToBeDeletedByClusterAutoscaler', 'karpenter.sh/disrupted']
const SHUTDOWN = 'GracefulNodeShutdownInProgress'
const CONDITIONS = ['DrainInProgress', 'Drained', SHUTDOWN]

/** Why a node is leaving, or undefined. */
export function whyEnding(node: Node, end: NodeEnd): string | undefined {
  const taints = end.taints ?? TAINTS
  const conditions = end.conditions ?? CONDITIONS
  if (node.metadata?.deletionTimestamp) return 'the node is being deleted'
  const taint = node.spec?.taints?.find(({ key }) => taints.includes(key))
  if (taint) return `taint ${taint.key}`
  const condition = conditions.find((type) => isTrue(node, type))
  if (condition !== undefined) return `condition ${condition}`
  return end.cordon === 'drain' && node.spec?.unschedulable === true ? 'cordoned' : undefined
}

/**
 * Whether a node that is not Ready reports an orderly shutdown: its kubelet then takes no new pods, and its pods
 * answer until it ends them. `Unknown` does not come from the kubelet: it means that the control plane has not heard
 * from it for a while, and nothing resets the condition of a node that is off.
 */
export function isShuttingDown(node: Node): boolean {
  const ready = node.status?.conditions?.find(({ type }) => type === 'Ready')
  return ready?.status === 'False' && isTrue(node, SHUTDOWN)
}

function isTrue(node: Node, wanted: string): boolean {
  return (
    node.status?.conditions?.some(({ type, status }) => type === wanted && status === 'True') ===
    true
  )
}

const SUBJECT = 'markByNodes()'

/**
 * Marks endpoints on a node that is leaving, or gone, with a soft intent: they drain before the node takes them away,
 * and go on serving while they are the last.
 *
 * The endpoints of a deleted Node leave the slices without a terminating step, but not at once: in between they still
 * look ready (kube-apiserver 1.36.3 and 1.37.0: for 0.1 to 0.2 s). So an endpoint on a node that is not in the list
 * is marked too.
 *
 * @param endpoints - from `mergeSlices`; endpoints that already have an intent, or no node, stay unchanged
 * @param nodes - all Nodes, from a cache that is synced
 * @throws `INVALID_OPTIONS` with the path, for input that is not a Node
 *
 * @example
 * ```ts
 * import { mapEndpoints, markByNodes, mergeSlices } from 'drainable/endpoints'
 *
 * export function decide(slices: readonly unknown[], nodes: readonly unknown[]) {
 *   return mapEndpoints(markByNodes(mergeSlices(slices, { port: 'http' }), nodes))
 * }
 * ```
 */
export function markByNodes(
  endpoints: readonly EndpointInput[],
  nodes: readonly Node[],
  options?: NodeEnd,
): EndpointInput[]
export function markByNodes(
  endpoints: readonly EndpointInput[],
  nodes: readonly unknown[],
  options?: NodeEnd,
): EndpointInput[]
export function markByNodes(
  endpoints: readonly EndpointInput[],
  nodes: readonly unknown[],
  options: NodeEnd = {},
): EndpointInput[] {
  s.checkOptions(SUBJECT, options, nodeEndShapes())
  s.check(SUBJECT, 'endpoints', endpoints, endpointsOfNodes)
  s.check(SUBJECT, 'nodes', nodes, nodesShape())
  const stays = new Set<string>()
  const ending = new Map<string, string>()
  for (const node of nodes as readonly Node[]) {
    const name = node.metadata?.name ?? ''
    const why = whyEnding(node, options)
    if (why === undefined) stays.add(name)
    else ending.set(name, why)
  }
  return endpoints.map((endpoint) => {
    const { nodeName, intent = 'none', note } = endpoint
    if (!nodeName || intent !== 'none' || stays.has(nodeName)) return endpoint
    const why = `node ${nodeName}: ${ending.get(nodeName) ?? 'deleted'}`
    return { ...endpoint, intent: 'soft', note: note === undefined ? why : `${note}, ${why}` }
  })
}

/** The shapes of the fields of {@link NodeEnd}. */
export function nodeEndShapes(): Readonly<Record<keyof NodeEnd, s.Shape>> {
  return {
    taints: s.nullable(s.texts),
    conditions: s.nullable(s.texts),
    cordon: s.optional(s.word('ignore', 'drain')),
  }
}

/** The shape of a list of Nodes. */
export function nodesShape(): s.Shape {
  return s.list('a list of Nodes', nodeShape())
}

/** The shape of a {@link Node}. */
export function nodeShape(): s.Shape {
  const metadata = { name: s.nullable(s.text), labels: s.nullable(s.object('an object', {})) }
  const taints = s.list('a list', s.object('an object', { key: s.text }))
  const addresses = s.list('a list', s.object('an object', { type: s.text, address: s.text }))
  const conditions = s.list('a list', s.object('an object', { type: s.text, status: s.text }))
  const shape = s.object<Node>('a Node', {
    metadata: s.nullable(s.object('an object', metadata)),
    spec: s.nullable(
      s.object('an object', { unschedulable: s.nullable(s.flag), taints: s.nullable(taints) }),
    ),
    status: s.nullable(
      s.object('an object', {
        addresses: s.nullable(addresses),
        conditions: s.nullable(conditions),
      }),
    ),
  })
  return (found) =>
    s.named((found as Node | undefined)?.metadata?.name, shape(found) ?? otherObject(found))
}

/** An object of another kind, or with nothing of a Node, would be a node without an address. */
function otherObject(found: unknown): s.Fault | undefined {
  const { kind = 'Node', metadata, status } = found as s.Loose
  if (kind !== 'Node' && kind !== null && kind !== '') return s.at('kind', s.wrong(kind, `'Node'`))
  return (metadata ?? status) ? undefined : s.wrong(found, 'a Node')
}
