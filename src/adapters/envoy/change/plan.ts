import { judge, judgeKind, type SeenMember } from '../../../kit/change.js'
import type { Change, ChangeResult } from '../../../provider/contract.js'
import { DrainableError } from '../../../provider/error.js'
import { formatRef } from '../../../provider/member-ref.js'
import { formatSocket } from '../../../provider/address.js'
import { isPipe } from '../codec/address.js'
import {
  AssignmentProblem,
  isEndpointNative,
  type Assignment,
  type Endpoint,
} from '../codec/assignment.js'
import type { ProxyView } from '../session/roster.js'
import type { MemberReader } from '../read/read.js'
import type { Wanted } from '../session/proxy.js'
import { toAdminState, toEdsStatus, type EdsStatus } from '../codec/status.js'
import type { EndpointStore } from '../session/store.js'

/** One change with the member it means. */
export interface WantedChange extends Wanted {
  readonly change: Change
}

/** What a change is judged by. */
export interface PlanContext {
  readonly store: EndpointStore
  readonly reader: MemberReader
  readonly onPanic: 'refuse' | 'allow'
}

/** What becomes of one change before anything is published. */
export type Plan =
  { readonly result: ChangeResult } | { readonly next: Assignment; readonly leaves?: string }

/** What Envoy can't do, and what to do instead. */
const RULES = {
  provider: 'envoy',
  maint:
    "Envoy has no maintenance state that keeps work: hold 'drain' (DRAINING), or remove the endpoint once it is idle",
  terminate:
    "Envoy cannot cut the work of one endpoint: wait longer, or stop the server itself, or use onTimeout 'proceed'",
}

/** An endpoint as the rules of a change see it. */
function toSeen(endpoint: Endpoint | undefined): SeenMember | undefined {
  if (endpoint?.member === undefined) return undefined
  const { member, hostname, address, port } = endpoint
  return {
    identity: hostname === undefined ? member : `${member} ${hostname}`,
    own: toAdminState(endpoint.status),
    ...(address === undefined ? {} : { address }),
    ...(port === undefined ? {} : { port }),
  }
}

/** One change, judged against the set as the changes before it leave it. */
export function planChange(
  wanted: WantedChange,
  set: Assignment | undefined,
  views: readonly ProxyView[],
  context: PlanContext,
): Plan {
  const { change, service, member } = wanted
  if (set === undefined) {
    return reject(wanted, 'NOT_FOUND', context.reader.whyNoSet(wanted.ref.pool))
  }
  if (change.kind === 'add') return planAdd(wanted, change, set)
  const endpoint = set.endpoints.find((found) => found.member === member)
  const absent = (): string => `endpoint set '${service}' has no endpoint ${member}`
  const verdict = judgeKind(change, RULES) ?? judge(change, toSeen(endpoint), { ...RULES, absent })
  if (verdict !== undefined) return { result: { ref: wanted.ref, ...verdict } }
  switch (change.kind) {
    case 'hold': {
      const next = set.withStatus(new Map<string, EdsStatus>([[member, 'DRAINING']]))
      return panicPlan(wanted, next, views, context) ?? { next }
    }
    case 'restore': {
      const status = change.to === 'drain' ? 'DRAINING' : statusBefore(change.native)
      return { next: set.withStatus(new Map([[member, status]])) }
    }
    case 'terminate':
      throw new TypeError('refused before')
    case 'remove': {
      if (set.endpoints.length === 1) {
        return reject(
          wanted,
          'REJECTED',
          `${formatRef(wanted.ref)} is the last endpoint of '${service}': an empty set takes the cluster down, add another endpoint first`,
        )
      }
      return { next: set.without(new Set([member])), leaves: member }
    }
    default:
      return change satisfies never
  }
}

function planAdd(
  wanted: WantedChange,
  change: Extract<Change, { kind: 'add' }>,
  set: Assignment,
): Plan {
  const { address, port, weight } = change
  const native = isEndpointNative(change.native) ? change.native : undefined
  const name = isPipe(address) ? address : formatSocket(address, port)
  if (native === undefined && wanted.member !== name) {
    return reject(
      wanted,
      'INVALID_OPTIONS',
      `${formatRef(wanted.ref)}: an Envoy endpoint is named by its address, expected the member '${name}'`,
    )
  }
  const there = set.endpoints.find((found) => found.member === wanted.member)
  // A pipe or an internal listener has no port to compare: its name is its address.
  if (there !== undefined && there.port === undefined) {
    return { result: { ref: wanted.ref, status: 'unchanged' } }
  }
  const verdict = judge(change, toSeen(there), RULES)
  if (verdict !== undefined) return { result: { ref: wanted.ref, ...verdict } }
  if (weight !== undefined && !(Number.isInteger(weight) && weight >= 1 && weight < 2 ** 32)) {
    return reject(
      wanted,
      'INVALID_OPTIONS',
      `${formatRef(wanted.ref)}: weight ${weight}, Envoy takes whole numbers from 1 on and rejects the whole set otherwise`,
    )
  }
  try {
    const next = set.withEndpoint({ address, port, weight, native })
    if (next.endpoints.some((found) => found.member === wanted.member)) return { next }
    return reject(wanted, 'INVALID_OPTIONS', `${formatRef(wanted.ref)}: native is another endpoint`)
  } catch (problem) {
    if (!(problem instanceof AssignmentProblem)) throw problem
    return reject(wanted, 'INVALID_OPTIONS', `${formatRef(wanted.ref)}: ${problem.toString()}`)
  }
}

function panicPlan(
  wanted: WantedChange,
  next: Assignment,
  views: readonly ProxyView[],
  context: PlanContext,
): Plan | undefined {
  if (context.onPanic === 'allow') return undefined
  const verdict = context.reader.panic(next, views, wanted.member)
  if (verdict === undefined) return undefined
  const { where, healthy, total, threshold } = verdict
  return reject(
    wanted,
    'REJECTED',
    `${formatRef(wanted.ref)} is not drained: ${healthy} of ${total} endpoints of ${where} would be healthy, and below its healthy_panic_threshold of ${threshold} % Envoy sends traffic to all of them, drained ones too; get another endpoint ready first, or set common_lb_config.healthy_panic_threshold to 0 (Envoy then answers 503), or pass onPanic: 'allow'`,
  )
}

/** The status an endpoint had before we drained it, by its ticket; healthy where that is not known. */
function statusBefore(native: Change extends never ? never : unknown): EdsStatus {
  const value =
    typeof native === 'object' && native !== null && 'status' in native ? native.status : undefined
  const status = typeof value === 'string' ? toEdsStatus(value) : undefined
  return status === undefined || status === 'DRAINING' ? 'HEALTHY' : status
}

function reject(wanted: WantedChange, code: DrainableError['code'], message: string): Plan {
  return { result: rejected(wanted, code, message) }
}

/** A refusal. */
export function rejected(
  { ref }: WantedChange,
  code: DrainableError['code'],
  message: string,
  cause?: DrainableError,
): ChangeResult {
  const error = new DrainableError(code, message, {
    ref,
    provider: 'envoy',
    ...(cause === undefined ? {} : { retryable: cause.retryable }),
    cause,
  })
  return { ref, status: 'rejected', error }
}
