/**
 * A controller's link to Kubernetes: the endpoints of Services as whole sets for `reconcile`, a lease in a `Lease`
 * object, and tickets in ConfigMaps. No Kubernetes client is inside: your kubeconfig object gives address and
 * credentials.
 *
 * @example
 * ```ts
 * import { reconcile, type DrainableProvider } from 'drainable'
 * import { followService, kubernetesLease, kubernetesTickets, type KubeConfigLike } from 'drainable/kubernetes'
 *
 * export async function run(lb: DrainableProvider, config: KubeConfigLike, signal: AbortSignal): Promise<void> {
 *   await using loop = reconcile(lb, {
 *     pools: ['web'],
 *     owns: ({ ref }) => ref.member.startsWith('pod-'),
 *     lease: kubernetesLease(config, { namespace: 'edge', name: 'controller' }),
 *     tickets: kubernetesTickets(config, { namespace: 'edge' }),
 *     signal,
 *   })
 *   const web = { namespace: 'shop', service: 'web', port: 'http', pool: 'web' }
 *   await using follower = followService(loop, config, web, { signal })
 *   follower.on('problem', (error) => console.error(error.message))
 *   await loop.done
 * }
 * ```
 *
 * @module drainable/kubernetes
 */
export type { KubeConfigLike, KubeObject } from './api.js'
export { followObjects } from './follow-objects.js'
export type { ObjectFollower, ObjectsOptions } from './follow-objects.js'
export { followService } from './follow-service.js'
export type { FollowEvents, ServiceFollower, SetTaker } from './follow-service.js'
export { spotTaints } from './follow-options.js'
export type { FollowedService, FollowOptions } from './follow-options.js'
export { kubernetesLease } from './lease.js'
export type { KubernetesLeaseOptions } from './lease.js'
export { kubernetesTickets } from './tickets.js'
export type { KubernetesTickets, KubernetesTicketsOptions } from './tickets.js'
