import type { AdminState, Change, Json, MemberRef } from '../../provider/contract.js'
import type { ErrorCode } from '../../provider/error.js'
import type { Outcome } from '../../provider/report.js'

/*
 * The types of a ticket, written out so that users of the package do not need the schema library. `schema.ts` checks
 * every field; `test/types` checks that both agree.
 */

/**
 * The data to continue or undo a drain from another process. Plain JSON, no secrets. Written before and after each
 * change.
 */
export interface Ticket extends DrainTicket {
  /** Present for a roll: it contains the drains of the roll, and `members` is empty. */
  readonly roll?: RollData
}

/** The ticket of one drain. */
export interface DrainTicket {
  /** The version of the ticket's format. */
  readonly v: 1
  /** The ticket's id: 1 to 200 letters, digits or `_ . : @ -`. */
  readonly id: string
  /** The balancer's instance: a resume on another one is refused. */
  readonly instance: string
  /** One entry per balancer. */
  readonly parts: readonly TicketPart[]
  /** When the drain began, ISO 8601. */
  readonly startedAt: string
  /** The deadline, ISO 8601; null for none. */
  readonly deadline: string | null
  /** The policy of the drain. */
  readonly policy: PolicyData
  /** The process that continues the drain. */
  readonly owner: TicketOwner
  /**
   * The lease under which it was written, with the fencing number of its holder: a holder with a lower number never
   * overwrites it.
   */
  readonly lease?: { readonly name: string; readonly fence: number }
  /** What is known about each member, and what was changed. */
  readonly members: readonly TicketMember[]
}

/** One balancer of a drain. */
export interface TicketPart {
  /** Its key in a combined provider; null where there is only one balancer. */
  readonly balancer: string | null
  /** The name of the provider, such as `haproxy-runtime`. */
  readonly name: string
  readonly instance: string
  /** Present if the balancer was not read yet: its members are still to be found. */
  readonly target?:
    | MemberRef
    | readonly MemberRef[]
    | { readonly address: string; readonly port?: number }
    | { readonly pool: string }
}

/**
 * One member in a ticket: what was found, what was changed, and how far its drain is. For `resumeDrain()` and `restore()`, not
 * for other programs; only `ref` stays as it is.
 */
export interface TicketMember {
  readonly ref: MemberRef
  /** As found before our first change: where an undo goes; null if not read yet. */
  readonly found: {
    readonly identity: string
    readonly own: AdminState | 'unknown'
    readonly serves: boolean
    /** The adapter's own data, which it needs for a restore. */
    readonly native: Json
  } | null
  /** The state that our newest change led to; null if none of ours is in place. */
  readonly set: AdminState | null
  /** States that we had set in processes that are gone: a state file can bring them back. */
  readonly earlier: readonly AdminState[]
  /** States that a change of ours may have led to, and nobody can tell. */
  readonly doubted: readonly AdminState[]
  /** A change that is about to be sent, or was sent and has no answer. */
  readonly intended: Sent | null
  /** Changes whose answer was lost: they may still be carried out. */
  readonly late: readonly Sent[]
  /** The processes that have our state, each with its incarnation; null if none. */
  readonly told: readonly (readonly [string, string])[] | null
  /** Every process that could hold its work, with the work that it had. */
  readonly processes: readonly {
    readonly name: string
    readonly incarnation: string
    readonly work: number
  }[]
  readonly phase: 'active' | 'draining' | 'idle' | 'removed'
  /** ISO 8601. */
  readonly startedAt: string
  /** The wanted level, and the one that was found in place. */
  readonly wish: 'none' | 'drain' | 'maint'
  readonly confirmed: 'none' | 'drain' | 'maint'
  /** Whether a hold was ever in place, and whether it is kept up. */
  readonly held: boolean
  readonly holding: boolean
  readonly floor: 'unasked' | 'reserved' | 'granted' | 'kept'
  readonly atMinimum: boolean
  readonly overrules: number
  readonly escalated: boolean
  readonly terminated: number
  readonly terminatedAtMost: boolean
  readonly lost: readonly {
    readonly scope: string
    readonly active: number
    readonly at: string
    readonly note?: string
  }[]
  /** How its drain ended; null if it has not ended. */
  readonly outcome: Outcome | null
}

/** The plain data of a policy, with durations in milliseconds; null stands for none. */
export interface PolicyData {
  readonly timeout: number | null
  readonly onTimeout: 'fail' | 'terminate' | 'proceed' | 'remove'
  readonly hold: 'drain' | 'maint'
  readonly escalateAfter: number | null
  readonly settle: number
  readonly until: 'idle' | 'removed'
  readonly seal: boolean | null
  readonly keepReady: number
  readonly onMinimum: 'fail' | 'wait'
  readonly onOverrule: 'reapply' | 'fail'
  readonly onAbort: 'leave' | 'restore'
  readonly onUnreachable: 'wait' | 'fail'
  readonly ifUnsupported: 'fail' | 'proceed'
}

/** The process that wrote a ticket last and continues its drain. */
export interface TicketOwner {
  /** The caller's own name for the client that drains; null for none. */
  readonly name: string | null
  readonly host: string
  /** The process id; null if no process runs between two calls (`stepDrain`). */
  readonly pid: number | null
  /** The boot of the machine. */
  readonly boot: string
  /** When the process began, in the kernel's ticks since boot; null if the machine does not report it. */
  readonly started: string | null
  /** The pid namespace: containers have their own pids; null if the machine does not report it. */
  readonly space: string | null
}

/** A change that may have been sent. */
type Sent = Exclude<Change, { readonly kind: 'add' }>

/** An error without its causes. */
interface FrozenError {
  readonly code: ErrorCode
  readonly message: string
  readonly retryable: boolean
}

/** The data of a roll in its ticket. */
export interface RollData {
  /** The version of this format: any other is refused, never guessed. */
  readonly v: 1
  /** The options of the roll, with durations in milliseconds; null stands for none. */
  readonly plan: RollPlan
  readonly servers: readonly RolledServer[]
}

/** The options of a roll. */
interface RollPlan {
  readonly canary: number
  readonly maxUnavailable: number
  /** The roll stops when more than this many servers have failed; null: never. */
  readonly maxFailed: number | null
  readonly postpone: boolean
  readonly health: {
    readonly by: 'nobody' | 'balancer' | 'caller'
    readonly limit: number | null
  }
}

/** One server of a roll in its ticket. */
export interface RolledServer {
  /** Its address; null if the balancer reports none. */
  readonly address: string | null
  readonly refs: readonly MemberRef[]
  /**
   * `acting`: `act` was called, and it is not known how far it came. `acted`: `act` has ended well, and the server is
   * to be opened. `postponed`: the server was busy for too long, was put back, and is tried once more at the end.
   */
  readonly state: 'waiting' | 'draining' | 'acting' | 'acted' | 'done' | 'failed' | 'postponed'
  /** How often `act` was called. */
  readonly attempt: number
  readonly error: FrozenError | null
  /** The ticket of this server's drain; null if none of our changes is left on it. */
  readonly drain: DrainTicket | null
  /** Its members that are not the roll's to open, once it is done. */
  readonly leftAsFound: readonly MemberRef[]
}
