import type { Change } from '../../provider/contract.js'
import type { DrainableError } from '../../provider/error.js'
import type { Outcome, Phase } from '../../provider/report.js'
import type { DrainEvent } from '../events.js'
import type { DrainState, Effect, Input, MachinePolicy } from './state.js'

/** One transition under construction: the state so far, and what is to go out. */
export class Draft {
  state: DrainState
  readonly effects: Effect[] = []
  readonly policy: MachinePolicy
  readonly now: number
  readonly wall: number

  constructor(state: DrainState, input: Input, policy: MachinePolicy) {
    this.state = state
    this.policy = policy
    this.now = input.at
    this.wall = input.wall
  }

  set(change: Partial<DrainState>): void {
    this.state = { ...this.state, ...change }
  }

  /** What every event about the member begins with. */
  get stamp(): { readonly at: string; readonly ref: DrainState['ref'] } {
    return { at: new Date(this.wall).toISOString(), ref: this.state.ref }
  }

  emit(event: DrainEvent): void {
    this.effects.push({ type: 'emit', event })
  }

  fault(error: DrainableError): void {
    this.emit({ type: 'fault', ...this.stamp, error })
  }

  phase(to: Phase): void {
    const from = this.state.phase
    if (from === to || from === 'removed') return
    this.set({ phase: to })
    this.emit({ type: 'phase', ...this.stamp, from, to })
  }

  /** Sends a change: nothing else is sent before its outcome is known. */
  apply(change: Change, first = false): void {
    this.set({ pending: { change, state: 'sent', lostAt: null, lateUntil: null } })
    this.effects.push({ type: 'apply', change, first })
  }

  end(outcome: Outcome, error: DrainableError | null = null): void {
    if (this.state.ended !== null) return
    this.set({ ended: { outcome, at: this.now, error } })
    this.effects.push({ type: 'end', outcome })
  }
}
