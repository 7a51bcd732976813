import type {
  AdminState,
  Capabilities,
  Change,
  Json,
  LoadScope,
  MaintEffect,
  MemberRef,
  PresentReading,
  Reading,
} from '../../provider/contract.js'
import type { DrainableError } from '../../provider/error.js'
import type { MemberReport, Outcome, Phase, Proof } from '../../provider/report.js'
import type { Goal } from './wanted.js'

/** How far a member is held; `none`: it is not. */
export type Level = 'none' | 'drain' | 'maint'

/** The incarnation of each process, by name; '' for one that was never read. */
export type Incarnations = ReadonlyMap<string, string>

/**
 * All that this process knows of one member of one balancer: what was seen (facts), what we changed (ledger), and what
 * is wanted (claims). Plain data; times in milliseconds by the balancer's clock.
 */
export interface MemberRecord {
  readonly ref: MemberRef
  /** What each provider object sees, by its number: another door or credential can show other processes. */
  readonly views: ReadonlyMap<number, Facts>
  readonly ledger: Ledger
  /** Oldest first. One that has ended stays until its call lets go. */
  readonly claims: readonly Claim[]
}

/** What one provider object has seen last. No claim ever cleans it. */
export interface Facts {
  readonly last: SeenReading | null
  /** The newest look that failed, if it is newer than `last`. */
  readonly unread: { readonly error: DrainableError; readonly askedAt: number } | null
  /** Absence or another identity that was seen once; a second look decides. */
  readonly vanished: { readonly identity: string | null; readonly since: number } | null
  /** Every process that can hold work for the member and has not ended, as it was listed last. */
  readonly processes: ReadonlyMap<string, LoadScope>
  /** Their incarnations. */
  readonly incarnations: Incarnations
}

/** A reading, and when it was asked for and received. */
export interface SeenReading {
  readonly reading: Reading
  readonly askedAt: number
  readonly at: number
}

/** What we changed, what may still come of it, and whose the state found is. */
export interface Ledger {
  /** As found before our first effective change: where an undo goes. Null: not read yet. */
  readonly found: FoundMember | null
  /** The state that our newest change led to, as far as it is in place. Null: none of ours is. */
  readonly set: AdminState | null
  /** States that we had set in processes that are gone: a state file can bring them back. */
  readonly earlier: readonly AdminState[]
  /** The processes that have our state, as far as any look has shown: another one can have forgotten it. Null: none has. */
  readonly told: Incarnations | null
  /** States that a change of ours may have led to, and nobody can tell: an undo leaves them alone, and says so. */
  readonly doubted: readonly AdminState[]
  /** The change under way: nothing else is sent before its call has ended. */
  readonly pending: Pending | null
  /** Changes whose answer was lost: they may still be carried out. */
  readonly late: readonly LateChange[]
  /** When the newest change was answered, or its answer lost: a look that was asked for until then never counts. */
  readonly answeredAt: number
  /** Nothing is sent before. */
  readonly notBefore: number
  /** Lost answers since the last answer, and the newest of them. */
  readonly losses: number
  readonly loss: DrainableError | null
  /** Refusals since the last change that was taken, and the newest of them. */
  readonly refusals: number
  readonly refusal: Refusal | null
}

/** The member as found before our first change. */
export interface FoundMember {
  readonly identity: string
  readonly own: AdminState | 'unknown'
  readonly serves: boolean
  readonly native: Json | null
}

/** A change that was sent, or that waits for the ticket of its call. */
export interface Pending {
  readonly change: Change
  /** The claim that asked for it. */
  readonly by: number
  readonly stage: 'ticket' | 'sent'
  /** The own state by the newest look without its effect. */
  readonly before: AdminState | 'unknown'
  /** Its effect by the looks since it was sent; `gone`: one had shown it, and a reload or another client took it away. */
  readonly effect: 'unseen' | 'shown' | 'gone'
  /** The work in flight that it cuts, by that look. Null: it cuts nothing. */
  readonly cuts: number | null
}

/** A change whose answer was lost. */
export interface LateChange {
  readonly change: Change
  readonly lostAt: number
  /** When it can't be carried out any more: counted from the first look that was answered since. Null: none was. */
  readonly until: number | null
  /** When the newest look without its effect was asked for, and what that showed: an effect after it is ours. */
  readonly lacked: { readonly at: number; readonly own: AdminState } | null
}

