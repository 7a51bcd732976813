/**
 * An operator of load balancers in the manner of lbconfig-operator: one custom resource says which nodes are the
 * members of a pool, on which balancers, and how long a member may drain before it is deleted.
 *
 *     spec:
 *       nodeSelector: node-role.kubernetes.io/infra
 *       port: 8080
 *       drain: { enabled: true, timeoutSeconds: 300 }
 *
 * A node that loses the label, is cordoned for deletion or vanishes gets no new work. It is deleted as soon as it is proved
 * idle, and at the latest after `timeoutSeconds`. A label that comes back in mid-drain takes the drain back. `drain`
 * switched off deletes at once, as before. Killed and restarted, the operator goes on where it was.
 */
import { reconcile, type DrainableProvider, type Reconciler, type TicketStore } from 'drainable'
import { mapEndpoints, mapNodes, toDesired } from 'drainable/endpoints'

/** The part of the custom resource that this is about. */
export interface LoadBalancerSpec {
  readonly nodeSelector: string
  readonly port: number
  readonly drain: { readonly enabled: boolean; readonly timeoutSeconds: number }
}

/** One pool of one balancer: `web` of a HAProxy, `/Common/web` of a BIG-IP. */
export interface Backend {
  readonly provider: DrainableProvider
  readonly pool: string
}

/** What an operator writes into `status.members` of the custom resource. */
export type MemberRow = ReturnType<Reconciler['status']>[number]

/** Keeps the members of some backends as the custom resource and the nodes say. */
export class Operator implements AsyncDisposable {
  readonly #loops: readonly { readonly pool: string; readonly loop: Reconciler }[]

  /**
   * @param tickets - what outlives the operator, such as `kubernetesTickets`
   * @param failed - told of what is tried again
   */
  constructor(
    backends: readonly Backend[],
    tickets: TicketStore,
    failed: (error: Error) => void = () => undefined,
  ) {
    this.#loops = backends.map(({ provider, pool }) => {
      // The pool is the operator's alone. One that holds other members too says which are its own.
      const loop = reconcile(provider, { pools: [pool], owns: () => true, tickets })
      return { pool, loop: loop.on('fault', failed) }
    })
  }

  /** Called for each change of the custom resource or of a node, with all nodes of the cluster. */
  sync({ nodeSelector, port, drain }: LoadBalancerSpec, nodes: readonly unknown[]): void {
    const decisions = mapEndpoints(mapNodes(nodes, { selector: nodeSelector, ports: [port] }))
    for (const { pool, loop } of this.#loops) {
      const name = ({ address }: { readonly address: string }) => `${address}:${port}`
      const members = toDesired(decisions, { pool, name }).map((one) =>
        one.state === 'drain' ? { ...one, state: 'absent' as const } : one,
      )
      loop.set(members, {
        drain: drain.enabled,
        timeout: `${drain.timeoutSeconds}s`,
        // With `timeoutSeconds` over, the member is deleted, whatever is left on it.
        onTimeout: 'remove',
      })
    }
  }

  /** For the status of the custom resource: who drains since when, until when, and why. */
  status(): readonly MemberRow[] {
    return this.#loops.flatMap(({ loop }) => loop.status())
  }

  /** Resolves when nothing is left to do for the newest set. */
  async settled(): Promise<void> {
    await Promise.all(this.#loops.map(({ loop }) => loop.settled()))
  }

  /** Ends it; what drains stays drained, for the next process. */
  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#loops.map(({ loop }) => loop.close()))
  }
}
