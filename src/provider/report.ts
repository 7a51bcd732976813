import type { DrainableError } from './error.js'
import type { AdminState, LoadScope, MemberRef, Reading } from './contract.js'

/** How far the drain of a member is, in this package's own terms: never the balancer's admin state. */
export type Phase = 'active' | 'draining' | 'idle' | 'removed'

/**
 * How a drain ended. Every drain ends with one of these.
 *
 * - `idle`: nothing in flight and nothing new, as the report's proof shows
 * - `removed`: taken out of the pool (`until: 'removed'`): once it was idle, or at the deadline with the work that was
 *   left (`onTimeout: 'remove'`), which is never verified
 * - `terminated`: the work left at the deadline was cut (`onTimeout: 'terminate'`, or `'remove'` where a removal needs it)
 * - `proceeded`: the deadline passed with work left and the policy says to go on (`onTimeout: 'proceed'`)
 * - `timeout`: the deadline passed with work left; the member stays drained
 * - `overruled`: another client set another state, or a later call of this process took the member
 * - `refused`: a guard or the balancer refused the drain; nothing was changed, or the change was undone
 * - `aborted`: the caller's signal fired, or the drain was released or restored before its end
 * - `unreachable`: the balancer could not be read at the beginning or at the deadline, or the provider was closed. One
 *   that was waited for and never came has a row, with `*` for the pool and the member where only an address was given
 * - `gone`: the member vanished, or its name belongs to another member now
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

/**
 * The reason why a member is not idle or not open again, for a program. `refused`, the balancer refused a change of
 * ours, always comes first.
 */
export type WhyCode =
  /**
   * The balancer refused our last change.
   *
   * Read its words in the text. The library tries again if that can help.
   */
  | 'refused'
  /**
   * Requests or connections are in flight, or were when the member was taken out at its deadline.
   *
   * Wait, or let `onTimeout: 'terminate'` cut them at the deadline.
   */
  | 'in-flight'
  /**
   * Requests wait for this member in the balancer.
   *
   * The balancer serves them, or sends them to another member, within its queue timeout.
   */
  | 'queued'
  /**
   * Persistent clients still come back, or can, and the product does not count them.
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
   * It ends with its last connection, or at the limit that the text names, such as `hard-stop-after`.
   */
  | 'old-scope'
  /**
   * A process that can hold work can't be read.
   *
   * Make it reachable. The drain does not report idle until the process is read, or has ended.
   */
  | 'unreadable'
  /**
   * The member is not in the wanted state.
   *
   * Another client set it; see `onOverrule`.
   */
  | 'overruled'
  /**
   * The counts are too old to prove idle yet.
   *
   * Wait: the product refreshes them at its own pace.
   */
  | 'freshness'
  /**
   * Nothing is in flight, but the quiet time has not passed yet.
   *
   * Wait for the time that the text names.
   */
  | 'settling'
  /**
   * A process has not taken the state yet, or the last reload opened what was drained until it was put back.
   *
   * Wait. The text names a process that never takes it. After a reload the `hint` names the settings that keep drains.
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
   * The drain ends when the product reports the member released, or by time. Idle is never verified.
   */
  | 'no-counts'
  /**
   * A roll waits for a lease that another client holds, or whose engine does not answer.
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
  /**
   * The ticket store or `onTicket` does not answer, or the ticket could not be written.
   *
   * Check what keeps the tickets. A first change waits for it up to 30 s and is not sent without it; what is held stays
   * held.
   */
  | 'ticket'
  /**
   * Another drain of this process still holds the member that was undone.
   *
   * It opens with the last of them: restore or release that drain.
   */
  | 'held'

/** One reason why a member is not idle, with a step that can help. */
export interface Why {
  /** The reason, for a program. */
  readonly code: WhyCode
  /** The member that it concerns. */
  readonly ref: MemberRef
  /** The process that it concerns, if it concerns one. */
  readonly scope?: string
  /** How many requests or connections, if there is something to count. */
  readonly count?: number
  /** How long the oldest of them has been in flight, in milliseconds, if the product reports it. */
  readonly oldest?: number
  /** The reason in one sentence. */
  readonly text: string
  /** One step that can help. */
  readonly hint?: string
}

