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
export { addressTypeOf, canonicalAddress, formatAddress } from './address.js'
export { normaliseConditions, tierOf } from './slices/conditions.js'
export type { Conditions, Tier } from './slices/conditions.js'
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
export type { EndpointSlice, SliceEndpoint, SlicePort } from './slices/endpoint-slice.js'
export { formatPlan } from '../provider/format-plan.js'
export { mapEndpoints } from './map-endpoints.js'
export type { MapOptions } from './map-endpoints.js'
export { mapNodes } from './nodes/map-nodes.js'
export type { MapNodesOptions } from './nodes/map-nodes.js'
export { markByNodes } from './nodes/mark-by-nodes.js'
export { mergeSlices } from './slices/merge-slices.js'
export type { MergeOptions } from './slices/merge-slices.js'
export type { NodeEnd } from './nodes/node-end.js'
export type { Node, NodeAddress, NodeCondition, NodeTaint } from './nodes/node.js'
export { planChanges } from './plan/plan-changes.js'
export type { HeldBack, Plan, PlannedChange, PlanOptions } from './plan/plan.js'
export { strategies } from './strategies/strategies.js'
export type { StrategyName } from './strategies/strategies.js'
export type {
  EndpointView,
  Strategy,
  StrategyContext,
  StrategyInput,
  StrategySettings,
  TrafficPolicy,
  Verdict,
} from './strategies/strategy.js'
export { toDesired } from './plan/to-desired.js'
export type { DesiredOptions } from './plan/to-desired.js'
export type { DesiredMember } from '../provider/desired.js'
