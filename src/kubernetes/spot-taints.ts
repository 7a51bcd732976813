/**
 * The keys of taints that say that a Node is about to be taken back: spot and preemptible machines, scheduled
 * maintenance, a scaling group that shrinks. A taint that a spot Node has all its life is not among them
 * (`kubernetes.azure.com/scalesetpriority`, `cloud.google.com/gke-spot`).
 *
 * | key | who sets it |
 * |---|---|
 * | `aws-node-termination-handler/spot-itn` and its three siblings | AWS Node Termination Handler 1.x with `taintNode` |
 * | `cloud.google.com/impending-node-termination` | GKE, and Google's termination handler |
 * | `remediator.kubernetes.azure.com/unschedulable` | AKS node auto-drain |
 *
 * Karpenter's and the cluster autoscaler's own taints are defaults of `markByNodes` already.
 */
export const spotTaints: readonly string[] = [
  'aws-node-termination-handler/spot-itn',
  'aws-node-termination-handler/rebalance-recommendation',
  'aws-node-termination-handler/scheduled-maintenance',
  'aws-node-termination-handler/asg-lifecycle-termination',
  'cloud.google.com/impending-node-termination',
  'remediator.kubernetes.azure.com/unschedulable',
]
