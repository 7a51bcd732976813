import { once } from '../../provider/once.js'
import { nullable, optional, texts, word } from '../shape.js'
import type { Node } from './node.js'

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

/** The shapes of its fields. */
export const nodeEndShapes = once(() => ({
  taints: nullable(texts),
  conditions: nullable(texts),
  cordon: optional(word('ignore', 'drain')),
}))

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
