/** The informers of `@kubernetes/client-node` 2 for one Service: its EndpointSlices, and all Nodes. */
import {
  CoreV1Api,
  DiscoveryV1Api,
  ListWatch,
  Watch,
  type KubeConfig,
} from '@kubernetes/client-node'
import type { Sources } from './follow.ts'

/** Which Service. */
export interface ServiceName {
  readonly namespace: string
  readonly service: string
}

export function kubernetesSources(
  config: KubeConfig,
  { namespace, service }: ServiceName,
): Sources {
  const discovery = config.makeApiClient(DiscoveryV1Api)
  const core = config.makeApiClient(CoreV1Api)
  // The selector is wanted in both places: of the list, and of the watch after it.
  const labelSelector = `kubernetes.io/service-name=${service}`
  const path = `/apis/discovery.k8s.io/v1/namespaces/${namespace}/endpointslices`
  return {
    slices: () =>
      new ListWatch(
        path,
        new ToldWatch(config),
        () => discovery.listNamespacedEndpointSlice({ namespace, labelSelector }),
        false,
        labelSelector,
      ),
    nodes: () =>
      new ListWatch('/api/v1/nodes', new ToldWatch(config), () => core.listNode(), false),
  }
}

/**
 * A watch all of whose failures reach the informer. That of the client (2.0.1) rejects where credentials can't be had
 * for a reconnect: no `error` is told, the informer stands still, and the process ends with an unhandled rejection.
 */
class ToldWatch extends Watch {
  override async watch(...args: Parameters<Watch['watch']>): Promise<AbortController> {
    try {
      return await super.watch(...args)
    } catch (error) {
      const [, , , done] = args
      done(error)
      return new AbortController()
    }
  }
}
