import type { Node } from './node.js'

/** What says that a node is about to go. */
export interface NodeEnd {
  /**
   * Keys of taints that say so.
   * @default ['ToBeDeletedByClusterAutoscaler', 'karpenter.sh/disrupted']
   */
  readonly taints?: readonly string[]
  /** Whether a cordon (`spec.unschedulable`) alone says so. It only asks that no pod be added. @default 'ignore' */
  readonly cordon?: 'ignore' | 'drain'
}

const TAINTS = ['ToBeDeletedByClusterAutoscaler', 'karpenter.sh/disrupted']

/** Why a node is about to go, or undefined. */
export function whyEnding(node: Node, { taints = TAINTS, cordon }: NodeEnd): string | undefined {
  if (node.metadata?.deletionTimestamp) return 'the node is being deleted'
  const taint = node.spec?.taints?.find(({ key }) => taints.includes(key))
  if (taint) return `taint ${taint.key}`
  return cordon === 'drain' && node.spec?.unschedulable === true ? 'cordoned' : undefined
}
