import type { DrainableError } from './error.js'
import type { AdminState, LoadScope, MemberRef, Reading } from './contract.js'

/** The library's own word for how far a member is: never the balancer's admin state. */
export type Phase = 'active' | 'draining' | 'idle' | 'removed'

/**
 * How a drain ended. Every drain ends with one of these.
 *
 * - `idle`: nothing in flight, nothing new, as the report's proof says
 * - `removed`: idle, then taken out of the pool (`until: 'removed'`)
 * - `terminated`: what was left at the deadline was cut (`onTimeout: 'terminate'`)
 * - `proceeded`: the deadline passed with work left and the caller wanted to go on (`onTimeout: 'proceed'`)
 * - `timeout`: the deadline passed with work left; the member stays drained
 * - `overruled`: another client set another state, or a later call of this process took the member
 * - `refused`: a guard or the balancer said no; nothing was changed, or it was put back
 * - `aborted`: the caller's signal, or it was released or taken back before its end
 * - `unreachable`: the balancer could not be read at the beginning or at the deadline, or the provider was closed
 * - `gone`: the member vanished, or is another one now
 * - `restored`: nothing of ours is left on the member (the outcome of an undo)
 */
export type Outcome =
  | 'idle'
  | 'removed'
  | 'terminated'
  | 'proceeded'
  | 'timeout'
  | 'overruled'
  | 'refused'
  | 'aborted'
  | 'unreachable'
  | 'gone'
  | 'restored'

/** Why a member is not idle, or not open again, for a program. `refused`: the balancer refused a change of ours; always first. */
export type WhyCode =
  /**
   * The balancer refused our last change.
   *
   * Read its words in the text. The library tries again if that can help.
   */
  | 'refused'
  /**
   * Requests or connections are under way.
   *
   * Wait, or let the policy cut them at the deadline.
   */
  | 'in-flight'
  /**
   * Requests wait for this member in the balancer.
   *
   * The balancer serves them, or sends them to another member, within its queue timeout.
   */
  | 'queued'
  /**
   * Sticky clients still come back.
   *
   * `escalateAfter`, or `hold: 'maint'`, sends them to another member.
   */
  | 'persistence'
  /**
   * Connections are open that only the client or the server ends: WebSockets, tunnels, streams.
   *
   * Close them at the server, or use `onTimeout: 'terminate'`.
   */
  | 'long-lived'
  /**
   * A process that a reload replaced still holds work or connections.
   *
   * It ends with them, or by the limit that the text names, such as `hard-stop-after`.
   */
  | 'old-scope'
  /**
   * A process that can hold work can't be read.
   *
   * Make it reachable. The drain does not report idle until the process is read, or has ended.
   */
  | 'unreadable'
  /**
   * The member is in another state than wished.
   *
   * Another client set it; see `onOverrule`.
   */
  | 'overruled'
  /**
   * The counts are too old to prove anything yet.
   *
   * Wait: the product refreshes them at its own pace.
   */
  | 'freshness'
  /**
   * Nothing is in flight, and the quiet time has not passed yet.
   *
   * Wait for the time that the text names.
   */
  | 'settling'
  /**
   * A process has not taken the state yet.
   *
   * Wait. The text names a process that never takes it.
   */
  | 'not-in-force'
  /**
   * The floor keeps the member serving.
   *
   * The drain begins once enough other members serve.
   */
  | 'pool-at-minimum'
  /**
   * The product does not count work.
   *
   * Idle ends by the product's own word or by time, and is never verified.
   */
  | 'no-counts'
  /**
   * A roll waits for a lease that another client has.
   *
   * The roll continues once that lease is over. If the text names a client that should not roll, stop it.
   */
  | 'lease'
  /**
   * A roll waits for the caller's `act`.
   *
   * Check what `act` waits for: the roll sets it no limit.
   */
  | 'acting'

/** One reason why a member is not idle, with a suggested step. */
export interface Why {
  /** The reason, for a program. */
  readonly code: WhyCode
  /** The member it is about. */
  readonly ref: MemberRef
  /** The process it is about, where it is about one. */
  readonly scope?: string
  /** How many, where there is something to count. */
  readonly count?: number
  /** How long the oldest of them has been in flight, in milliseconds, where the product tells it. */
  readonly oldest?: number
  /** The reason in one sentence. */
  readonly text: string
  /** One step that can help. */
  readonly hint?: string
}

