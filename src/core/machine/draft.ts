import type { Change } from '../../provider/contract.js'
import type { DrainableError } from '../../provider/error.js'
import type { Outcome, Phase } from '../../provider/report.js'
import type { DrainEvent } from '../events.js'
import { sentChange } from './ledger/changes.js'
import { admitCut, cutBy } from './ledger/cuts.js'
import type { Effect, Input } from './input.js'
import type { MachinePolicy } from './policy.js'
import { ownOf, type DrainState, type EndingState, type Hold, type ProofState } from './state.js'

/** One transition in progress: the state so far, and the effects to send. */
export class Draft {
  state: DrainState
  readonly effects: Effect[] = []
  readonly input: Input
  readonly policy: MachinePolicy
  readonly now: number
  readonly wall: number

  constructor(state: DrainState, input: Input, policy: MachinePolicy) {
    this.state = state
    this.input = input
    this.policy = policy
    this.now = input.at
    this.wall = input.wall
  }

  set(change: Partial<DrainState>): void {
    this.state = { ...this.state, ...change }
  }

  hold(change: Partial<Hold>): void {
    this.set({ hold: { ...this.state.hold, ...change } })
  }

  proof(change: Partial<ProofState>): void {
    this.set({ proof: { ...this.state.proof, ...change } })
  }

  ending(change: Partial<EndingState>): void {
    this.set({ ending: { ...this.state.ending, ...change } })
  }

  /** The common fields of every event about the member. */
  get stamp(): { readonly at: string; readonly ref: DrainState['ref'] } {
    return { at: this.iso(this.now), ref: this.state.ref }
  }

  /** A moment of the run's clock as ISO 8601. */
  iso(at: number): string {
    return new Date(at + this.wall - this.now).toISOString()
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

  /** Sends a change; nothing else is sent before its outcome is known. */
  apply(change: Change, first: boolean): void {
    const sent = sentChange(change, ownOf(this.state), this.state.hold.late)
    const cuts = cutBy(this.state, this.policy, change)
    this.hold({ pending: cuts === undefined ? sent : { ...sent, cuts } })
    this.effects.push({ type: 'apply', change, first })
  }

  /** The identity for a change: a member with another one is left alone. */
  get identity(): { readonly identity?: string } {
    const identity = this.state.found?.identity ?? ''
    return identity === '' ? {} : { identity }
  }

  /** Ends the run; a hold that was kept up is still kept up. */
  end(outcome: Outcome, error: DrainableError | null = null): void {
    if (this.state.ending.ended !== null) return
    admitCut(this)
    this.ending({ ended: { outcome, at: this.now, error } })
  }

  /** Ends the run and stops keeping up the hold. */
  finish(outcome: Outcome, error: DrainableError | null = null): void {
    this.end(outcome, error)
    this.ending({ holding: false })
  }

  /** Reports that a member held idle for an action is no longer idle. */
  lose(error: DrainableError): void {
    const { settled, holding, lossSaid } = this.state.ending
    if (!settled || !holding || lossSaid) return
    this.ending({ lossSaid: true })
    this.effects.push({ type: 'lost', error })
  }
}
