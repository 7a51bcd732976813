import type { AdminState, Change, Json, MemberRef } from '../../provider/contract.js'
import type { ErrorCode } from '../../provider/error.js'
import type { Outcome, Proof } from '../../provider/report.js'
import type { ScopeTrack } from '../machine/state.js'

/*
 * What a ticket is, in plain types: users of the package need no library that checks them. `schema.ts` checks
 * every field; `test/types` holds the two to be the same.
 */

/**
 * What is needed to go on with a drain, or to undo it, from another process. Plain JSON, no secrets.
 * Written before and after each change.
 */
export interface Ticket extends DrainTicket {
  /** Of a roll: its drains are in here, and `members` is empty. */
  readonly roll?: RollData
}

/** The ticket of one drain. */
export interface DrainTicket {
  /** The form of the ticket. */
  readonly v: 1
  /** 1 to 200 letters, digits or `_ . : @ -`. */
  readonly id: string
  /** Which balancer: a resume on another one is refused. */
  readonly instance: string
  /** One entry a balancer. */
  readonly parts: readonly TicketPart[]
  /** When the drain began, ISO 8601. */
  readonly startedAt: string
  /** When it is to end, ISO 8601; null for never. */
  readonly deadline: string | null
  /** What was asked for. */
  readonly policy: PolicyData
  /** When it was written: wall time in epoch milliseconds, and seconds of uptime of which boot. */
  readonly saved: { readonly wall: number; readonly boot: string; readonly uptime: number }
  /** Who goes on with the drain. */
  readonly owner: TicketOwner
  /** The lease under which it was written, with the fencing number of its holder: a lower one never writes over a higher. */
  readonly lease?: { readonly name: string; readonly fence: number }
  /** What is known of each member, and what was changed. */
  readonly members: readonly TicketMember[]
}

/** One balancer of a drain. */
export interface TicketPart {
  /** Its key in a combined provider; null where there is only one balancer. */
  readonly balancer: string | null
  /** Name of the provider, such as `haproxy-runtime`. */
  readonly name: string
  readonly instance: string
  /** There where the balancer was not read yet: its members are still to be found. */
  readonly target?:
    | MemberRef
    | readonly MemberRef[]
    | { readonly address: string; readonly port?: number }
    | { readonly pool: string }
}

/** One member, as the ticket knows it. */
export interface TicketMember {
  readonly ref: MemberRef
  /** Address, port and id, as found before our first change; null: not read yet. */
  readonly identity: string | null
  /** The own state an undo goes back to; null: not known. */
  readonly wasAdmin: AdminState | null
  /** Whether it would have got new work then. */
  readonly served: boolean
  /** What the adapter needs to restore; its own words. */
  readonly native: Json
  readonly changes: readonly TicketChange[]
  /** How its drain ended; null: it has not. */
  readonly outcome: Outcome | null
  readonly state: FrozenState
}

/** One change of one member, as the ticket knows it. */
export interface TicketChange {
  readonly kind: 'hold' | 'restore' | 'terminate' | 'remove'
  /** The state it leads to; of a hold or a restore. */
  readonly to?: AdminState
  /** `unchanged`: it was so before us, so an undo leaves it alone. `intended`: not known yet. */
  readonly state: 'intended' | 'applied' | 'unchanged'
  /** ISO 8601. */
  readonly at: string
}

/** The plain data of a policy, durations in milliseconds; null stands for none. */
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
  readonly ifUnsupported: 'fail' | 'proceed'
}

/** Who goes on with a drain: the process that wrote its ticket last. */
export interface TicketOwner {
  /** The caller's own word for who drains; null for none. */
  readonly name: string | null
  readonly host: string
  /** Null where no process goes on with the drain between two calls (`stepDrain`). */
  readonly pid: number | null
  /** Which boot of the machine. */
  readonly boot: string
  /** When the process began, in the kernel's ticks since boot; null where the machine does not tell. */
  readonly started: string | null
  /** Where the pid counts: containers have numbers of their own; null where the machine does not tell. */
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

/** The machine's state between two processes; moments in epoch milliseconds. For `resumeDrain()`, not for programs to read. */
export interface FrozenState {
  /** The form of this state: another one is refused, never guessed at. */
  readonly v: 4
  readonly phase: 'active' | 'draining' | 'idle' | 'removed'
  readonly startedAt: number
  readonly hold: FrozenHold
  readonly proof: FrozenProof
  /** The undo of a hold that left too few serving: what follows it, and why. */
  readonly yielding: { readonly then: 'refuse' | 'wait'; readonly because: string } | null
  readonly vanished: { readonly identity: string | null; readonly since: number } | null
  readonly holding: boolean
  readonly terminated: number
  readonly terminatedAtMost: boolean
  readonly terminateUntil: number | null
}

/** What is wished, what was confirmed, and what was sent without an answer. */
interface FrozenHold {
  readonly wish: 'none' | 'drain' | 'maint'
  readonly confirmed: 'none' | 'drain' | 'maint'
  /** Announced, or sent and not answered: it may be carried out. */
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
  /** What was refused last: one that is not retryable is not asked for again. */
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

/** What is known of the member's work. */
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

/** The moment the rule was satisfied. */
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

/** What the ticket of a roll says of it. */
export interface RollData {
  /** The form of the roll: another one is refused, never guessed at. */
  readonly v: 1
  /** What was asked for, durations in milliseconds; null stands for none. */
  readonly plan: RollPlan
  readonly servers: readonly RolledServer[]
}

/** What a roll was asked for. */
interface RollPlan {
  readonly canary: number
  readonly maxUnavailable: number
  /** The roll stops when more than that many servers have failed; null: never. */
  readonly maxFailed: number | null
  readonly postpone: boolean
  readonly health: {
    readonly by: 'nobody' | 'balancer' | 'caller'
    readonly limit: number | null
  }
}

/** One server of a roll, as its ticket knows it. */
export interface RolledServer {
  /** Null where the balancer tells none. */
  readonly address: string | null
  readonly refs: readonly MemberRef[]
  /**
   * `acting`: the caller's function was called, and how far it came is not known. `acted`: it has
   * ended well, and the server is to be opened. `postponed`: it was busy for too long, was put back, and
   * is tried once more at the end.
   */
  readonly state: 'waiting' | 'draining' | 'acting' | 'acted' | 'done' | 'failed' | 'postponed'
  /** How often the caller's function was called. */
  readonly attempt: number
  readonly error: FrozenError | null
  /** What the drain of this server says; null where nothing of ours is left on it. */
  readonly drain: DrainTicket | null
}
