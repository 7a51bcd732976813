/**
 * From the conditions of Kubernetes endpoints and nodes to what a balancer should do with its
 * members. Everything here is pure: no clock, no socket, no Kubernetes client, no memory.
 *
 * `mergeSlices` (with `markByNodes`) or `mapNodes` make a list of endpoints, `mapEndpoints` decides about the whole list,
 * `toDesired` names the pool, and `planChanges` compares with what the balancer has.
 *
 * @example
 * ```ts
 * import { formatPlan, mapEndpoints, mergeSlices, planChanges, toDesired } from 'drainable/endpoints'
 * import type { Snapshot } from 'drainable/provider'
 *
 * export function dryRun(slices: readonly unknown[], snapshot: Snapshot): string {
 *   const decisions = mapEndpoints(mergeSlices(slices, { port: 'http' }))
 *   return formatPlan(planChanges(toDesired(decisions, { pool: 'web' }), snapshot))
 * }
 * ```
 *
 * @packageDocumentation
 */
export { addressTypeOf, canonicalAddress, formatAddress } from './address.js'
export { normaliseConditions, tierOf } from './conditions.js'
export type { Conditions, Tier } from './conditions.js'
export type { Action, Decision, EndpointHealth } from './decision.js'
export type {
  AddressType,
  EndpointConditions,
  EndpointHints,
  EndpointInput,
  Intent,
  TargetRef,
  Tri,
} from './endpoint-input.js'
export type { EndpointSlice, SliceEndpoint, SlicePort } from './endpoint-slice.js'
export { formatPlan } from './format-plan.js'
export { mapEndpoints } from './map-endpoints.js'
export type { MapOptions } from './map-endpoints.js'
export { mapNodes } from './map-nodes.js'
export type { MapNodesOptions } from './map-nodes.js'
export { markByNodes } from './mark-by-nodes.js'
export { mergeSlices } from './merge-slices.js'
export type { MergeOptions } from './merge-slices.js'
export type { NodeEnd } from './node-end.js'
export type { Node, NodeAddress, NodeCondition, NodeTaint } from './node.js'
export { planChanges } from './plan-changes.js'
export type { HeldBack, Plan, PlannedChange, PlanOptions } from './plan.js'
export { strategies } from './strategies.js'
export type { StrategyName } from './strategies.js'
export type {
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
export type { DesiredMember } from '../core/desired.js'
