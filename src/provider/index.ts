/**
 * The provider contract: what an adapter of your own implements, and the words it is written in.
 *
 * @module drainable/provider
 */
export type {
  AbsentReading,
  AddressTarget,
  AdminState,
  CallContext,
  Capabilities,
  Change,
  ChangeResult,
  DrainableProvider,
  Health,
  Json,
  LoadScope,
  MaintEffect,
  MemberRef,
  PoolReading,
  PresentReading,
  ProviderInfo,
  Reading,
  Secret,
  Snapshot,
  Tls,
} from './contract.js'
export { callContext } from './call-context.js'
export { systemClock } from './clock.js'
export type { Clock } from './clock.js'
export type { Duration } from './duration.js'
export { DrainableError, isDrainableError } from './error.js'
export type { DrainableErrorData, DrainCode, ErrorCode } from './error.js'
export type { DrainReport, MemberReport, Outcome, Phase, Proof, Why, WhyCode } from './report.js'