/** A refused change. */
export interface Refusal {
  readonly change: Change
  readonly error: DrainableError
  /** The state before it: the next look tells whether a part was carried out. Null: it has told. */
  readonly before: AdminState | 'unknown' | null
}

/** What one call wants of a member, how far that is, and how it ended. */
export interface Claim {
  readonly id: number
  /** The view that it looks and sends through. */
  readonly view: number
  /** The id of the ticket that its call writes. Null: it writes none. */
  readonly ticket: string | null
  readonly goal: Goal
  readonly policy: MachinePolicy
  readonly startedAt: number
  /** Null: none. */
  readonly deadline: number | null
  readonly phase: Phase
  /** The level that it wants now. */
  readonly wish: Level
  /** The level that was found in place for it: if the member is lower, that was forgotten, or somebody set it. */
  readonly confirmed: Level
  /** Whether a hold was ever in place for it. */
  readonly held: boolean
  /** Its place in the floor of serving members: none yet, promised before the first hold, taken, found to leave enough. */
  readonly floor: 'unasked' | 'reserved' | 'granted' | 'kept'
  /** When a hold that left too few is undone, unless that changes before. Null: it left enough. */
  readonly yieldAt: number | null
  /** Whether the floor has no place for it. */
  readonly atMinimum: boolean
  /** How often somebody's state was found; `overruled`: whether the newest was handled already. */
  readonly overrules: number
  readonly overruled: boolean
  /** Whether `escalateAfter` was carried out. */
  readonly escalated: boolean
  readonly proof: ProofState
  readonly ending: EndingState
  /** Who still holds the member after this claim was undone. Null: nobody. */
  readonly heldBy: string | null
  /** The load event last sent, to send one only on a change or after a second. */
  readonly said: { readonly key: string; readonly at: number } | null
}

/** What a claim has seen of the member's work since its hold took effect, and what follows from it. */
export interface ProofState {
  /** Every process that can hold work and has not ended, by name. */
  readonly scopes: ReadonlyMap<string, ScopeTrack>
  /** How many have ended. */
  readonly ended: number
  /** The time from which samples count. Null: the hold is not in effect. */
  readonly effectiveSince: number | null
  /** Whether every process was found to have it since. */
  readonly inForce: boolean
  /** The moment when the rule was met, kept during the seal and while idle lasts. */
  readonly verdict: Verdict | null
  readonly proof: Proof | null
  readonly sealed: boolean
  /** Why the proof is not verified, as known at the verdict. */
  readonly unverified: string | null
  /** How many seals were refused. */
  readonly sealFailures: number
  /** Processes that ended, or lost their counters, while their last reading showed work. */
  readonly lost: MemberReport['lost']
}

/** Two readings of one process that both say zero, with nothing arrived between them. */
export interface ZeroRun {
  readonly first: LoadScope
  readonly last: LoadScope
}

/** What is known about one process that can hold work for the member. */
export interface ScopeTrack {
  /** Its newest reading, in any state. */
  readonly last: LoadScope
  /** Its newest reading with the state `read`. Null: never read. */
  readonly read: LoadScope | null
  /** Since when its arrivals have the present value: the receipt of the first reading with it. */
  readonly quietFrom: number
  /** The product's own clock then, if it has one. */
  readonly livedFrom: number | null
  /** The same clock at the reading before the newest one, if nothing arrived in between. */
  readonly livedBefore?: number | undefined
  /** How much longer the quiet time is because of slow answers, in milliseconds. */
  readonly stalled: number
  /** The zero readings since the hold took effect there. */
  readonly zeros: ZeroRun | null
  /** Arrivals at the first reading after the hold took effect: later ones are from persistent clients. */
  readonly arrivalsAtEffect: number | null
  /** Since when `active` has the present value. */
  readonly steadySince: number
}

/** The moment when the rule was met. */
export interface Verdict {
  readonly at: number
  readonly proof: Proof
  /** Marks of each process at the verdict. */
  readonly scopes: ReadonlyMap<string, ScopeMark>
  /** When the seal was confirmed; null: not yet. */
  readonly sealedAt: number | null
}

/** The values that show whether anything came to a process since. */
export interface ScopeMark {
  readonly incarnation: string
  readonly arrivals: number | null
  /** {@link LoadScope.countersFrom} */
  readonly countersFrom?: string
}

