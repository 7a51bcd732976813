import type {
  AdminState,
  Capabilities,
  Change,
  ChangeResult,
  Json,
  LoadScope,
  MemberRef,
  Reading,
} from '../../provider/contract.js'
import type { DrainableError } from '../../provider/error.js'
import type { Outcome, Phase, Proof } from '../../provider/report.js'
import type { DrainEvent } from '../events.js'

/** What the machine is told about the drain; never changes while it runs. Durations in milliseconds. */
export interface MachinePolicy {
  /** `watch`: looks only, never asks for a change. */
  readonly mode: 'drain' | 'watch'
  readonly hold: 'drain' | 'maint'
  /** Raise to maint on the verdict: never, where maint is gentle, or wherever there is a maint. */
  readonly seal: 'never' | 'gentle' | 'always'
  readonly settle: number
  readonly until: 'idle' | 'removed'
  readonly onTimeout: 'fail' | 'terminate' | 'proceed'
  readonly onOverrule: 'reapply' | 'fail'
  /** Raise to maint that long after the start; null: never. */
  readonly escalateAfter: number | null
  readonly capabilities: Capabilities
}

/** Two readings of one scope that both say zero, with nothing arrived between them. */
export interface ZeroRun {
  readonly first: LoadScope
  readonly last: LoadScope
}

/** What is known of one process that can hold work for the member. */
export interface ScopeTrack {
  /** Its newest reading, of whatever state. */
  readonly last: LoadScope
  /** Its newest reading that could be read. Null: never read. */
  readonly read: LoadScope | null
  /** Since when its arrivals have the present value: the receipt of the first reading that said so. */
  readonly quietFrom: number
  /** Zeros since the hold took effect there. */
  readonly zeros: ZeroRun | null
  /** Arrivals at the first reading after the hold took effect: what came since is persistence. */
  readonly arrivalsAtEffect: number | null
  /** Since when `active` has the present value. */
  readonly steadySince: number
  /** Known from a ticket only: a provider that never saw it and does not list it can't know that it ended. */
  readonly resumed: boolean
}

/** A change sent and not yet known to have happened. */
export interface PendingChange {
  readonly change: Change
  /** `lost`: its outcome is unknown; it may still be executed until {@link PendingChange.lateUntil}. */
  readonly state: 'sent' | 'lost'
  /** When the outcome became unknown. */
  readonly lostAt: number | null
  /** Counted from the first answer to a request sent after the loss. */
  readonly lateUntil: number | null
}

/** The moment the rule was satisfied, kept while the door is being closed. */
export interface Verdict {
  readonly at: number
  readonly proof: Proof
  /** Incarnation and arrivals of each scope at the verdict. */
  readonly scopes: Readonly<
    Record<string, { readonly incarnation: string; readonly arrivals: number | null }>
  >
  /** When the seal was confirmed; null: not yet. */
  readonly sealedAt: number | null
}

/** The member as first found: what an undo goes back to, and how it is told from another of its name. */
export interface FoundMember {
  readonly identity: string
  readonly own: AdminState | 'unknown'
  readonly serves: boolean
  readonly native: Json | null
}

/** How a member's drain ended. */
export interface Ending {
  readonly outcome: Outcome
  readonly at: number
  readonly error: DrainableError | null
}

