import type {
  AdminState,
  Change,
  Json,
  LoadScope,
  MemberRef,
  Reading,
} from '../../provider/contract.js'
import type { DrainableError } from '../../provider/error.js'
import type { MemberReport, Outcome, Phase, Proof } from '../../provider/report.js'
import type { Goal } from './goal.js'
import type { Sight } from './input.js'
import { isSameIdentity } from '../../provider/member-ref.js'

/**
 * Everything the machine knows about one member, in named parts. Plain data; all times in milliseconds by the run's
 * clock. `invariants.ts` lists the invariants of every state.
 */
export interface DrainState {
  readonly ref: MemberRef
  /** The goal of the run. */
  readonly goal: Goal
  readonly phase: Phase
  readonly startedAt: number
  /** Null: none. */
  readonly deadline: number | null
  /** As found before our first change; null: not read yet. */
  readonly found: FoundMember | null
  readonly last: LastReading | null
  /** The newest look that failed, if it is newer than the newest reading. */
  readonly unread: { readonly error: DrainableError; readonly askedAt: number } | null
  /** Absence or another identity that was seen once; a second look decides. */
  readonly vanished: { readonly identity: string | null; readonly since: number } | null
  /** What another run of this process has seen since this one has looked: lower than we had set it. Not kept in tickets. */
  readonly sighted: Sight | null
  readonly hold: Hold
  readonly proof: ProofState
  readonly ending: EndingState
  /** The load event last sent, to send one only on a change or after a second. */
  readonly said: { readonly key: string; readonly at: number } | null
}

/** The newest reading, with the times when it was asked for and received. */
export interface LastReading {
  readonly reading: Reading
  readonly askedAt: number
  readonly at: number
  /** Whether another run of this process may have opened the member since, or may still open it. */
  readonly mayOpen: boolean
}

/** The member as found before our first effective change: what an undo goes back to, and its identity. */
export interface FoundMember {
  readonly identity: string
  readonly own: AdminState | 'unknown'
  readonly serves: boolean
  readonly native: Json | null
}

/** The wanted own state, and the results of our changes. */
export interface Hold {
  /** The wanted state: the own state must be at least this. `none`: no hold is wanted. */
  readonly wish: 'none' | 'drain' | 'maint'
  /** The highest confirmed hold: if the state is lower, it was forgotten, or another client set it. */
  readonly confirmed: 'none' | 'drain' | 'maint'
  /** Our ended changes, oldest first, until they are undone: they show whether a state found is ours. */
  readonly changes: readonly OwnChange[]
  /** The pending change: nothing else is sent before its answer. */
  readonly pending: SentChange | null
  /** Changes whose answer was lost: they may still be carried out. */
  readonly late: readonly LateChange[]
  /** * When the newest change was answered, or its answer lost: looks asked for before or at that time never count. */
  readonly confirmedAt: number
  /** Nothing is sent before this time. */
  readonly notBefore: number
  /** Lost answers and refusals since the last confirmation: the pause before the next try grows with them. */
  readonly losses: number
  readonly refusals: number
  /** Why the newest answer was lost; null if an answer came since. */
  readonly loss: DrainableError | null
  /** * The last refusal of our changes, reported first. After one that is not retryable, the change is not repeated. */
  readonly refusal: { readonly change: Change; readonly error: DrainableError } | null
  /** Incarnations at the last reading with the wanted own state: they tell "forgotten" from "overruled". */
  readonly incarnations: ReadonlyMap<string, string> | null
  /** How often another client's state was found; `overruled`: whether the newest was handled already. */
  readonly overrules: number
  readonly overruled: boolean
  /** Whether `escalateAfter` was carried out. */
  readonly escalated: boolean
  /** The floor of serving members: asked before the first hold, and checked once more after it. */
  readonly floor: 'unasked' | 'granted' | 'kept'
  /** When to undo a hold that left too few serving, unless that changes before. Null: it left enough. */
  readonly yieldAt: number | null
  /** Whether the floor refused. */
  readonly atMinimum: boolean
}

