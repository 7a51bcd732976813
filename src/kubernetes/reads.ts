/** What a follower reads, and the right that each read needs. */
import { SERVICE_LABEL } from '../endpoints/slices/endpoint-slice.js'
import { DrainableError } from '../provider/error.js'
import type { FeedSpec } from './feed.js'
import type { FollowedService } from './follow-options.js'

/** A right that is missing is rarely given while a program runs: it is asked for again after that, in milliseconds. */
const FORBIDDEN_PAUSE = 300_000
/** More names than this make a selector that is longer than some proxies take. */
const MOST_NAMES = 50

export const NODES: FeedSpec = {
  what: 'Nodes',
  path: '/api/v1/nodes',
  pauseIfForbidden: FORBIDDEN_PAUSE,
}

/** The EndpointSlices of these Services: one watch a namespace. */
export function slicesIn(namespace: string, services: readonly FollowedService[]): FeedSpec {
  const names = [...new Set(services.map(({ service }) => service))]
  const isShort = names.length <= MOST_NAMES
  return {
    what: `EndpointSlices in ${namespace}`,
    path: `/apis/discovery.k8s.io/v1/namespaces/${namespace}/endpointslices`,
    labelSelector: isShort ? `${SERVICE_LABEL} in (${names.join(',')})` : SERVICE_LABEL,
  }
}

/** These Services themselves. */
export function servicesIn(namespace: string, services: readonly FollowedService[]): FeedSpec {
  const [name, ...more] = new Set(services.map(({ service }) => service))
  return {
    what: `Services in ${namespace}`,
    path: `/api/v1/namespaces/${namespace}/services`,
    pauseIfForbidden: FORBIDDEN_PAUSE,
    // A rule of rights can name one object only for a list that is asked for like this.
    ...(more.length === 0 ? { fieldSelector: `metadata.name=${name ?? ''}` } : {}),
  }
}

export const SLICE_RULE =
  "a Role needs { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs: ['list', 'watch'] }"
export const NODE_RULE =
  "endpoints are followed without their Nodes; to read them a ClusterRole needs { apiGroups: [''], resources: ['nodes'], verbs: ['list', 'watch'] }, or give nodes: false"
export const SERVICE_RULE =
  "a Service without a selector is not noticed; to read it a Role needs { apiGroups: [''], resources: ['services'], verbs: ['list', 'watch'] }"

/** Adds the rule that gives the right, if a right is missing. */
export function withRule(error: DrainableError, rule: string): DrainableError {
  if (error.code !== 'FORBIDDEN') return error
  return new DrainableError('FORBIDDEN', `${error.message}; ${rule}`, { cause: error })
}
