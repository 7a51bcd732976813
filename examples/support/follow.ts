/** From lists that are kept whole to sets for a reconciler: the loop to copy. */
import type { Reconciler } from 'drainable'
import {
  mapEndpoints,
  markByNodes,
  mergeSlices,
  toDesired,
  type Decision,
} from 'drainable/endpoints'
import { keepInformed, type InformerLike } from './informed.ts'

/** Where slices and Nodes come from: a new informer each time, not started. */
export interface Sources {
  /** The EndpointSlices of one Service. */
  readonly slices: () => InformerLike<unknown>
  /** All Nodes. */
  readonly nodes: () => InformerLike<unknown>
}

/** How the sets are made, and who is told. */
export interface FollowOptions {
  readonly pool: string
  /** The name of the Service's port that the balancer sends to. */
  readonly port: string
  /** Told of each set that was given: how many endpoints it has. */
  readonly set?: (endpoints: number) => void
  /** Told of each error of a watch, and of objects that can't be understood. */
  readonly failed: (error: unknown) => void
}

/** Gives each whole state of slices and Nodes to the reconciler, until it is disposed. */
export function follow(
  loop: Reconciler,
  sources: Sources,
  { pool, port, set, failed }: FollowOptions,
): AsyncDisposable {
  const push = (): void => {
    // A list that is not whole would take out whatever it does not name yet.
    if (!slices.synced || !nodes.synced) return
    try {
      const endpoints = markByNodes(mergeSlices(slices.items, { port }), nodes.items)
      loop.set(toDesired(mapEndpoints(endpoints), { pool, name: nameOf }))
      set?.(endpoints.length)
    } catch (error) {
      failed(error) // the set before stays in force
    }
  }
  const slices = keepInformed(sources.slices, () => push(), failed)
  const nodes = keepInformed(sources.nodes, () => push(), failed)
  return {
    async [Symbol.asyncDispose]() {
      await Promise.all([slices.stop(), nodes.stop()])
    },
  }
}

/**
 * What a member is called where one is added: a name that only this controller gives. A pod of a StatefulSet comes back
 * under its name: the plan then gives another name with this beginning.
 */
function nameOf({ endpoint, address }: Decision): string {
  return `pod-${endpoint.targetRef?.name ?? address}`
}
