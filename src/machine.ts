/**
 * The state machine behind every drain, as a pure reducer: for people who want to drive it
 * themselves, test against it, or see exactly when a member is called idle.
 *
 * @packageDocumentation
 */
export { initialState } from './core/machine/state.js'
export type {
  DrainState,
  Effect,
  Ending,
  FoundMember,
  Input,
  MachinePolicy,
  PendingChange,
  ScopeTrack,
  Transition,
  Verdict,
  ZeroRun,
} from './core/machine/state.js'
export { transition } from './core/machine/transition.js'
export { explain } from './core/machine/why.js'
