import type { AdminState, ChangeResult, Health, MemberRef } from 'drainable'
import { DrainableError } from 'drainable'
import type { BalancerProcess } from './balancer-process.js'
import type { SentChange } from '../judge/sent-change.js'

export const RANK: Readonly<Record<AdminState, number>> = { ready: 0, drain: 1, maint: 2 }

export function keyOf(ref: MemberRef): string {
  return `${ref.pool}/${ref.member}`
}

/** Who set a member's own state last. */
export interface Setter {
  readonly by: 'start' | 'operator' | 'reload' | 'library'
  readonly at: number
  /** There where it was the library. */
  readonly change?: SentChange
}

/** One member as it truly is. */
export interface Member {
  readonly ref: MemberRef
  readonly key: string
  identity: string
  address: string
  /** Until when its name does not resolve: nothing says then who it is. Undefined where it always did. */
  namelessUntil?: number
  present: boolean
  own: AdminState
  setter: Setter
  /**
   * The state before a drain's first change that took effect, by the drain's id. `unclear`: several
   * drains can have asked for that change, or others have changed the member since.
   */
  bases: Map<string, AdminState | 'unclear'>
  /** When a drain first sent a hold for it, by the drain's id. */
  begun: Map<string, number>
  /** Drains of which a hold has changed it. */
  changedBy: Set<string>
  /** When a drain was taken back: what it finds after that is what its next undo goes back to. */
  undoneAt: Map<string, number>
  /** Every state it was set to, and by whom. */
  readonly sets: { readonly to: AdminState; readonly setter: Setter }[]
  health: Health
  /** When it last was one that would serve. */
  servedAt: number
  /** When another client than the library last changed anything about it. */
  foreignAt: number
  /** The newest reload of its process that could have changed its state. */
  reloadedAt: number
  /** Every identity it ever had, with when it began. */
  readonly identities: { readonly identity: string; readonly from: number }[]
}

/** What the truth tells as it happens. */
export interface TruthListener {
  arrived(key: string, process: BalancerProcess): void
  /** One piece of work is over. */
  left?(key: string): void
  /** Before the change takes effect. */
  executes(sent: SentChange, member: Member | undefined): void
  executed(
    sent: SentChange,
    member: Member | undefined,
    result: ChangeResult,
    was: AdminState,
  ): void
  interfered(key: string, what: string): void
}

/** A change that the balancer refuses. */
export function refused(
  ref: MemberRef,
  code: 'NOT_FOUND' | 'CONFLICT' | 'UNSUPPORTED',
  text: string,
): ChangeResult {
  const error = new DrainableError(code, `${keyOf(ref)}: ${text}`, { ref, provider: 'model' })
  return { ref, status: 'rejected', error }
}
