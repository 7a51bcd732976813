import * as z from 'zod/mini'
import type { Decision, MapOptions } from '../endpoints/map-endpoints.js'
import type { EndpointInput } from '../endpoints/endpoint.js'
import type { NodeEnd } from '../endpoints/nodes.js'
import { clockOption, fn, nonEmpty, signalOption, whole } from '../provider/option-schemas.js'
import { systemClock, type Clock } from '../provider/clock.js'
import { DrainableError } from '../provider/error.js'
import { once, otherThanOptions, parseOptions, readGiven } from '../provider/options.js'

/** A Service, and the pool that has its endpoints. */
export interface FollowedService {
  readonly namespace: string
  /** The Service's name. */
  readonly service: string
  /** The pool of the balancer. */
  readonly pool: string
  /** The Service's port that the balancer sends to: its name, or the number that the pods listen on. */
  readonly port: string | number
}

/** Options of {@link followService}. */
export interface FollowOptions {
  /**
   * Whether to read Nodes, so that endpoints leave before their node does. An account without that right works without
   * them: a `problem` says once which rule is missing. @defaultValue `true`
   */
  readonly nodes?: boolean | undefined
  /**
   * The signs that a Node is leaving. @defaultValue those of `markByNodes`, with {@link spotTaints} beside its taints
   */
  readonly nodeEnd?: NodeEnd | undefined
  /** How endpoints are judged. @defaultValue as `mapEndpoints` does by itself */
  readonly map?: MapOptions | undefined
  /**
   * The name of a member to add. Of two members that want one name the plan gives the later one another name that
   * begins the same. @defaultValue `pod-` and the pod's name, or the address if there is none
   */
  readonly name?: ((decision: Decision) => string) | undefined
  /**
   * Changes the endpoints of a Service before they are judged, such as by something that only you know of a pod.
   * {@link ServiceFollower.refresh} calls it again.
   */
  readonly adjust?:
    | ((endpoints: readonly EndpointInput[], service: FollowedService) => readonly EndpointInput[])
    | undefined
  /** Ends it, as {@link ServiceFollower.close} does. */
  readonly signal?: AbortSignal | undefined
  /** The clock of limits and waits. @defaultValue the system's */
  readonly clock?: Clock | undefined
}

const NAME = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/
const A_NAME = "expected a name of Kubernetes, such as 'shop': small letters, digits and -"
const A_PORT = "expected a port's name or number, such as 'http' or 8080"

/** A namespace, or the name of a Service. */
export const kubeName = once(() => z.string(A_NAME).check(z.regex(NAME, A_NAME)))

const serviceSchema = once(() =>
  z.strictObject({
    namespace: kubeName(),
    service: kubeName(),
    pool: z.string().check(z.minLength(1, 'is empty')),
    port: z.union([nonEmpty(), whole(1, 65_535)], A_PORT),
  }),
)

/** Options of another function, which checks their names. */
function optionsOf<T>(): z.ZodMiniType<T, T> {
  return z.custom<T>((value) => isObject(value) && otherThanOptions(value) === undefined, {
    error: ({ input }) => otherThanOptions(input) ?? 'expected an object',
  })
}

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null
}

const optionsSchema = once(() => ({
  nodes: z._default(z.boolean(), true),
  nodeEnd: z.exactOptional(optionsOf<NodeEnd>()),
  map: z.exactOptional(optionsOf<MapOptions>()),
  name: z._default(fn<NonNullable<FollowOptions['name']>>(), () => podName),
  adjust: z.exactOptional(fn<NonNullable<FollowOptions['adjust']>>()),
  clock: z._default(clockOption(), () => systemClock),
  signal: z.exactOptional(signalOption()),
}))

/** The checked options with their defaults. */
export type ResolvedFollow = ReturnType<typeof parseFollow>

/** @throws `INVALID_OPTIONS` naming every wrong field */
export function parseFollow(given: FollowOptions, subject: string) {
  return parseOptions(z.strictObject(optionsSchema()), given, subject)
}

/** @throws `INVALID_OPTIONS` naming the Service and every wrong field */
export function parseServices(
  given: FollowedService | readonly FollowedService[],
  subject: string,
): readonly FollowedService[] {
  const all = readGiven(`${subject}: services`, (): readonly unknown[] | undefined =>
    Array.isArray(given) ? [...(given as readonly unknown[])] : undefined,
  )
  if (all === undefined) return [parseOptions(serviceSchema(), given, `${subject}: services`)]
  if (all.length === 0)
    throw new DrainableError(
      'INVALID_OPTIONS',
      `${subject}: services: expected one Service or more`,
    )
  return all.map((one, i) => parseOptions(serviceSchema(), one, `${subject}: services[${i}]`))
}

/**
 * A name that only this controller gives. A pod of a StatefulSet comes back under its name: the plan then gives another
 * one that begins the same.
 */
function podName({ endpoint, address }: Decision): string {
  return `pod-${endpoint.targetRef?.name ?? address}`
}

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
