import type { Json } from '../../../provider/contract.js'
import { DrainableError, type ErrorCode } from '../../../provider/error.js'
import type { JsonObject } from '../../../kit/json.js'
import type { EdsStatus } from './status.js'

/** One endpoint of a cluster, as written by the owner of the set. */
export interface Endpoint {
  /**
   * The name of the member, see `address.ts`. Undefined if the address cannot be named: such an endpoint is kept and
   * never touched.
   */
  readonly member: string | undefined
  readonly address?: string | undefined
  readonly port?: number | undefined
  readonly hostname?: string | undefined
  /** The status; undefined for a number that this version does not know. */
  readonly status: EdsStatus | undefined
  readonly weight?: number | undefined
  readonly priority: number
  /** Its `envoy.lb` metadata, by which subsets are made. */
  readonly labels?: JsonObject | undefined
  /** Returns the whole endpoint with its place in the set, to bring it back after a removal. */
  native(): EndpointNative
}

/** The data to bring an endpoint back: plain JSON. */
export interface EndpointNative {
  readonly [key: string]: Json
  /** The status before our first change. */
  readonly status: string
  readonly priority: number
  /** Region, zone and sub zone as one text: `r1/z1/s1`, a slash in a name escaped. */
  readonly locality: string
  /** The index of the locality in the set, and of the endpoint in it. */
  readonly place: readonly [number, number]
  /** The endpoint itself: JSON, or base64 of its bytes. */
  readonly endpoint: Json
}

/** An endpoint that is not in the set yet. */
export interface NewEndpoint {
  readonly address: string
  readonly port: number
  readonly weight?: number | undefined
  readonly native?: EndpointNative | undefined
}

/**
 * The full endpoint set of one cluster: Envoy's `ClusterLoadAssignment`, immutable.
 *
 * It edits an existing document and does not model all of it: unknown parts are kept unchanged, in their own order.
 */
export interface Assignment {
  /** The set's `cluster_name`: the EDS service name, which can differ from the cluster's name. */
  readonly cluster: string
  readonly endpoints: readonly Endpoint[]
  /** `policy.overprovisioning_factor`, in percent. */
  readonly overprovisioning: number
  /** `policy.weighted_priority_health`. */
  readonly isWeighted: boolean
  /** A hash of the content: the same set has the same version after a restart of this process. */
  readonly version: string
  /** Returns the set with other statuses, by member. */
  withStatus(edits: ReadonlyMap<string, EdsStatus>): Assignment
  /** Returns the set without these members. */
  without(members: ReadonlySet<string>): Assignment
  /** Returns the set with one more endpoint, at the place in its `native`. */
  withEndpoint(endpoint: NewEndpoint): Assignment
}

/** Where in the text an assignment is wrong, and how. Turned into an error by whoever read the text. */
export class AssignmentProblem {
  readonly path: string
  readonly problem: string
  constructor(path: string, problem: string) {
    this.path = path
    this.problem = problem
  }
  toString(): string {
    return this.path === '' ? this.problem : `${this.path}: ${this.problem}`
  }
}

/** The error of who read the text; anything else goes on as it is. */
export function problemError(problem: unknown, code: ErrorCode, subject: string): unknown {
  if (!(problem instanceof AssignmentProblem)) return problem
  return new DrainableError(code, `${subject}: ${problem.toString()}`, { provider: 'envoy' })
}

/** `r1/z1/s1`; a slash in a name is escaped. */
export function formatLocality(parts: readonly string[]): string {
  return parts.map(encodeURIComponent).join('/')
}

/** Region, zone and sub zone of {@link formatLocality}. */
export function parseLocality(text: string): string[] {
  return text.split('/').map(decodeURIComponent)
}

/** Whether something found in a ticket is what {@link Endpoint.native} wrote. */
export function isEndpointNative(value: Json | undefined): value is EndpointNative {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
  const { status, priority, locality, place, endpoint } = value as Record<string, Json>
  return (
    typeof status === 'string' &&
    typeof priority === 'number' &&
    typeof locality === 'string' &&
    Array.isArray(place) &&
    place.length === 2 &&
    endpoint !== undefined
  )
}

/**
 * One entry per address: Envoy uses the first and ignores the others in silence. The first keeps its
 * place and weight; a drain on any of them is a drain.
 */
export function deduplicated<E extends Endpoint>(
  lists: readonly (readonly E[])[],
  drained: (endpoint: E) => E,
): readonly (readonly E[])[] {
  if (!hasTwice(lists)) return lists
  const draining = new Set<string>()
  for (const { member, status } of lists.flat()) {
    if (member !== undefined && status === 'DRAINING') draining.add(member)
  }
  const kept = new Set<string>()
  return lists.map((list) =>
    list.flatMap((endpoint) => {
      if (endpoint.member === undefined) return [endpoint]
      if (kept.has(endpoint.member)) return []
      kept.add(endpoint.member)
      const isDraining = draining.has(endpoint.member)
      return [isDraining && endpoint.status !== 'DRAINING' ? drained(endpoint) : endpoint]
    }),
  )
}

function hasTwice(lists: readonly (readonly Endpoint[])[]): boolean {
  const seen = new Set<string>()
  for (const list of lists) {
    for (const { member } of list) {
      if (member === undefined) continue
      if (seen.has(member)) return true
      seen.add(member)
    }
  }
  return false
}
