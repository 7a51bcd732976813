import { endpointsOfNodes, type EndpointInput } from '../endpoint-input.js'
import { check, checkOptions } from '../shape.js'
import { nodeEndShapes, whyEnding, type NodeEnd } from './node-end.js'
import { nodesShape, type Node } from './node.js'

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
  checkOptions(SUBJECT, options, nodeEndShapes())
  check(SUBJECT, 'endpoints', endpoints, endpointsOfNodes())
  check(SUBJECT, 'nodes', nodes, nodesShape())
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