/** The proof that a member is idle: the samples of each scope, and the time since which nothing arrived. */
export interface Proof {
  /**
   * `unknown`: the product does not count arrivals. Idle is then verified only if the product says that the member is
   * released, or if the samples are from after it was sealed.
   */
  readonly arrivals: 'unchanged' | 'unknown'
  /** ISO 8601 time since which nothing arrived in any scope. */
  readonly quietSince: string
  /** The samples that prove idle, oldest first. */
  readonly samples: readonly { readonly at: string; readonly scopes: readonly LoadScope[] }[]
  /** The proof in one readable sentence. */
  readonly text: string
}

/** How the drain of one member went. */
export interface MemberReport {
  readonly ref: MemberRef
  readonly outcome: Outcome
  readonly phase: Phase
  /**
   * The member's own admin state before we touched it. With several drains of one process on the member it is that before the first
   * of them: `ready()` because of it would open it under the others, and `restore()` does not.
   */
  readonly wasAdmin: AdminState
  /** Whether a change of this drain is on the member, or may be: `restore()` takes it back. */
  readonly held: boolean
  /**
   * Whether idle was proved: every process that can hold work was read, the hold was in force in it, and idle has
   * lasted since.
   */
  readonly verifiedIdle: boolean
  /** Whether persistent clients were kept out too: the own state was maint when idle was decided. */
  readonly sealed: boolean
  /** Present if the member was reported idle, even if that is not verified. */
  readonly proof?: Proof
  /**
   * Processes that ended while their last reading held work: it was cut, or finished unseen. With a `note`, the
   * process only counts as ended (the note says why), and nothing tells what became of its work.
   */
  readonly lost: readonly {
    readonly scope: string
    readonly active: number
    readonly at: string
    readonly note?: string
  }[]
  /** How many requests or connections were cut because the caller asked for it. */
  readonly terminated: number
  /**
   * Present if the product did not say how many it cut, or its answer was lost: {@link MemberReport.terminated} is then
   * an upper bound.
   */
  readonly terminatedAtMost?: true
  /** Milliseconds from the start of this drain to its end, or to now. */
  readonly elapsed: number
  /** Why the member is not idle, or why idle is not verified; empty if there is nothing to explain. */
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
  /** Why the drain did not start, if the reason concerns no single member. */
  readonly error?: DrainableError
}

/** How one server of a roll went. */
export interface ServerReport {
  /** Its address; absent if the balancer reports none. */
  readonly address?: string
  /** Every member of the roll that is this server. */
  readonly refs: readonly MemberRef[]
  /**
   * `busy`: its work did not end in time, so it was put back and `act` was not called. `untouched`: its drain did not
   * begin.
   */
  readonly outcome: 'done' | 'failed' | 'busy' | 'untouched'
  /** How often `act` was called for it. */
  readonly attempts: number
  /**
   * How long its parts took in this process, in milliseconds: the last drain, the last call of `act`, and from there
   * until it was open and seen healthy. What did not end here is absent.
   */
  readonly times: { readonly drain?: number; readonly act?: number; readonly healthy?: number }
  /** Why it failed. */
  readonly error?: DrainableError
  /** How its drain went, if this process drained it. */
  readonly drained?: DrainReport
}

/** How a roll went. */
export interface RollReport {
  /**
   * `done`: every server is done. `stopped`: some are not: one failed or was busy, or `stop()` was called. `aborted`:
   * the caller's signal fired, or the handle was closed.
   */
  readonly outcome: 'done' | 'stopped' | 'aborted'
  /** One report per server, in the order of the roll. */
  readonly servers: readonly ServerReport[]
  /** Members of servers that are done and were drained in this process. */
  readonly done: readonly MemberReport[]
  /** Members of servers that failed or were busy, each with its server's error. */
  readonly failed: readonly MemberReport[]
  /** Members of servers whose drain did not begin. */
  readonly untouched: readonly MemberRef[]
  /**
   * Members that this roll left drained: it does not open members of a server that failed. One that a look since its
   * last change has shown open, or that is in no pool any more, is not among them. If a resumed roll could not begin, these are the ones of its ticket.
   */
  readonly leftDrained: readonly MemberRef[]
  /**
   * Members of finished servers that are not the roll's to open: they were out before it drained them, another client
   * has closed them since, or another drain of this process holds them. And members that the roll has put back and
   * could not open, because it is not known who closed them. A `fault` or an `overruled` event tells of all but the
   * first. `ready()` opens them.
   */
  readonly leftAsFound: readonly MemberRef[]
  /** Milliseconds from the start of this roll in this process to its end, or to now. */
  readonly elapsed: number
  /** Why the roll did not start, or stopped, if the reason concerns no single server. */
  readonly error?: DrainableError
}