/** The end of a claim. */
export interface EndingState {
  readonly ended: Ending | null
  /** Whether the whole call has its outcome: until then, a member that loses idle goes on. */
  readonly settled: boolean
  /** Whether its hold is still kept up. */
  readonly holding: boolean
  /** Marks of the processes when the call settled, to see afterwards whether work came. */
  readonly marks: ReadonlyMap<string, ScopeMark> | null
  /** Whether a cut was carried out for it; how many it has cut, at most where the product does not say. */
  readonly hasCut: boolean
  readonly terminated: number
  readonly terminatedAtMost: boolean
  /** How much it had in flight in the look on which its removal was decided: the next one may not show it any more. */
  readonly left: number
  /** Until when a cut at the deadline must show in the counts. Null: nothing was cut. */
  readonly terminateUntil: number | null
}

/** How a claim ended. */
export interface Ending {
  readonly outcome: Outcome
  readonly at: number
  readonly error: DrainableError | null
}

/** Nothing seen yet. */
export const NO_FACTS: Facts = {
  last: null,
  unread: null,
  vanished: null,
  processes: new Map(),
  incarnations: new Map(),
}

/** No evidence yet. */
export const NO_PROOF: ProofState = {
  scopes: new Map(),
  ended: 0,
  effectiveSince: null,
  inForce: false,
  verdict: null,
  proof: null,
  sealed: false,
  unverified: null,
  sealFailures: 0,
  lost: [],
}

/** Not ended. */
export const NO_ENDING: EndingState = {
  ended: null,
  settled: false,
  holding: true,
  marks: null,
  hasCut: false,
  terminated: 0,
  terminatedAtMost: false,
  left: 0,
  terminateUntil: null,
}

/** A ledger without any change of ours. */
export function emptyLedger(at: number): Ledger {
  return {
    found: null,
    set: null,
    earlier: [],
    told: null,
    doubted: [],
    pending: null,
    late: [],
    answeredAt: at - 1,
    notBefore: at,
    losses: 0,
    loss: null,
    refusals: 0,
    refusal: null,
  }
}

/** A member of which nothing is known yet. */
export function newRecord(ref: MemberRef, at: number): MemberRecord {
  return { ref, views: new Map(), ledger: emptyLedger(at), claims: [] }
}

/** What a claim is made of; the rest is as for a claim that nothing was done for yet. */
export type ClaimStart = Pick<Claim, 'goal' | 'policy' | 'startedAt' | 'deadline'> & Partial<Claim>

export function newClaim(start: ClaimStart & Pick<Claim, 'id' | 'view'>): Claim {
  return {
    ticket: null,
    phase: 'active',
    wish: 'none',
    confirmed: 'none',
    held: false,
    floor: 'unasked',
    yieldAt: null,
    atMinimum: false,
    overrules: 0,
    overruled: false,
    escalated: false,
    proof: NO_PROOF,
    ending: NO_ENDING,
    heldBy: null,
    said: null,
    ...start,
  }
}

/** Whether a claim still wants something of its member: it has not ended, or it keeps its hold up. */
export function isLive({ ending }: Pick<Claim, 'ending'>): boolean {
  return ending.ended === null || ending.holding
}

/** Whether anything of ours is on a member, or may still come. */
export function owes({ set, earlier, doubted, pending, late }: Ledger): boolean {
  if (pending !== null || late.length > 0) return true
  return set !== null || earlier.length > 0 || doubted.length > 0
}

/** The policy of a claim. Durations in milliseconds. */
export interface MachinePolicy {
  readonly hold: 'drain' | 'maint'
  /** Whether to raise an idle member to maint: never, if maint is gentle, or always if the product has maint. */
  readonly seal: 'never' | 'gentle' | 'always'
  readonly settle: number
  /** `together`: taken out with the other members of its call, because each removal costs a reload. */
  readonly until: 'idle' | 'together' | 'removed'
  readonly onTimeout: 'fail' | 'terminate' | 'proceed' | 'remove'
  readonly onOverrule: 'reapply' | 'fail'
  /** What to do if the floor refuses: end, or wait. */
  readonly onMinimum: 'fail' | 'wait'
  /** How long after the start to raise to maint; null: never. */
  readonly escalateAfter: number | null
  readonly capabilities: Capabilities
}

/** What raising this member to maint does to its work. */
export function maintEffect(policy: MachinePolicy, reading: PresentReading): MaintEffect {
  if (!policy.capabilities.ladder.includes('maint')) return 'none'
  return reading.maint ?? policy.capabilities.maint
}