/** What shows that a member is idle: the samples of each scope, and since when nothing arrived. */
export interface Proof {
  /** `unknown`: the product does not count arrivals, so this proof is the weaker kind. */
  readonly arrivals: 'unchanged' | 'unknown'
  /** ISO 8601 time since which nothing arrived in any scope. */
  readonly quietSince: string
  /** The samples that prove it, oldest first. */
  readonly samples: readonly { readonly at: string; readonly scopes: readonly LoadScope[] }[]
  /** The proof in one readable sentence. */
  readonly text: string
}

/** How the drain of one member went. */
export interface MemberReport {
  readonly ref: MemberRef
  readonly outcome: Outcome
  readonly phase: Phase
  /** The member's own admin state before we touched it. */
  readonly wasAdmin: AdminState
  /** Whether idle was proved: seen on every process that can hold work, in force, and stayed true. */
  readonly verifiedIdle: boolean
  /** Whether the door was closed to persistent clients too: own state is maint at the verdict. */
  readonly sealed: boolean
  /** There when the member was called idle, also where that is not verified. */
  readonly proof?: Proof
  /** Processes that ended while their last reading held work: it was cut, or finished unseen. */
  readonly lost: readonly { readonly scope: string; readonly active: number; readonly at: string }[]
  /** How many were cut because the caller asked for it. */
  readonly terminated: number
  /** There where the product did not say how many it cut: {@link MemberReport.terminated} is then at most. */
  readonly terminatedAtMost?: true
  /** Milliseconds from the start of this drain to its end, or to now. */
  readonly elapsed: number
  /** Why it is not idle, or why idle is not verified; empty when nothing is left to say. */
  readonly why: readonly Why[]
  readonly lastReading?: Reading
  readonly error?: DrainableError
}

/** How a drain went. */
export interface DrainReport {
  /** The worst of the members' outcomes. */
  readonly outcome: Outcome
  readonly members: readonly MemberReport[]
  /** Milliseconds from the start of this drain to its end, or to now. */
  readonly elapsed: number
  /** Why the drain did not start, where that is about no single member. */
  readonly error?: DrainableError
}

/** How one server of a roll went. */
export interface ServerReport {
  /** Its address; absent where the balancer tells none. */
  readonly address?: string
  /** Every member of the roll that is this server. */
  readonly refs: readonly MemberRef[]
  /** `busy`: its work did not end in time, it was put back and not acted on. `untouched`: it did not begin. */
  readonly outcome: 'done' | 'failed' | 'busy' | 'untouched'
  /** How often the caller's function was called for it. */
  readonly attempts: number
  /** Why it failed. */
  readonly error?: DrainableError
  /** How its drain went, where there was one in this process. */
  readonly drained?: DrainReport
}

/** How a roll went. */
export interface RollReport {
  /**
   * `done`: every server is done. `stopped`: not every one: one failed, or was busy, or `stop()` was
   * called. `aborted`: the caller's signal, or the handle was closed.
   */
  readonly outcome: 'done' | 'stopped' | 'aborted'
  /** Server by server, in the order of the roll. */
  readonly servers: readonly ServerReport[]
  /** Members of servers that are done and were drained in this process. */
  readonly done: readonly MemberReport[]
  /** Members of servers that failed or were busy, each with its server's error. */
  readonly failed: readonly MemberReport[]
  /** Members of servers that did not begin. */
  readonly untouched: readonly MemberRef[]
  /** Members that are left drained by this roll: it opens none whose server failed. */
  readonly leftDrained: readonly MemberRef[]
  /**
   * Members of servers that are done which were out before this roll drained them: they are left as found,
   * for an operator, or for an older ticket that knows them. `ready()` opens them.
   */
  readonly leftAsFound: readonly MemberRef[]
  /** Milliseconds from the start of this roll in this process to its end, or to now. */
  readonly elapsed: number
  /** Why the roll did not start, or stopped, where that is about no single server. */
  readonly error?: DrainableError
}
