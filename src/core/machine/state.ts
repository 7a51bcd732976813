import type {
  AdminState,
  Change,
  Json,
  LoadScope,
  MemberRef,
  Reading,
} from '../../provider/contract.js'
import type { DrainableError } from '../../provider/error.js'
import type { Outcome, Phase, Proof } from '../../provider/report.js'
import type { Goal } from './goal.js'
import type { Sight } from './input.js'

/**
 * Everything the machine knows of one member, in named parts. Plain data; all times in milliseconds
 * by the run's clock. `invariants.ts` beside this file says what holds in every state.
 */
export interface DrainState {
  readonly ref: MemberRef
  /** What is asked for. */
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
  /** Absence or another identity that was seen once: a second look decides. */
  readonly vanished: { readonly identity: string | null; readonly since: number } | null
  /** What another run of this process has seen since this one has looked: lower than we had set it. Not kept in tickets. */
  readonly sighted: Sight | null
  readonly hold: Hold
  readonly proof: ProofState
  readonly ending: EndingState
  /** The load event last sent, to send one only on a change or after a second. */
  readonly said: { readonly key: string; readonly at: number } | null
}

/** The newest reading, with when it was asked for and when it came. */
export interface LastReading {
  readonly reading: Reading
  readonly askedAt: number
  readonly at: number
  /** Another run of this process may have opened the member since, or yet open it. */
  readonly mayOpen: boolean
}

/** The member as found before our first change that changed something: what an undo goes back to, and how it is told from another of its name. */
export interface FoundMember {
  readonly identity: string
  readonly own: AdminState | 'unknown'
  readonly serves: boolean
  readonly native: Json | null
}

/** What we wish the member's own state to be, and what became of our changes of it. */
export interface Hold {
  /** What the own state should at least be. `none`: nothing is wished. */
  readonly wish: 'none' | 'drain' | 'maint'
  /** The highest hold that was confirmed: a lower state than that was forgotten, or set by another client. */
  readonly confirmed: 'none' | 'drain' | 'maint'
  /** Changes that ended, oldest first, until they are undone: whose the state found is. */
  readonly changes: readonly OwnChange[]
  /** The change under way: nothing else is sent before its answer. */
  readonly pending: SentChange | null
  /** Changes whose answer was lost: they may still be carried out. */
  readonly late: readonly LateChange[]
  /** When the newest change got its answer, or lost it: looks asked for before that, or in the same instant, never count. */
  readonly confirmedAt: number
  /** Nothing is sent before. */
  readonly notBefore: number
  /** Answers lost, and refusals, since something was last confirmed: what the pause before the next try grows with. */
  readonly losses: number
  readonly refusals: number
  /** Why the newest answer was lost; null where one came since. */
  readonly loss: DrainableError | null
  /** The last refusal of a change of ours: the first thing to say. One that is not retryable is not tried again. */
  readonly refusal: { readonly change: Change; readonly error: DrainableError } | null
  /** Incarnations at the last reading whose own state was as wished: tells "forgotten" from "overruled". */
  readonly incarnations: ReadonlyMap<string, string> | null
  /** How often the state of another client was found, and whether the newest was answered already. */
  readonly overrules: number
  readonly overruled: boolean
  /** Whether `escalateAfter` was acted on. */
  readonly escalated: boolean
  /** The floor of serving members: asked before the first hold, looked at once more after it. */
  readonly floor: 'unasked' | 'granted' | 'kept'
  /** When a hold that left too few serving is undone, unless that has changed until then. Null: it left enough. */
  readonly yieldAt: number | null
  /** The floor said no. */
  readonly atMinimum: boolean
}

/** A change of ours that has ended. */
export interface OwnChange {
  readonly kind: 'hold' | 'restore' | 'terminate' | 'remove'
  readonly to: AdminState | null
  /** `unchanged`: it was so before us. `intended`: it was sent, or was to be; it is not known whether it was carried out. */
  readonly state: 'intended' | 'applied' | 'unchanged'
  readonly at: number
}

/** What another run of this process had changed, and whoever takes it over is to undo. */
export interface Owned {
  readonly found: FoundMember
  readonly changes: readonly OwnChange[]
  /** Incarnations when that was last seen in place, or taken back. */
  readonly incarnations?: ReadonlyMap<string, string> | null
}

/** A change that was sent, or is about to be. */
export interface SentChange {
  readonly change: Change
  /** The own state it was decided on. */
  readonly before: AdminState | 'unknown'
  /** See {@link LateChange.shared}. */
  readonly shared?: boolean
  /** See {@link LateChange.sight}. */
  readonly sight?: 'shown' | 'gone'
}

