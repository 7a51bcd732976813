import { DrainableError } from '../provider/error.js'
import {
  addressTypeOf,
  endpointsOfNodes,
  normaliseConditions,
  tierOf,
  type Conditions,
  type EndpointInput,
} from './endpoint.js'
import {
  isShuttingDown,
  nodeEndShapes,
  nodesShape,
  whyEnding,
  type Node,
  type NodeEnd,
} from './nodes.js'
import * as s from './shape.js'

/** Options of {@link mapNodes}: which nodes are members, and when they leave. */
export interface MapNodesOptions extends NodeEnd {
  /**
   * A label selector such as `node-role.kubernetes.io/worker,pool in (a,b)`. A node that is no longer selected
   * drains; a node that never was is not added. Default: all nodes.
   */
  readonly selector?: string
  /**
   * The node ports; each node is an endpoint for each of them. If empty, each node is one endpoint without a port,
   * for every port of the node.
   */
  readonly ports: readonly number[]
  /** @default 'InternalIP' */
  readonly addressType?: 'InternalIP' | 'ExternalIP'
  /**
   * The address families: one endpoint for each that a node has. Default: the first address of the type, in any
   * family.
   */
  readonly families?: readonly ('IPv4' | 'IPv6')[]
  /**
   * The label that keeps a node out of balancers, whatever its value.
   * @default 'node.kubernetes.io/exclude-from-external-load-balancers'
   */
  readonly excludeLabel?: string
  /**
   * The Service's endpoints, from {@link mergeSlices}, if its `externalTrafficPolicy` is `Local`: a node is then as
   * good as the best endpoint on it, because it passes traffic to no other node.
   */
  readonly local?: readonly EndpointInput[]
}

const SUBJECT = 'mapNodes()'
const EXCLUDE_LABEL = 'node.kubernetes.io/exclude-from-external-load-balancers'

/**
 * Makes endpoints from Nodes, for a balancer that sends to node ports.
 *
 * | node | becomes |
 * |---|---|
 * | Ready | active |
 * | asked to go (a taint, a condition such as `DrainInProgress`, the exclude label, deletion, not selected any more; cordoned if wanted) | soft: it yields to others, and serves while it is the last |
 * | not Ready while it shuts down in order (`GracefulNodeShutdownInProgress`) | terminating, still serving: as above |
 * | otherwise not Ready, or Ready not known | not serving |
 * | deleted | not in the list any more: `planChanges` drains what vanished |
 *
 * @param nodes - all Nodes, not only the selected ones: otherwise a node that loses its label vanishes instead of
 *   draining
 * @throws `INVALID_OPTIONS` with the path, for input that is not a Node, or for wrong options
 *
 * @example
 * ```ts
 * import { mapEndpoints, mapNodes } from 'drainable/endpoints'
 *
 * const node = {
 *   metadata: { name: 'n1' },
 *   spec: { taints: [{ key: 'karpenter.sh/disrupted' }] },
 *   status: {
 *     addresses: [{ type: 'InternalIP', address: '10.0.0.1' }],
 *     conditions: [{ type: 'Ready', status: 'True' }],
 *   },
 * }
 * mapEndpoints(mapNodes([node], { ports: [30_080] }))
 * ```
 */
export function mapNodes(nodes: readonly Node[], options: MapNodesOptions): EndpointInput[]
export function mapNodes(nodes: readonly unknown[], options: MapNodesOptions): EndpointInput[]
export function mapNodes(nodes: readonly unknown[], options: MapNodesOptions): EndpointInput[] {
  s.checkOptions(SUBJECT, options, {
    selector: s.nullable(s.text),
    ports: s.list('a list of ports', s.port),
    addressType: s.optional(s.word('InternalIP', 'ExternalIP')),
    families: s.optional(s.list('a list of address families', s.word('IPv4', 'IPv6'))),
    ...nodeEndShapes(),
    excludeLabel: s.nullable(s.text),
    local: s.optional(endpointsOfNodes),
  })
  s.check(SUBJECT, 'nodes', nodes, nodesShape())
  const selected = parseLabelSelector(options.selector ?? '', SUBJECT)
  const best = options.local === undefined ? undefined : bestPerNode(options.local)
  return (nodes as readonly Node[]).flatMap((node) =>
    endpointsOf(node, options, selected(node.metadata?.labels ?? {}), best),
  )
}

function endpointsOf(
  node: Node,
  options: MapNodesOptions,
  selected: boolean,
  best: ReadonlyMap<string, Conditions> | undefined,
): EndpointInput[] {
  const name = node.metadata?.name ?? null
  const leaving = whyLeaving(node, options, selected)
  const health = healthOf(node, best)
  const note = [leaving, health.note].filter((text) => text !== undefined).join(', ')
  const endpoint = {
    conditions: health.conditions,
    targetRef: { kind: 'Node', name, uid: node.metadata?.uid ?? null },
    nodeName: name,
    ...(leaving === undefined ? {} : { intent: 'soft' as const }),
    ...(selected ? {} : { ifAbsent: 'skip' as const }),
  }
  const found = addressesOf(node, options)
  if (found.length === 0) {
    const missing = `node ${name ?? ''} has no ${wantedAddress(options)}`
    return [{ ...endpoint, addresses: [], note: missing }]
  }
  const said = note === '' ? {} : { note }
  return found.flatMap((address) => {
    const one = { ...endpoint, ...said, addresses: [address], addressType: addressTypeOf(address) }
    if (options.ports.length === 0) return [one]
    return options.ports.map((port) => ({ ...one, port }))
  })
}