/** One of our changes that has ended. */
export interface OwnChange {
  readonly kind: 'hold' | 'restore' | 'terminate' | 'remove'
  readonly to: AdminState | null
  /** * `unchanged`: the state was there before. `intended`: it is not known whether the change was carried out. */
  readonly state: 'intended' | 'applied' | 'unchanged'
  readonly at: number
}

/** Changes of another run of this process, for the run that takes over their undo. */
export interface Owned {
  readonly found: FoundMember
  readonly changes: readonly OwnChange[]
  /** Incarnations when the changes were last seen in place, or undone. */
  readonly incarnations?: ReadonlyMap<string, string> | null
}

/** A change that was sent, or is about to be. */
export interface SentChange extends Pick<LateChange, 'shared' | 'sight'> {
  readonly change: Change
  /** The own state it was decided on. */
  readonly before: AdminState | 'unknown'
  /** The work in flight that it cuts, by the last look without its effect. Absent: it cuts nothing. */
  readonly cuts?: number
}

/** A change whose answer was lost. */
export interface LateChange {
  readonly change: Change
  readonly lostAt: number
  /**
   * When it can't be carried out any more, by the first answer to a look after the loss. Null: no such answer yet.
   */
  readonly until: number | null
  /** * When the last look without its effect was asked for: an effect that shows up later is ours. Null: never. */
  readonly lackedAt: number | null
  /** The state of the member then. */
  readonly before?: AdminState
  /**
   * Whether another pending hold of this process leads to the same state, or a repeat of an inherited restore may
   * have led there: an effect that shows up is ours, but this change can still be to come.
   */
  readonly shared?: boolean
  /**
   * What looks have shown of its effect since it was sent. `shown`: the effect is there. `gone`: the effect came and
   * went, so the change was carried out, and a later effect is another client's. Not in tickets.
   */
  readonly sight?: 'shown' | 'gone'
  /** * Whether the balancer refused it; a part may have been carried out, which only exactly its own effect shows. */
  readonly refused?: boolean
  /**
   * Whether its call was given up here but goes on, because others wait for it too: until the call has ended, it is
   * not known when the change can no longer take effect.
   */
  readonly underWay?: boolean
}

/** What is known about the member's work. */
export interface ProofState {
  /** Every process that can hold work for it and has not ended, by name. */
  readonly scopes: ReadonlyMap<string, ScopeTrack>
  /** How many processes have ended. */
  readonly ended: number
  /** The time from which snapshots count: when the last change took effect. Null: it is not in effect. */
  readonly effectiveSince: number | null
  /** Whether the hold was found in force in every process since. */
  readonly inForce: boolean
  /** The moment when the rule was met, kept during the seal and while idle lasts. */
  readonly verdict: Verdict | null
  readonly proof: Proof | null
  readonly sealed: boolean
  /** Why the proof is not verified, as known at the verdict. */
  readonly unverified: string | null
  /**
   * How many seals were refused: after three, or after one that is not retryable, idle is reported without a seal. A
   * seal whose answer was lost is sent again, like any hold.
   */
  readonly sealFailures: number
  /** Processes that ended, or lost their counters, while their last reading showed work. */
  readonly lost: MemberReport['lost']
  /** Whether a part of the quiet time was measured across the clocks of two machines: no verdict can rest on it. */
  readonly isForeign: boolean
}

/** Two readings of one scope that both say zero, with nothing arrived between them. */
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
  /** The same clock at the reading before the newest one, if nothing arrived in between. Not in tickets. */
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
  /** Marks of each scope at the verdict. */
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

/** The end of a member's run. */
export interface EndingState {
  readonly ended: Ending | null
  /** Whether the whole run has its outcome: until then, a member that loses idle continues. */
  readonly settled: boolean
  /** Whether the hold is still kept up. */
  readonly holding: boolean
  /** Marks of the scopes when the run settled, to see afterwards whether work came. */
  readonly marks: ReadonlyMap<string, ScopeMark> | null
  /** Whether it was reported that the held idle is lost for good. */
  readonly lossSaid: boolean
  readonly terminated: number
  readonly terminatedAtMost: boolean
  /** The work in flight before a cut whose answer was lost. */
  readonly cutting: number
  /** Until when a cut at the deadline must show in the counts. Null: nothing was cut. */
  readonly terminateUntil: number | null
}