/** A change whose answer was lost. */
export interface LateChange {
  readonly change: Change
  readonly lostAt: number
  /** From when on it can't be carried out any more: counted from the first answer to a look asked for after the loss. Null: no such answer yet. */
  readonly until: number | null
  /**
   * When the member was last seen without its effect, by a look asked for then: an effect that shows up
   * afterwards is ours. Null: never.
   */
  readonly lackedAt: number | null
  /** The state it was in then. */
  readonly before?: AdminState
  /**
   * Whether another hold of this process, under way at the same time, leads to the same state, or a repeat of
   * an inherited restore may have: an effect that shows up is ours, but this one may be the one that is still to come.
   */
  readonly shared?: boolean
  /**
   * What looks have shown of its effect since it was sent. `shown`: it came. `gone`: it came, and is not there any
   * more, so it was carried out: an effect that shows up afterwards is another client's. Not kept in tickets.
   */
  readonly sight?: 'shown' | 'gone'
  /** The balancer said no to it; it may have been carried out in part, and only its very own effect shows that. */
  readonly refused?: boolean
  /**
   * Its call was given up here and goes on, because others wait for it too: until that has ended, nothing
   * says when the change can't come any more.
   */
  readonly underWay?: boolean
}

/** What is known of the member's work. */
export interface ProofState {
  /** Every process that can hold work for it and has not ended, by name. */
  readonly scopes: ReadonlyMap<string, ScopeTrack>
  /** How many processes have ended since. */
  readonly ended: number
  /** From when on snapshots count: the last change took effect. Null: it is not in effect. */
  readonly effectiveSince: number | null
  /** Whether every process was found in force since. */
  readonly inForce: boolean
  /** The moment the rule was satisfied, kept while the door is being closed and while idle lasts. */
  readonly verdict: Verdict | null
  readonly proof: Proof | null
  readonly sealed: boolean
  /** Why the proof is not to be called verified, as known at the verdict. */
  readonly unverified: string | null
  /** Seals that were refused: after three, or one for good, we say idle without. One whose answer was lost is sent again, like any hold. */
  readonly sealFailures: number
  /** Processes that ended, or lost their memory, while their last reading held work. */
  readonly lost: readonly { readonly scope: string; readonly active: number; readonly at: string }[]
  /** Whether a part of the quiet time was counted between the clocks of two machines: no verdict stands on it. */
  readonly isForeign: boolean
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
  /** The product's own clock then, where it tells one. */
  readonly livedFrom: number | null
  /** By how much the quiet time is longer, because answers were slow meanwhile, in milliseconds. */
  readonly stalled: number
  /** Zeros since the hold took effect there. */
  readonly zeros: ZeroRun | null
  /** Arrivals at the first reading after the hold took effect: what came since is persistence. */
  readonly arrivalsAtEffect: number | null
  /** Since when `active` has the present value. */
  readonly steadySince: number
}

/** The moment the rule was satisfied. */
export interface Verdict {
  readonly at: number
  readonly proof: Proof
  /** Each scope as it was at the verdict. */
  readonly scopes: ReadonlyMap<string, ScopeMark>
  /** When the seal was confirmed; null: not yet. */
  readonly sealedAt: number | null
}

/** What tells that nothing came to a process since. */
export interface ScopeMark {
  readonly incarnation: string
  readonly arrivals: number | null
  /** {@link LoadScope.countersFrom} */
  readonly countersFrom?: string
}

/** How it ends, and what is done about it. */
export interface EndingState {
  readonly ended: Ending | null
  /** Whether the whole run has its outcome: until then a member that loses idle goes on. */
  readonly settled: boolean
  /** Whether the wish is still kept up. */
  readonly holding: boolean
  /** Scopes when the run settled, to see afterwards whether work came. */
  readonly marks: ReadonlyMap<string, ScopeMark> | null
  /** Whether it was said that the held idle is lost for good. */
  readonly lossSaid: boolean
  readonly terminated: number
  readonly terminatedAtMost: boolean
  /** Until when what was cut may take to show. Null: nothing was cut by deadline. */
  readonly terminateUntil: number | null
}

/** How a member's run ended. */
export interface Ending {
  readonly outcome: Outcome
  readonly at: number
  readonly error: DrainableError | null
}

/** Nothing of ours on the member, and nothing known of it. */
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
  terminateUntil: null,
}

/**
 * A member that was not looked at yet.
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

/** What a process must have taken to be in force: the wish; under a watch drain, whoever has drained it. */
export function neededState({ goal, hold }: DrainState): DrainState['hold']['wish'] {
  return goal.kind === 'watch' ? 'drain' : hold.wish
}

/** The own state last read; `unknown` where there is none. */
export function ownOf(state: DrainState): AdminState | 'unknown' {
  const reading = state.last?.reading
  return reading?.present === true ? reading.own : 'unknown'
}

/** Who may have set a state that is not ours, as words: what the product names, or another client. */
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

/** Incarnation of every scope; of one that can't be read now, as it was read last. Of one that never was: none known. */
export function incarnationsOf(state: DrainState): ReadonlyMap<string, string> {
  const found = new Map<string, string>()
  for (const [name, { read }] of state.proof.scopes) found.set(name, read?.incarnation ?? '')
  return found
}

/** Whether it has ended and keeps its member no longer: nothing is put back, nor looked after. */
export function isLetGo({ ending }: Pick<DrainState, 'ending'>): boolean {
  return ending.ended !== null && !ending.holding
}

/** Whether the newest reading is one of the member itself: absent, or as another one, it has no state. */
export function readsMember({ last, found }: DrainState): boolean {
  return last?.reading.present === true && last.reading.identity === found?.identity
}

/**
 * Whether any process is another than those known: what they had taken may be forgotten there. One that
 * can't be read just now is what it was read as last; one that never was is another where it is not known.
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
