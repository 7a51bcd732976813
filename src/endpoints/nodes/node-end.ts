import type { Node } from './node.js'

/** What says that a node is about to go. */
export interface NodeEnd {
  /**
   * Keys of taints that say so.
   * @default ['ToBeDeletedByClusterAutoscaler', 'karpenter.sh/disrupted']
   */
  readonly taints?: readonly string[]
  /**
   * Types of node conditions that say so while they are `True`. Those of KEP-5683 (Kubernetes 1.37,
   * alpha) have names of their own. `MaintenancePlanned` and `MaintenanceInProgress` are not among the
   * defaults: the first may be days ahead, and not all maintenance needs a drain.
   * @default ['DrainInProgress', 'Drained', 'GracefulNodeShutdownInProgress']
   */
  readonly conditions?: readonly string[]
  /** Whether a cordon (`spec.unschedulable`) alone says so. It only asks that no pod be added. @default 'ignore' */
  readonly cordon?: 'ignore' | 'drain'
}

const TAINTS = ['ToBeDeletedByClusterAutoscaler', 'karpenter.sh/disrupted']
const SHUTDOWN = 'GracefulNodeShutdownInProgress'
const CONDITIONS = ['DrainInProgress', 'Drained', SHUTDOWN]

/** Why a node is about to go, or undefined. */
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
 * Whether a node that is not Ready says that it is shutting down in order: its kubelet takes no new
 * pods then, and those it has answer until it ends them. `Unknown` is not the kubelet's word: no one
 * has heard of it for a while, and nothing takes the condition back from a node that is off.
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
