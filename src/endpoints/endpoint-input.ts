import { once } from '../provider/once.js'
import {
  addresses,
  amount,
  at,
  isObject,
  list,
  nullable,
  object,
  port,
  text,
  textOrNone,
  texts,
  word,
  wrong,
  type Fault,
} from './shape.js'

/**
 * A condition as Kubernetes writes it: true, false, or not set. `null`, `undefined` and a missing field are the same.
 */
export type Tri = boolean | null | undefined

/** The type of an address, in Kubernetes' terms. */
export type AddressType = 'IPv4' | 'IPv6' | 'FQDN'

/**
 * What an operator, or the caller's own classifier, wants of an endpoint, whatever its conditions say.
 *
 * - `soft`: it is leaving but still works: it serves only while no unmarked endpoint can
 * - `hard`: it never serves
 */
export type Intent = 'none' | 'soft' | 'hard'

/** The conditions of an endpoint: whether it takes new work, answers, and is leaving. */
export interface EndpointConditions {
  /** If not set, true. */
  readonly ready?: Tri
  /** If not set, true. */
  readonly serving?: Tri
  /** If not set, false. */
  readonly terminating?: Tri
}

/** The object behind an endpoint, nearly always a pod. */
export interface TargetRef {
  readonly kind?: string | null
  readonly namespace?: string | null
  readonly name?: string | null
  /** The uid tells a pod from a later one with the same name or address. */
  readonly uid?: string | null
}

/** The names of the zones and nodes from which Kubernetes suggests that traffic to an endpoint should come. */
export interface EndpointHints {
  readonly forZones?: readonly string[] | null
  readonly forNodes?: readonly string[] | null
}

/**
 * One endpoint of a set, as `mergeSlices` and `mapNodes` make it and `mapEndpoints` judges it. You can also write it
 * by hand: only `addresses` is needed.
 */
export interface EndpointInput {
  /** Only the first one identifies the endpoint; Kubernetes gives the others no meaning. */
  readonly addresses: readonly string[]
  /** Default: derived from the address. */
  readonly addressType?: AddressType
  readonly port?: number
  /**
   * The name of the Service's port. Endpoints with different names are judged as separate sets: a ready endpoint of
   * `metrics` does not replace one of `http`.
   */
  readonly portName?: string
  /** `TCP`, `UDP` or `SCTP`. */
  readonly protocol?: string
  readonly conditions?: EndpointConditions | null
  readonly targetRef?: TargetRef | null
  readonly nodeName?: string | null
  readonly zone?: string | null
  readonly hostname?: string | null
  readonly hints?: EndpointHints | null
  /** Its share of the work; 0 is an operator's drain. Default 1. */
  readonly weight?: number
  /** Default `none`. */
  readonly intent?: Intent
  /** `skip`: if the balancer does not have it, it is not added, even while it serves. */
  readonly ifAbsent?: 'skip'
  /** A note of its maker, such as `taint karpenter.sh/disrupted`, for the decision's reason. */
  readonly note?: string
  /** Name of the slice it was taken from. */
  readonly fromSlice?: string
}

/** The shape of {@link EndpointConditions}. */
export function conditionsShape(found: unknown): Fault | undefined {
  if (found === undefined || found === null) return undefined
  if (!isObject(found)) return wrong(found, 'an object')
  return (
    at('ready', tri(found.ready)) ??
    at('serving', tri(found.serving)) ??
    at('terminating', tri(found.terminating))
  )
}

function tri(found: unknown): Fault | undefined {
  if (found === undefined || found === null || typeof found === 'boolean') return undefined
  return wrong(found, 'true, false or null')
}

/** An endpoint as it is compared with Nodes. */
function endpointOfNodes(found: unknown): Fault | undefined {
  if (!isObject(found)) return wrong(found, 'an endpoint')
  return (
    at('nodeName', textOrNone(found.nodeName)) ??
    at('note', found.note === undefined ? undefined : text(found.note)) ??
    at('intent', found.intent === undefined ? undefined : intents()(found.intent)) ??
    at('conditions', conditionsShape(found.conditions))
  )
}

/** An endpoint as it is judged. */
function endpoint(found: unknown): Fault | undefined {
  if (!isObject(found)) return wrong(found, 'an endpoint')
  const { addressType, port: its, portName, weight, hints } = found
  return (
    (Array.isArray(found.addresses) ? undefined : whole(found)) ??
    at('addresses', addresses(found.addresses)) ??
    at('addressType', addressType === undefined ? undefined : families()(addressType)) ??
    at('port', its === undefined ? undefined : port(its)) ??
    at('portName', portName === undefined ? undefined : text(portName)) ??
    at('weight', weight === undefined ? undefined : amount(weight)) ??
    at('hints', hints === undefined || hints === null ? undefined : hintsShape()(hints)) ??
    endpointOfNodes(found)
  )
}

const intents = once(() => word('none', 'soft', 'hard'))
const families = once(() => word('IPv4', 'IPv6', 'FQDN'))
const hintsShape = once(() =>
  object<EndpointHints>('an object', { forZones: nullable(texts), forNodes: nullable(texts) }),
)

/** The shape of endpoints as they are compared with Nodes. */
export const endpointsOfNodes = once(() => list('a list of endpoints', endpointOfNodes))

/** The shape of endpoints as they are judged. */
export const endpointsShape = once(() => {
  const endpoints = list('a list of endpoints', endpoint)
  return (found: unknown) => whole(found) ?? endpoints(found)
})

/**
 * A whole object of Kubernetes where endpoints belong is named. The older one has addresses and no conditions, so it can't say
 * which of them are being drained.
 */
function whole(found: unknown): Fault | undefined {
  if (!isObject(found)) return undefined
  const old = 'is an Endpoints object, which has no conditions: give those of its EndpointSlices'
  const slice = 'is an EndpointSlice: give what mergeSlices() makes of all slices of the Service'
  const words = 'subsets' in found ? old : Array.isArray(found['endpoints']) ? slice : undefined
  return words === undefined ? undefined : { path: '', words: ` ${words}` }
}