/** Why a node is no longer a member, or soon will not be; or undefined. The first reason is enough. */
function whyLeaving(node: Node, options: MapNodesOptions, selected: boolean): string | undefined {
  const { excludeLabel = EXCLUDE_LABEL } = options
  const ending = whyEnding(node, options)
  if (ending !== undefined) return ending
  if (Object.hasOwn(node.metadata?.labels ?? {}, excludeLabel)) return `label ${excludeLabel}`
  return selected ? undefined : `not selected by ${options.selector ?? ''}`
}

interface NodeHealth {
  readonly conditions: Conditions
  readonly note?: string
}

function healthOf(node: Node, best: ReadonlyMap<string, Conditions> | undefined): NodeHealth {
  const ready = node.status?.conditions?.find(({ type }) => type === 'Ready')
  const ending = ready?.status !== 'True' && isShuttingDown(node)
  if (ready?.status !== 'True' && !ending) {
    const found = ready === undefined ? 'says nothing of Ready' : `Ready is ${ready.status}`
    return { conditions: DOWN, note: `node ${node.metadata?.name ?? ''}: ${found}` }
  }
  const most = ending ? LEAVING : UP
  if (best === undefined) return { conditions: most }
  const conditions = best.get(node.metadata?.name ?? '') ?? DOWN
  const tier = tierOf(conditions)
  if (tier === 1) return { conditions: most }
  if (tier <= 3) return { conditions, note: 'all endpoints on the node are terminating' }
  return { conditions: DOWN, note: 'no endpoint on the node can serve' }
}

const UP: Conditions = { ready: true, serving: true, terminating: false }
const LEAVING: Conditions = { ready: false, serving: true, terminating: true }
const DOWN: Conditions = { ready: false, serving: false, terminating: false }

/** The best conditions that each node's endpoints have. */
function bestPerNode(endpoints: readonly EndpointInput[]): Map<string, Conditions> {
  const best = new Map<string, Conditions>()
  for (const { nodeName, conditions } of endpoints) {
    if (!nodeName) continue
    const mine = normaliseConditions(conditions)
    const known = best.get(nodeName)
    if (known === undefined || tierOf(mine) < tierOf(known)) best.set(nodeName, mine)
  }
  return best
}

function addressesOf(node: Node, options: MapNodesOptions): string[] {
  const { addressType = 'InternalIP', families } = options
  const all = (node.status?.addresses ?? [])
    .filter(({ type }) => type === addressType)
    .map(({ address }) => address)
  if (families === undefined) return all.slice(0, 1)
  return families.flatMap((family) =>
    all.filter((one) => addressTypeOf(one) === family).slice(0, 1),
  )
}

function wantedAddress({ addressType = 'InternalIP', families }: MapNodesOptions): string {
  return families === undefined ? addressType : `${addressType} of ${families.join(' or ')}`
}

/** Labels of an object. */
type Labels = Readonly<Record<string, string>>

/**
 * A label selector as kubectl takes it: `a=b`, `a==b`, `a!=b`, `a in (b,c)`, `a notin (b,c)`, `a`,
 * `!a`, with commas between them. `!=` and `notin` hold where the label is missing, as in Kubernetes.
 *
 * @throws `INVALID_OPTIONS` for anything else
 */
function parseLabelSelector(text: string, subject: string): (labels: Labels) => boolean {
  const terms = splitTerms(text)
    .map((term) => term.trim())
    .filter((term) => term !== '')
    .map((term) => parseTerm(term, text, subject))
  return (labels) => terms.every((holds) => holds(labels))
}

const KEY = String.raw`((?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?/)?[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)`
const SET = new RegExp(String.raw`^${KEY}\s+(in|notin)\s*\(([^()]*)\)$`)
const EQUAL = new RegExp(String.raw`^${KEY}\s*(==|=|!=)\s*([A-Za-z0-9._-]*)$`)
const EXISTS = new RegExp(String.raw`^(!?)\s*${KEY}$`)

function parseTerm(term: string, whole: string, subject: string): (labels: Labels) => boolean {
  const set = SET.exec(term)
  if (set) {
    const [, key = '', operator, list = ''] = set
    const values = list.split(',').map((value) => value.trim())
    return operator === 'in'
      ? (labels) => hasLabel(labels, key) && values.includes(labels[key] ?? '')
      : (labels) => !hasLabel(labels, key) || !values.includes(labels[key] ?? '')
  }
  const equal = EQUAL.exec(term)
  if (equal) {
    const [, key = '', operator, value = ''] = equal
    return operator === '!='
      ? (labels) => !hasLabel(labels, key) || labels[key] !== value
      : (labels) => hasLabel(labels, key) && labels[key] === value
  }
  const exists = EXISTS.exec(term)
  if (exists) {
    const [, not, key = ''] = exists
    return (labels) => hasLabel(labels, key) === (not === '')
  }
  throw new DrainableError(
    'INVALID_OPTIONS',
    `${subject}: selector '${whole}' has the term '${term}', expected one such as a=b, a!=b, a in (b,c), a notin (b,c), a or !a`,
  )
}

function hasLabel(labels: Labels, key: string): boolean {
  return Object.hasOwn(labels, key)
}

/** At the commas that are not inside of brackets. */
function splitTerms(text: string): string[] {
  return text.split(/,(?![^(]*\))/)
}
