/**
 * The provider contract: the interface that your own adapter implements, and its types.
 *
 * @module drainable/provider
 */
export type {
  AbsentReading,
  AddressTarget,
  AdminState,
  Advice,
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
  Snapshot,
} from './contract.js'
export type { Secret, Tls } from './option-schemas.js'
export { callContext } from './abort.js'
export { systemClock } from './clock.js'
export type { Clock } from './clock.js'
export type { Duration } from './duration.js'
export { DrainableError, isDrainableError } from './error.js'
export type { DrainableErrorData, DrainCode, ErrorCode } from './error.js'
export type { DrainReport, MemberReport, Outcome, Phase, Proof, Why, WhyCode } from './report.js'
