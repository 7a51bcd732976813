import type { Policy } from 'drainable'
import type { ModelProvider } from '../world/model-provider.js'
import type { UserProcess } from './user-process.js'

/** The part of a policy that the judge needs; durations in milliseconds. */
export interface Wish {
  readonly timeout: number
  readonly settle: number
  readonly policy: Policy
}

/** One drain, as its ticket sees it: it may live in several processes, one after the other. */
export interface Chain {
  readonly id: string
  readonly keys: ReadonlySet<string>
  readonly wish: Wish
  /** The ticket last saved, as JSON. */
  saved: string | undefined
  /** When that was. */
  savedAt: number
  /** Members it has sent a hold for. */
  readonly held: Set<string>
  /** Holds that its steps have announced in their tickets. */
  readonly announced: { readonly key: string; readonly to: string; readonly at: number }[]
  /** Whether a process still works on it, also between two calls. */
  busy: boolean
  /** Whether a process died while it ran. */
  crashed: boolean
}

export type Verb = 'drain' | 'startDrain' | 'resumeDrain' | 'stepDrain' | 'watch' | 'undo' | 'ready'

/** One call of the library, or one handle, from its beginning until nothing may come of it any more. */
export interface Call {
  readonly number: number
  readonly verb: Verb
  readonly process: UserProcess
  readonly provider: ModelProvider
  readonly keys: ReadonlySet<string>
  /** The drain it belongs to; none for `ready`. */
  readonly chain: Chain | undefined
  readonly startedAt: number
  /** When the ticket was saved that it goes on with; undefined: with none. */
  ticketAt: number | undefined
  /** Since when this process can know anything of the members: for a step, the first step. */
  readonly processStartedAt: number
  /** Identities the member had since the call began, fixed with its first change. */
  readonly identities: Map<string, ReadonlySet<string>>
  /** Members it has sent a first hold for, and that it wishes down since. */
  readonly wishesDown: Set<string>
  /** Members it has said are draining after a hold that it can have sent, and has not let go of since: it has held them for certain. */
  readonly holds: Set<string>
  /**
   * Until when it has held each member, also where its hold found the member drained by another claim. `sure`: it has said so;
   * otherwise its ticket does.
   */
  readonly kept: Map<string, { until: number; sure: boolean }>
  /**
   * Drains of this process that were undone while this one held the member, by the member: what they had changed is left to
   * this one (decision 2 of docs/decisions/core.md).
   */
  readonly heirOf: Map<string, Set<Chain>>
  /** Up to which change it has last let a member go, by the member. */
  readonly letGo: Map<string, number>
  /** Members that are over for it: nothing may be sent for them. */
  readonly over: Set<string>
  /** Members that it takes back because its hold left too few serving: it continues with that even if another call opens them. */
  readonly yields: Set<string>
  /** Members of which its own hold was refused for good: those that others hold it has not to put back. */
  readonly refused: Set<string>
  /** When it had its outcome: what is still open then it does not wait for. */
  endedAt: number
  /** When its user let it go: what it says after that is how it was then. */
  releasedAt: number
  live: boolean
  /** Since when it is not live any more. */
  closedAt: number
  /** From which call on it opens what it drained: an undo that an abort has begun. */
  undoes: number
  /** When that was; Infinity: never. */
  undoesAt: number
}

/** The turn of a call that opens members: of two with opposite goals the later one wins. */
export function turnOfOpener(call: Call): number {
  return call.verb === 'ready' || call.verb === 'undo' ? call.number : call.undoes
}

export function isDrain({ verb }: Call): boolean {
  return verb === 'drain' || verb === 'startDrain' || verb === 'resumeDrain' || verb === 'stepDrain'
}
