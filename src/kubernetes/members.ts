/** From the slices of a Service, and from Nodes, to the members that a pool wants. */
import type { EndpointInput } from '../endpoints/endpoint.js'
import { mapEndpoints } from '../endpoints/map-endpoints.js'
import { markByNodes, nodeShape, whyEnding, type Node, type NodeEnd } from '../endpoints/nodes.js'
import { toDesired } from '../endpoints/to-desired.js'
import { check } from '../endpoints/shape.js'
import { mergeSlices } from '../endpoints/slices.js'
import type { DesiredMember } from '../provider/desired.js'
import { DrainableError, isDrainableError, wordsOf } from '../provider/error.js'
import type { KubeObject } from './api.js'
import type { FollowedService, ResolvedFollow } from './follow-options.js'

/** Says who writes a slice. One that is written by hand belongs to a Service without a selector. */
const MANAGED_BY = 'endpointslice.kubernetes.io/managed-by'
const CONTROLLER = 'endpointslice-controller.k8s.io'

/** One Service in one pool: its slices, and the members that they make. */
export class ServicePart {
  readonly service: FollowedService
  /** `namespace/name`. */
  readonly key: string
  readonly #options: ResolvedFollow
  readonly #nodes: KnownNodes
  readonly #slices = new Map<string, KubeObject>()
  #isDue = true
  #desired: readonly DesiredMember[] | undefined
  #failure: DrainableError | undefined
  /** The Service itself; null if there is none, undefined if that is not known. */
  #object: KubeObject | null | undefined

  constructor(service: FollowedService, options: ResolvedFollow, nodes: KnownNodes) {
    this.service = service
    this.key = `${service.namespace}/${service.service}`
    this.#options = options
    this.#nodes = nodes
  }

  /** What it wants, as of the last time that it could be understood. */
  get desired(): readonly DesiredMember[] | undefined {
    return this.#desired
  }

  /** Why it can't work as it is; undefined if it can. */
  get problem(): DrainableError | undefined {
    if (this.#failure !== undefined) return this.#failure
    const words = this.#whyNoService() ?? this.#whyNoPort()
    if (words === undefined) return undefined
    return new DrainableError('NOT_FOUND', `Service ${this.key} ${words}`)
  }

  touch(): void {
    this.#isDue = true
  }

  putSlice(name: string, slice: KubeObject | undefined): void {
    if (slice === undefined) this.#slices.delete(name)
    else this.#slices.set(name, slice)
    this.#isDue = true
  }

  /** @param object - the Service itself; null if there is none */
  seeService(object: KubeObject | null): void {
    this.#object = object
  }

  /** @returns whether there was anything new */
  bringUpToDate(): boolean {
    if (!this.#isDue) return false
    this.#isDue = false
    const { port, pool } = this.service
    const { name, map, adjust } = this.#options
    try {
      const merged = mergeSlices([...this.#slices.values()], { port })
      const endpoints = adjust === undefined ? merged : adjust(merged, this.service)
      const decisions = mapEndpoints(this.#nodes.mark(endpoints), map)
      // Frozen, so the reconciler need not check again what is as it was in the last set.
      this.#desired = toDesired(decisions, { pool, name }).map((one) => Object.freeze(one))
      this.#failure = undefined
    } catch (error) {
      this.#failure = isDrainableError(error)
        ? error
        : new DrainableError('INVALID_OPTIONS', `Service ${this.key}: ${wordsOf(error)}`, {
            cause: error,
          })
    }
    return true
  }

  #whyNoService(): string | undefined {
    if (this.#object === undefined) return undefined
    if (this.#object === null) return 'does not exist, check its name and namespace'
    const { selector } = (this.#object['spec'] ?? {}) as { readonly selector?: object | null }
    if (Object.keys(selector ?? {}).length > 0 || !this.#isLeftBehind()) return undefined
    return 'has no selector: Kubernetes keeps its EndpointSlices as they are for ever, also those of pods that have gone; give it a selector, or delete the slices'
  }

  /** Whether slices are there that Kubernetes itself wrote. */
  #isLeftBehind(): boolean {
    return [...this.#slices.values()].some(
      ({ metadata, endpoints }) =>
        metadata?.labels?.[MANAGED_BY] === CONTROLLER &&
        Array.isArray(endpoints) &&
        endpoints.length > 0,
    )
  }

  /** The slices of a Service list its ports; a name with a typo would look like a Service without endpoints. */
  #whyNoPort(): string | undefined {
    const { port } = this.service
    const all = [...this.#slices.values()]
      .filter(({ endpoints }) => Array.isArray(endpoints) && endpoints.length > 0)
      .flatMap(({ ports }) => (ports ?? []) as { readonly name?: string; readonly port?: number }[])
    if (all.length === 0) return undefined
    if (all.some((one) => one.port === Number(port) || (one.name ?? '') === port)) return undefined
    const names = [...new Set(all.map((one) => one.name ?? String(one.port)))]
    return `has no port '${port}', its ports are ${names.join(', ')}`
  }
}

/**
 * What is known of Nodes. Slices and Nodes come by two watches, and nothing orders one by the other: a Node that was
 * never seen may be newer than the last list, so only one that was there and has gone counts as deleted.
 */
export class KnownNodes {
  readonly #end: NodeEnd
  /** By name; null: it has gone. */
  readonly #nodes = new Map<string, Node | null>()

  constructor(end: NodeEnd) {
    this.#end = end
    markByNodes([], [], end) // checks it
  }

  /** @returns whether an endpoint may be judged otherwise now: Nodes tell of their health every few minutes */
  put(before: KubeObject | undefined, after: KubeObject | undefined): boolean {
    const name = (after ?? before)?.metadata?.name ?? ''
    const was = this.#why(name)
    if (after !== undefined) check('followService()', 'Node', after, nodeShape())
    this.#nodes.set(name, after ?? null)
    return was !== this.#why(name)
  }

  /** Marks endpoints of Nodes that are leaving, or gone. */
  mark(endpoints: readonly EndpointInput[]): EndpointInput[] {
    const names = new Set(endpoints.map(({ nodeName }) => nodeName ?? ''))
    const nodes = [...names].flatMap((name): Node | readonly [] => {
      const known = this.#nodes.get(name)
      return known === undefined ? { metadata: { name } } : (known ?? [])
    })
    return markByNodes(endpoints, nodes, this.#end)
  }

  #why(name: string): string | undefined {
    const node = this.#nodes.get(name)
    return node === null ? 'gone' : node && whyEnding(node, this.#end)
  }
}