/** How a member's run ended. */
export interface Ending {
  readonly outcome: Outcome
  readonly at: number
  readonly error: DrainableError | null
}

/** A hold without any change of ours. */
export function emptyHold(at: number): Hold {
  return {
    wish: 'none',
    confirmed: 'none',
    changes: [],
    pending: null,
    late: [],
    confirmedAt: at - 1,
    notBefore: at,
    losses: 0,
    refusals: 0,
    loss: null,
    refusal: null,
    incarnations: null,
    overrules: 0,
    overruled: false,
    escalated: false,
    floor: 'unasked',
    yieldAt: null,
    atMinimum: false,
  }
}

/** Nothing read yet. */
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
  isForeign: false,
  lost: [],
}

/** Not ended. */
export const NO_ENDING: EndingState = {
  ended: null,
  settled: false,
  holding: true,
  marks: null,
  lossSaid: false,
  terminated: 0,
  terminatedAtMost: false,
  cutting: 0,
  terminateUntil: null,
}

/**
 * The state of a member before its first look.
 *
 * @param at - now, by the run's clock
 * @param deadline - by the run's clock; null for none
 */
export function initialState(
  ref: MemberRef,
  at: number,
  deadline: number | null,
  goal: Goal = { kind: 'drain' },
): DrainState {
  return {
    ref,
    goal,
    phase: 'active',
    startedAt: at,
    deadline,
    found: null,
    last: null,
    unread: null,
    vanished: null,
    sighted: null,
    hold: emptyHold(at),
    proof: NO_PROOF,
    ending: NO_ENDING,
    said: null,
  }
}

/** * The state that a process must have taken to be in force: the wanted one; for a watch, `drain`. */
export function neededState({ goal, hold }: DrainState): DrainState['hold']['wish'] {
  return goal.kind === 'watch' ? 'drain' : hold.wish
}

/** The own state last read; `unknown` if there is none. */
export function ownOf(state: DrainState): AdminState | 'unknown' {
  const reading = state.last?.reading
  return reading?.present === true ? reading.own : 'unknown'
}

/** Names what may have set a state that is not ours: the setter that the product names, or another client. */
export function setterOf(state: DrainState): string {
  const reading = state.last?.reading
  const named = reading?.present === true ? reading.setBy : undefined
  return named === undefined ? 'another client' : `${named}, or another client`
}

/** The newest reading of each scope that can be read. */
export function readScopes(state: DrainState): readonly LoadScope[] {
  const read: LoadScope[] = []
  for (const { last } of state.proof.scopes.values()) if (last.state === 'read') read.push(last)
  return read
}

/** In flight and queued over every scope, as last read. */
export function loadOf(state: DrainState): number {
  let load = 0
  for (const { last } of state.proof.scopes.values())
    if (last.state === 'read') load += last.active + last.queued
  return load
}

/** The last known incarnation of every scope; none for a scope that was never read. */
export function incarnationsOf(state: DrainState): ReadonlyMap<string, string> {
  const found = new Map<string, string>()
  for (const [name, { read }] of state.proof.scopes) found.set(name, read?.incarnation ?? '')
  return found
}

/** Whether the run has ended and let go of its member: it puts nothing back and no longer watches it. */
export function isLetGo({ ending }: Pick<DrainState, 'ending'>): boolean {
  return ending.ended !== null && !ending.holding
}

/** Whether the newest reading shows the member itself: an absent or replaced member has no state. */
export function readsMember({ last, found }: DrainState): boolean {
  return last?.reading.present === true && isSameIdentity(last.reading.identity, found?.identity)
}

/**
 * Whether any process is not among the known ones: it can have forgotten the state they had taken. An unread process
 * counts with its last known incarnation; one that was never read counts as new unless it is known.
 */
export function anotherIncarnation(
  { proof }: DrainState,
  known: ReadonlyMap<string, string> | null,
): boolean {
  if (known === null) return false
  return [...proof.scopes].some(([name, { read }]) =>
    read === null ? !known.has(name) : known.get(name) !== read.incarnation,
  )
}
