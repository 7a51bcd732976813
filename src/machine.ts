/**
 * The state machine behind every drain, as a pure reducer: for people who want to drive it
 * themselves, test against it, or see exactly when a member is called idle.
 *
 * @module drainable/machine
 */
export { initialState } from './core/machine/state.js'
export type {
  DrainState,
  Ending,
  EndingState,
  FoundMember,
  Hold,
  LastReading,
  LateChange,
  Owned,
  OwnChange,
  ProofState,
  ScopeMark,
  ScopeTrack,
  SentChange,
  Verdict,
  ZeroRun,
} from './core/machine/state.js'
export { openGoal } from './core/machine/goal.js'
export type { Goal, OpenGoal, OpenOptions } from './core/machine/goal.js'
export type { Effect, Input, ReadingInput, Sight, Transition } from './core/machine/input.js'
export type { MachinePolicy } from './core/machine/policy.js'
export { brokenInvariants } from './core/machine/invariants.js'
export { transition } from './core/machine/transition.js'
export { explain } from './core/machine/why.js'