/** Everything the machine knows of one member. Plain data; all times by the drain's clock. */
export interface DrainState {
  readonly ref: MemberRef
  readonly phase: Phase
  readonly startedAt: number
  /** Null: none. */
  readonly deadline: number | null
  /** What the member's own state should at least be. `none`: nothing was asked for yet. */
  readonly wish: 'none' | 'drain' | 'maint'
  /** Whether a hold of ours was carried out, rather than found in place. */
  readonly held: boolean
  /** The highest hold that was confirmed: a lower state than that is somebody else's, or forgotten. */
  readonly confirmed: 'none' | 'drain' | 'maint'
  readonly found: FoundMember | null
  /** The newest reading, with when it was asked for and when it came. */
  readonly last: { readonly reading: Reading; readonly askedAt: number; readonly at: number } | null
  /** The newest look that failed, if it is newer than the newest reading. */
  readonly blind: { readonly error: DrainableError; readonly askedAt: number } | null
  /** When the newest change got its answer: looks asked for before that, or in the same instant, never count. */
  readonly confirmedAt: number
  /** From when on snapshots count: the last change took effect. Null: it is not in effect. */
  readonly effectiveSince: number | null
  readonly scopes: Readonly<Record<string, ScopeTrack>>
  /** Incarnations at the last reading whose own state was as wished: tells "forgotten" from "overruled". */
  readonly incarnationsAtWish: Readonly<Record<string, string>> | null
  readonly lost: readonly { readonly scope: string; readonly active: number; readonly at: string }[]
  readonly pending: PendingChange | null
  readonly verdict: Verdict | null
  readonly proof: Proof | null
  readonly sealed: boolean
  /** Why the proof is not to be called verified, as known at the verdict. */
  readonly unverified: string | null
  /** Seals that were refused or got lost; after three we say idle without. */
  readonly sealFailures: number
  /** How often the state of somebody else was found, and whether the newest was answered already. */
  readonly overrules: number
  readonly overruled: boolean
  /** Whether {@link MachinePolicy.escalateAfter} was acted on. */
  readonly escalated: boolean
  /** Nothing is sent before. */
  readonly notBefore: number
  /** Guard: the pool has too few left to take this one. */
  readonly atMinimum: boolean
  readonly terminated: number
  readonly terminatedAtMost: boolean
  /** Until when what was cut may take to show. Null: nothing was cut by deadline. */
  readonly terminateUntil: number | null
  readonly removeFailures: number
  readonly ended: Ending | null
  /** Whether the whole drain is over: until then a member that loses idle goes on. */
  readonly settled: boolean
  /** After the end: whether the wish is still kept up. */
  readonly holding: boolean
  /** The load event last sent, to send one only on a change or after a second. */
  readonly said: { readonly key: string; readonly at: number } | null
}

/** What comes in. `at` is the moment of receipt by the drain's clock, `wall` the same moment in epoch milliseconds. */
export type Input = { readonly at: number; readonly wall: number } & (
  | { readonly type: 'reading'; readonly reading: Reading; readonly askedAt: number }
  | { readonly type: 'unreadable'; readonly error: DrainableError; readonly askedAt: number }
  | { readonly type: 'result'; readonly change: Change; readonly result: ChangeResult }
  /** The guard's answer to a first hold. */
  | { readonly type: 'denied'; readonly error: DrainableError; readonly final: boolean }
  | { readonly type: 'tick' }
  | { readonly type: 'end'; readonly outcome: Outcome; readonly error?: DrainableError }
  /** The whole drain is over; the wish is still kept up. */
  | { readonly type: 'settle' }
  /** Stop keeping the wish up. */
  | { readonly type: 'release' }
)

/** What goes out. */
export type Effect =
  | {
      readonly type: 'apply'
      readonly change: Change
      /** The first hold: it passes the guard. */ readonly first: boolean
    }
  | { readonly type: 'emit'; readonly event: DrainEvent }
  | { readonly type: 'end'; readonly outcome: Outcome }

/** One step of the machine. */
export interface Transition {
  readonly state: DrainState
  readonly effects: readonly Effect[]
}

/** A member nobody has looked at yet. */
export function initialState(ref: MemberRef, at: number, deadline: number | null): DrainState {
  return {
    ref,
    phase: 'active',
    startedAt: at,
    deadline,
    wish: 'none',
    held: false,
    confirmed: 'none',
    found: null,
    last: null,
    blind: null,
    confirmedAt: at - 1,
    effectiveSince: null,
    scopes: {},
    incarnationsAtWish: null,
    lost: [],
    pending: null,
    verdict: null,
    proof: null,
    sealed: false,
    unverified: null,
    sealFailures: 0,
    overrules: 0,
    overruled: false,
    escalated: false,
    notBefore: at,
    atMinimum: false,
    terminated: 0,
    terminatedAtMost: false,
    terminateUntil: null,
    removeFailures: 0,
    ended: null,
    settled: false,
    holding: true,
    said: null,
  }
}

const RANK = { none: -1, ready: 0, drain: 1, maint: 2 } as const

/** Whether a state is at least as closed as another. */
export function atLeast(own: AdminState | 'unknown', wish: AdminState | 'none'): boolean {
  return own !== 'unknown' && RANK[own] >= RANK[wish]
}
