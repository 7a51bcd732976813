import type { AdminState, Change, Json, MemberRef } from '../../provider/contract.js'
import type { ErrorCode } from '../../provider/error.js'
import type { Outcome, Proof } from '../../provider/report.js'
import type { ScopeTrack } from '../machine/state.js'

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
  /** When it was written: wall time in epoch milliseconds, the boot, and seconds of uptime since that boot. */
  readonly saved: { readonly wall: number; readonly boot: string; readonly uptime: number }
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

/** One member in a ticket. */
export interface TicketMember {
  readonly ref: MemberRef
  /** Address, port and id, as found before our first change; null if not read yet. */
  readonly identity: string | null
  /** The own state that an undo goes back to; null if not known. */
  readonly wasAdmin: AdminState | null
  /** Whether it would have got new work at that time. */
  readonly served: boolean
  /** The adapter's own data, which it needs for a restore. */
  readonly native: Json
  readonly changes: readonly TicketChange[]
  /** How its drain ended; null if it has not ended. */
  readonly outcome: Outcome | null
  readonly state: FrozenState
}

/** One change of one member in a ticket. */
export interface TicketChange {
  readonly kind: 'hold' | 'restore' | 'terminate' | 'remove'
  /** The state that a hold or a restore leads to. */
  readonly to?: AdminState
  /**
   * `unchanged`: the member had that state before, so an undo leaves it alone. `intended`: the result is not known
   * yet.
   */
  readonly state: 'intended' | 'applied' | 'unchanged'
  /** ISO 8601. */
  readonly at: string
}

/** The plain data of a policy, with durations in milliseconds; null stands for none. */
export interface PolicyData {
  readonly timeout: number | null
  readonly onTimeout: 'fail' | 'terminate' | 'proceed'
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

/**
 * The state machine's state, for another process; times in epoch milliseconds. Only for `resumeDrain()`, not for
 * other programs.
 */
export interface FrozenState {
  /** The version of this format: any other is refused, never guessed. */
  readonly v: 4
  readonly phase: 'active' | 'draining' | 'idle' | 'removed'
  readonly startedAt: number
  readonly hold: FrozenHold
  readonly proof: FrozenProof
  /** The undo of a hold that left too few members serving: what follows it, and why. */
  readonly yielding: { readonly then: 'refuse' | 'wait'; readonly because: string } | null
  readonly vanished: { readonly identity: string | null; readonly since: number } | null
  readonly holding: boolean
  readonly terminated: number
  readonly terminatedAtMost: boolean
  /** The work in flight before a cut without an answer. */
  readonly cutting?: number | undefined
  readonly terminateUntil: number | null
}

/** The wanted state, the confirmed state, and changes sent without an answer. */
interface FrozenHold {
  readonly wish: 'none' | 'drain' | 'maint'
  readonly confirmed: 'none' | 'drain' | 'maint'
  /** A change that was announced, or sent and not answered: it may be carried out. */
  readonly intended: Sent | null
  readonly late: readonly FrozenLoss[]
  readonly confirmedAt: number
  readonly notBefore: number
  readonly losses: number
  readonly refusals: number
  readonly incarnations: readonly (readonly [string, string])[] | null
  readonly overrules: number
  readonly overruled: boolean
  readonly escalated: boolean
  readonly floor: 'unasked' | 'granted' | 'kept'
  readonly yieldAt: number | null
  readonly atMinimum: boolean
  /** The last refusal: a change is not repeated after one that is not retryable. */
  readonly refusal: { readonly change: Sent; readonly error: FrozenError } | null
}

/** A change whose answer was lost. */
interface FrozenLoss {
  readonly change: Sent
  readonly lostAt: number
  readonly until: number | null
  readonly lackedAt: number | null
  readonly before?: AdminState
  readonly shared?: boolean
  readonly refused?: boolean
}

/** What is known about the member's work. */
interface FrozenProof {
  readonly scopes: readonly ScopeTrack[]
  readonly ended: number
  readonly effectiveSince: number | null
  readonly inForce: boolean
  readonly verdict: FrozenVerdict | null
  readonly proof: Proof | null
  readonly sealed: boolean
  readonly unverified: string | null
  readonly sealFailures: number
  readonly lost: readonly { readonly scope: string; readonly active: number; readonly at: string }[]
  readonly isForeign: boolean
}

/** The moment when the idle rule was met. */
interface FrozenVerdict {
  readonly at: number
  readonly proof: Proof
  readonly scopes: readonly {
    readonly scope: string
    readonly incarnation: string
    readonly arrivals: number | null
    readonly countersFrom?: string
  }[]
  readonly sealedAt: number | null
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
}
