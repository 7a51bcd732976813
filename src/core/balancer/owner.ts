import type { Change, DrainableProvider, MemberRef } from '../../provider/contract.js'
import type { DrainableError } from '../../provider/error.js'
import type { DrainEvent } from '../events.js'
import type { Left } from '../member/input.js'
import type { ClaimStart } from '../member/record.js'

/** A call, as its balancer sees it: the owner of claims. */
export interface Owner {
  readonly provider: DrainableProvider
  readonly keepReady: number
  /** Checked before each change is sent. */
  readonly permit: Permit | undefined
  /** Fires when it has let go: an answer that is under way is still useful for a while. */
  readonly stop: AbortSignal
  /** Writes its ticket before changes are sent; what can't be undone without is refused. */
  keep(changes: readonly Wanted[]): Promise<void>
  /** Writes its ticket after an answer. @param touches - the count of the member before it ({@link Balancer.touches}) */
  note(touches: number): void
  /** Writes its ticket: that of another call, which has left a member to it, is about to go. */
  inherit(): Promise<void>
  emit(event: DrainEvent): void
  /** Asks the caller's own health check. */
  check(ref: MemberRef): void
  /** Tells its action that a member is not idle any more. */
  lost(error: DrainableError): void
  /** Something changed in a claim of it. `soon`: only another look shows what is now. */
  changed(soon: boolean): void
  /** The look did not show enough to the floor: the next one is wanted at once. */
  postponed(): void
  /** Another call goes on with its ticket. */
  replaced(): void
  /** An exception in a step, or in a caller's function: nothing else would end the call. */
  broken(thrown: unknown): void
}

/** A change that a record asks for, and on whose behalf. */
export interface Wanted {
  readonly claim: number
  readonly change: Change
}

/** A claim to lay. */
export interface Laying {
  /** The number of its call: of two opposite ones the later wins. */
  readonly seq: number
  readonly start: ClaimStart
  readonly left?: Left | undefined
}

/** Tells a call of a change in its claims. What throws ends that call alone. */
export function tell(owner: Owner, soon: boolean): void {
  try {
    owner.changed(soon)
  } catch (thrown) {
    owner.broken(thrown)
  }
}

/** Called just before a change is sent: returns why it must not be sent, or undefined. */
export type Permit = () => DrainableError | undefined

/** The lease under which a run changes balancers. */
export interface LeaseTerm {
  readonly permit: Permit
  /** The mark that goes into its tickets. */
  readonly mark: { readonly name: string; readonly fence: number }
}
