/**
 * Turns the conditions of Kubernetes endpoints and nodes into drains and additions on a balancer. Everything here is
 * pure: no clock, no socket, no Kubernetes client, no memory.
 *
 * `mergeSlices` (with `markByNodes`) or `mapNodes` make a list of endpoints, `mapEndpoints` decides about the whole
 * list, `toDesired` names the pool, and `planChanges` compares it with the balancer.
 *
 * @example
 * ```ts
 * import { formatPlan, mapEndpoints, mergeSlices, planChanges, toDesired } from 'drainable/endpoints'
 * import type { Snapshot } from 'drainable/provider'
 *
 * export function dryRun(slices: readonly unknown[], snapshot: Snapshot): string {
 *   const decisions = mapEndpoints(mergeSlices(slices, { port: 'http' }))
 *   const desired = toDesired(decisions, { pool: 'web', name: (d) => `ctl-${d.address}` })
 *   const owns = (one: { ref: { member: string } }) => one.ref.member.startsWith('ctl-')
 *   return formatPlan(planChanges(desired, snapshot, { pools: ['web'], owns }))
 * }
 * ```
 *
 * @module drainable/endpoints
 */
export { canonicalAddress, formatAddress } from '../provider/address.js'
export type { DesiredMember, HeldBack, Plan, PlannedChange } from '../provider/desired.js'
export { formatPlan } from '../provider/desired.js'
export { addressTypeOf, normaliseConditions, tierOf } from './endpoint.js'
export type {
  AddressType,
  Conditions,
  EndpointConditions,
  EndpointHints,
  EndpointInput,
  Intent,
  TargetRef,
  Tier,
  Tri,
} from './endpoint.js'
export { mapEndpoints } from './map-endpoints.js'
export type { Decision, MapOptions } from './map-endpoints.js'
export { mapNodes } from './map-nodes.js'
export type { MapNodesOptions } from './map-nodes.js'
export { markByNodes } from './nodes.js'
export type { Node, NodeAddress, NodeCondition, NodeEnd, NodeTaint } from './nodes.js'
export { planChanges } from './plan-changes.js'
export type { PlanOptions } from './plan.js'
export { mergeSlices } from './slices.js'
export type { EndpointSlice, MergeOptions, SliceEndpoint, SlicePort } from './slices.js'
export { strategies } from './strategies.js'
export type { StrategyName } from './strategies.js'
export type {
  Action,
  EndpointHealth,
  EndpointView,
  Strategy,
  StrategyContext,
  StrategyInput,
  StrategySettings,
  TrafficPolicy,
  Verdict,
} from './strategy.js'
export { toDesired } from './to-desired.js'
export type { DesiredOptions } from './to-desired.js'
