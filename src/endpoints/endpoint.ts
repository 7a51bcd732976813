import { assertText } from '../provider/address.js'
import * as s from './shape.js'

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

/** What an address is, told from its text. */
export function addressTypeOf(text: string): AddressType {
  assertText(text, 'addressTypeOf()')
  if (text.includes(':') && !text.startsWith('/')) return 'IPv6'
  return /^\d{1,3}(?:\.\d{1,3}){3}(?:%\d+)?$/.test(text) ? 'IPv4' : 'FQDN'
}

/**
 * The tier of an endpoint: the lowest number in a set is its best tier.
 *
 * | tier | conditions | meaning |
 * |---|---|---|
 * | 1 | ready, not terminating | active |
 * | 2 | terminating, serving (or tier 1 with a soft intent) | on its way out, still good |
 * | 3 | terminating, not serving, ready | published although not ready, on its way out: the last resort |
 * | 4 | not ready, not terminating | starting, or its probe fails |
 * | 5 | not ready, terminating, not serving | shutting down |
 */
export type Tier = 1 | 2 | 3 | 4 | 5

/** Conditions with nothing left open. */
export interface Conditions {
  readonly ready: boolean
  readonly serving: boolean
  readonly terminating: boolean
}

/**
 * Fills in what is not said: ready and serving are true, terminating is false. So says the API
 * text since v1.33 and so does kube-proxy; `docs/endpoint-conditions.md` lists who does not.
 */
export function normaliseConditions(given: EndpointConditions | null | undefined): Conditions {
  return {
    ready: given?.ready ?? true,
    serving: given?.serving ?? true,
    terminating: given?.terminating ?? false,
  }
}

/** The tier of conditions with nothing left open. Terminating beats ready: it can't be taken back. */
export function tierOf(of: Conditions): Tier {
  if (!s.isObject(of))
    s.refuse('tierOf()', 'the argument', of, 'conditions, as normaliseConditions() gives them')
  if (!of.terminating) return of.ready ? 1 : 4
  if (of.serving) return 2
  return of.ready ? 3 : 5
}

/** The shape of {@link EndpointConditions}. */
export function conditionsShape(found: unknown): s.Fault | undefined {
  if (found === undefined || found === null) return undefined
  if (!s.isObject(found)) return s.wrong(found, 'an object')
  return (
    s.at('ready', tri(found.ready)) ??
    s.at('serving', tri(found.serving)) ??
    s.at('terminating', tri(found.terminating))
  )
}

function tri(found: unknown): s.Fault | undefined {
  if (found === undefined || found === null || typeof found === 'boolean') return undefined
  return s.wrong(found, 'true, false or null')
}

/** The shape of endpoints as they are judged. */
export function endpointsShape(found: unknown): s.Fault | undefined {
  return whole(found) ?? s.each(found, 'a list of endpoints', endpoint)
}

function endpoint(found: unknown): s.Fault | undefined {
  if (!s.isObject(found)) return s.wrong(found, 'an endpoint')
  const { addressType } = found
  return (
    (Array.isArray(found.addresses) ? undefined : whole(found)) ??
    s.at('addresses', addressesShape(found.addresses)) ??
    s.at('addressType', addressType === undefined ? undefined : s.oneOf(addressType, FAMILIES)) ??
    s.at('port', s.opt(found.port, s.port)) ??
    s.at('portName', s.opt(found.portName, s.text)) ??
    s.at('weight', s.opt(found.weight, s.amount)) ??
    s.at('hints', s.orNone(found.hints, hints)) ??
    endpointOfNodes(found)
  )
}

/** The shape of endpoints as they are compared with Nodes. */
export function endpointsOfNodes(found: unknown): s.Fault | undefined {
  return s.each(found, 'a list of endpoints', endpointOfNodes)
}

function endpointOfNodes(found: unknown): s.Fault | undefined {
  if (!s.isObject(found)) return s.wrong(found, 'an endpoint')
  const { intent } = found
  return (
    s.at('nodeName', s.textOrNone(found.nodeName)) ??
    s.at('note', s.opt(found.note, s.text)) ??
    s.at('intent', intent === undefined ? undefined : s.oneOf(intent, INTENTS)) ??
    s.at('conditions', conditionsShape(found.conditions))
  )
}

const FAMILIES: readonly AddressType[] = ['IPv4', 'IPv6', 'FQDN']
const INTENTS: readonly Intent[] = ['none', 'soft', 'hard']

/** The shape of an endpoint's addresses. */
export function addressesShape(found: unknown): s.Fault | undefined {
  return s.texts(found, 'a list of addresses')
}

function hints(found: unknown): s.Fault | undefined {
  if (!s.isObject(found)) return s.wrong(found, 'an object')
  return (
    s.at('forZones', s.orNone(found.forZones, s.texts)) ??
    s.at('forNodes', s.orNone(found.forNodes, s.texts))
  )
}

/** A whole object of Kubernetes where endpoints belong is named. */
function whole(found: unknown): s.Fault | undefined {
  if (!s.isObject(found) || !Array.isArray(found['endpoints'])) return olderObject(found)
  const words = 'is an EndpointSlice: give what mergeSlices() makes of all slices of the Service'
  return { path: '', words: ` ${words}` }
}

/** The older object has addresses and no conditions, so it can't say which of them are being drained. */
export function olderObject(found: unknown): s.Fault | undefined {
  if (!s.isObject(found) || !('subsets' in found)) return undefined
  const words = 'is an Endpoints object, which has no conditions: give those of its EndpointSlices'
  return { path: '', words: ` ${words}` }
}
