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
 * @packageDocumentation
 */
export type {
  AbsentReading,
  AdminState,
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
export { DrainableError, isDrainableError } from './provider/error.js'
export type { DrainableErrorData, DrainCode, ErrorCode } from './provider/error.js'
export type {
  DrainReport,
  MemberReport,
  Outcome,
  Phase,
  Proof,
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
  TerminatedEvent,
} from './core/events.js'
export type { DesiredMember } from './core/desired.js'
export { drain, startDrain } from './core/drain.js'
export type { Drain } from './core/handle.js'
export type { Call, Policy } from './core/policy.js'
export type { PolicyData } from './core/policy-data.js'
export { ready } from './core/ready.js'
export type { ReadyOptions, ReadyReport } from './core/ready.js'
export { restore } from './core/restore.js'
export { resumeDrain } from './core/resume.js'
export type { ResumeOptions } from './core/resume-options.js'
export { stepDrain } from './core/step.js'
export type { DrainStep, StepStart } from './core/step.js'
export type { Target } from './core/target.js'
export type { Ticket, TicketChange, TicketMember, TicketStore } from './core/ticket.js'
export { fileTickets, fromUnstorage } from './core/ticket-store.js'
export type { UnstorageLike } from './core/ticket-store.js'
export { select, watch } from './core/watch.js'
export type { SelectOptions, WatchOptions } from './core/watch.js'
export { withEvents } from './core/with-events.js'
export type { ProviderEvents } from './core/with-events.js'
