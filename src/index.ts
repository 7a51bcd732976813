/**
 * Take a server out of a load balancer with nothing dropped, and know when it is truly idle.
 *
 * @example
 * ```ts
 * import { drain, ready } from 'drainable'
 * import { haproxyRuntime } from 'drainable/haproxy-runtime'
 *
 * await using lb = haproxyRuntime({ socket: '/run/haproxy/admin.sock', master: '/run/haproxy-master.sock' })
 * const web1 = { pool: 'web', member: 'web1' }
 * await drain(lb, web1, { timeout: '2m' }, async (report) => {
 *   console.log(report.members[0]?.proof?.text) // now web1 can be stopped
 * })
 * await ready(lb, web1, { waitHealthy: '60s' })
 * ```
 *
 * @module drainable
 */
export type {
  AbsentReading,
  AdminState,
  Advice,
  CallContext,
  Capabilities,
  Change,
  ChangeResult,
  Clock,
  DrainableProvider,
  Duration,
  Health,
  Json,
  LoadScope,
  MaintEffect,
  MemberRef,
  PoolReading,
  PresentReading,
  ProviderInfo,
  Reading,
  Snapshot,
} from './provider/index.js'
export { toDuration } from './provider/duration.js'
export { DrainableError, isDrainableError } from './provider/error.js'
export type { DrainableErrorData, DrainCode, ErrorCode } from './provider/error.js'
export type {
  DrainReport,
  MemberReport,
  Outcome,
  Phase,
  Proof,
  RollReport,
  ServerReport,
  Why,
  WhyCode,
} from './provider/report.js'
export type {
  DrainEvent,
  EndEvent,
  FaultEvent,
  IdleEvent,
  LoadEvent,
  MemberEvent,
  OverruledEvent,
  PhaseEvent,
  ProviderEvent,
  TerminatedEvent,
} from './core/events.js'
export type {
  BeginEvent,
  ChangeMessage,
  DrainMessage,
  FaultMessage,
  LookMessage,
  RollMessage,
  TelemetryChannels,
  TelemetrySource,
} from './core/telemetry.js'
export type { Lease, LeaseAnswer, LeaseGrant } from './fleet/lease/lease.js'
export { natsLease } from './fleet/lease/nats-lease.js'
export type { NatsEntryLike, NatsKvLike } from './fleet/lease/nats-lease.js'
export { redisLease } from './fleet/lease/redis-lease.js'
export type { RedisLike } from './fleet/lease/redis-lease.js'
export type { DesiredMember, HeldBack, Plan, PlannedChange } from './provider/desired.js'
export { carryOut } from './core/calls/steps/carry-out.js'
export type { CarriedOut, CarryOutOptions, CarryOutReport } from './core/calls/steps/carry-out.js'
export { reconcile } from './reconcile/reconcile.js'
export type { Reconciler, ReconcilerEvents } from './reconcile/reconcile.js'
export type { ReconcileOptions, SetOptions } from './reconcile/options.js'
export type { ReconciledMember } from './reconcile/status.js'
export { combineProviders } from './fleet/combined/provider.js'
export type { CombineOptions } from './fleet/combined/provider.js'
export { drain, startDrain } from './core/calls/drain.js'
export type { ActionContext, DrainAction } from './core/calls/drain.js'
export type { Drain } from './core/calls/handle.js'
export type { Call } from './core/calls/call-options.js'
export type { Policy } from './core/calls/policy.js'
export { plan } from './fleet/plan/plan.js'
export type { PlanPolicy } from './fleet/plan/plan.js'
export type { DrainPlan } from './fleet/plan/assemble.js'
export { ready } from './core/calls/ready.js'
export type { ReadyOptions, ReadyReport } from './core/calls/ready.js'
export { restore } from './core/calls/restore.js'
export { resumeDrain } from './core/calls/resume.js'
export type { ResumeOptions } from './core/calls/resume-options.js'
export { stepDrain } from './core/calls/steps/step.js'
export type { DrainStep, StepOptions, StepStart } from './core/calls/steps/step.js'
export type { Target } from './core/calls/target.js'
export type {
  DrainTicket,
  PolicyData,
  RollData,
  RolledServer,
  Ticket,
  TicketMember,
  TicketOwner,
  TicketPart,
} from './core/tickets/ticket.js'
export type { TicketStore } from './core/tickets/store.js'
export { fileTickets } from './core/tickets/file-tickets.js'
export { fromUnstorage } from './core/tickets/unstorage.js'
export type { UnstorageLike } from './core/tickets/unstorage.js'
export { findOrphans } from './fleet/orphans.js'
export { heldMembers } from './core/calls/held-members.js'
export type { HeldMembersOptions } from './core/calls/held-members.js'
export type { FindOrphansOptions, Orphan, OrphanMember } from './fleet/orphans.js'
export type { MemberStatus } from './core/status.js'
export type { OwnHealthCheck } from './core/calls/run/run-spec.js'
export { resumeRoll, roll, startRoll } from './fleet/roll/roll.js'
export type { Roll } from './fleet/roll/handle.js'
export type { ResumeRollOptions, RollOptions, ServerDrained } from './fleet/roll/options.js'
export type {
  ActEvent,
  BatchEvent,
  RollEndEvent,
  RollEvent,
  ServerEvent,
  ServerFailedEvent,
} from './fleet/roll/events.js'
export type { RollTarget } from './fleet/roll/servers.js'
export { select, watch } from './core/calls/watch.js'
export type { SelectOptions, WatchOptions } from './core/calls/watch.js'
export type { TypedEvents } from './core/event-hub.js'
export { withEvents } from './core/with-events.js'
export type { ProviderEvents } from './core/with-events.js'
