import type { AdminState, Change, MemberRef } from '../../../provider/contract.js'
import { DrainableError } from '../../../provider/error.js'
import { refKey } from '../../../provider/member-ref.js'
import type { DrainReport } from '../../../provider/report.js'
import type { Clock } from '../../../provider/clock.js'
import type { Sight } from '../../machine/input.js'
import { keepLedger, learnSight, ledgersOf, mayHoldCome, sightOf, type Ledger } from './ledgers.js'
import { lateChange, sameChange } from '../../machine/ledger/changes.js'
import { shareHolds } from '../../machine/ledger/late.js'
import { owesUndo } from '../../machine/ledger/owner.js'
import { contradicts } from '../../machine/sighted.js'
import { isLetGo, type DrainState, type LateChange, type Owned } from '../../machine/state.js'
import {
  drainsAgain,
  goesOn,
  HandOver,
  isKept,
  isOurs,
  othersAnswered,
  ownedBy,
  overruledError,
  takeUpTicket,
} from './hand-over.js'
import {
  inheritedLate,
  joinBalancer,
  type LeftChange,
  type Membership,
  type Side,
  type Stake,
} from './balancer.js'
import { isHold, mayCome } from './coming.js'
import { Floor } from './floor.js'
import type { Members } from '../members.js'
import type { RunState } from '../run-state.js'

/** The callbacks of a contest. */
export interface ContestOptions {
  /** Called when another call has taken a member, possibly the last one. */
  readonly overruled: () => void
  /** Called when another run has seen a member opened: only another look shows the present state. */
  readonly contradicted: () => void
  /** Called when other calls have taken all named members before they were known here. */
  readonly endEarly: (report: DrainReport) => void
}

/**
 * Decides which run of this process controls a member: of two calls with opposite goals, the later one. A run has one
 * contest, with its membership of the balancer and its part of the floor.
 */
export class Contest {
  readonly #run: RunState
  readonly #options: ContestOptions
  /** Members that another call took before they were known here. */
  readonly #takenEarly = new Map<
    string,
    { readonly by: Side; readonly ticket?: string | undefined }
  >()
  readonly #ledger: Ledger = { seen: (ref, sight, clock) => this.#seen(ref, sight, clock) }
  /** Unanswered holds that were noted in the floor when their drain had ended. */
  readonly #noted = new WeakSet<Change>()
  readonly #handOver: HandOver
  #down = new Map<string, MemberRef>()
  #membership: Membership
  #floor: Floor
  /** Decisions in progress: unanswered changes of others are still to be inherited. */
  #deciding = 0
  /** Whether other runs have changed something since this run began: its first look can be older than that. */
  #disturbed: boolean

  constructor(run: RunState, options: ContestOptions) {
    this.#run = run
    this.#options = options
    this.#handOver = new HandOver(run)
    this.#membership = this.#join()
    this.#disturbed = this.#membership.busy()
    this.#floor = new Floor(this.#membership, this.#down, run.spec.keepReady)
  }

  get membership(): Membership {
    return this.#membership
  }

  get floor(): Floor {
    return this.#floor
  }

  /** Rejoins the runs of this balancer, for an undo after the release. */
  rejoin(): void {
    this.#down = new Map()
    this.#membership = this.#join()
    this.#floor = new Floor(this.#membership, this.#down, this.#run.spec.keepReady)
    // This run did not learn what other runs sent while it was away.
    this.#share(this.#run.members?.keys ?? [])
  }

  /** Leaves the runs of this balancer; its unanswered changes are left to the next run. */
  leave(): void {
    const { members, states } = this.#run
    const left = new Map<string, readonly LeftChange[]>()
    try {
      for (const state of states) {
        const late = this.#lateOf(state)
        if (late.length > 0) left.set(refKey(state.ref), late)
        this.#noteComing(state)
      }
    } finally {
      // Even if the caller's clock throws: otherwise the floor would count this run as long as the process lives.
      this.#membership.leave(left, members?.policy.capabilities.lateBound ?? 0)
    }
  }

  /** Keeps the ledger informed of what other runs see, as long as this run's handle lives. */
  keepLedger(): void {
    const { spec, states } = this.#run
    const owns = states.filter(({ goal }) => goal.kind === 'drain' || isOurs(goal))
    if (spec.side === null || spec.announced !== undefined || owns.length === 0) return
    const refs = owns.map((state) => state.ref)
    keepLedger(spec.provider, refs, this.#ledger)
  }

  /** Passes a look on: a run that had drained a member now seen open learns of it. */
  tell(askedAt: number): void {
    const { spec, states } = this.#run
    const ledgersOfMember = ledgersOf(spec.provider)
    if (ledgersOfMember === undefined) return
    for (const state of states) {
      const sight = sightOf(state, askedAt)
      if (sight === undefined) continue
      for (const ledger of ledgersOfMember(state.ref))
        if (ledger !== this.#ledger) ledger.seen(state.ref, sight, spec.clock)
    }
  }

  /** Called for each call that changes a member: what shows up can be the doing of another run's hold. */
  calling(ref: MemberRef, done: Promise<void>): void {
    if (mayHoldCome(this.#membership, ref)) this.#share([refKey(ref)])
    this.#membership.calling(ref, done)
  }

  /** Makes this run count as the latest call. */
  renew(): void {
    this.#membership.stake.seq = this.#membership.nextSeq()
  }

  /**
   * Decides each member against every other run. It waits for pending changes of an earlier run, and inherits its
   * unanswered changes.
   *
   * @returns whether there was no other run, so that the look from which the members were picked is still valid
   */
  async decide(): Promise<boolean> {
    const { members, spec } = this.#run
    if (members === undefined || spec.side === null) return true
    const before = this.#run.now()
    this.#deciding += 1
    for (const { ref } of members.all) this.#decideMember(ref)
    const quiet = await othersAnswered(this.#run, this.#membership, members)
    this.#deciding -= 1
    if (this.#run.isReleased()) return false
    this.#handOver.takeAgain()
    const inherited = this.#inheritLate(members)
    for (const state of members.all)
      if (state.goal.kind === 'open' || state.hold.late.some(mayCome)) this.followFloor(state)
    return quiet && !inherited && !this.#disturbed && this.#run.now() === before
  }

  /**
   * Keeps the floor in step with a member. A member that is to be opened keeps its place until no unanswered hold can
   * take it any more, including a hold of a drain that this run has ended.
   */
  followFloor(state: DrainState): void {
    const { ref, ending, goal, hold } = state
    this.#membership.restoring(
      ref,
      hold.late.some(({ change }) => change.kind === 'restore'),
    )
    this.#handOver.follow(state, () => this.#earlier())
    if (isLetGo(state)) {
      this.#noteComing(state)
      this.#floor.withdraw(ref)
    } else if (goal.kind === 'open' && ending.ended === null && hold.late.some(isHold))
      this.#floor.enter(ref)
    // An inherited hold, or one from a ticket, takes its place before this drain has asked for its own.
    else if (goal.kind === 'drain' && hold.late.some(mayCome)) this.#floor.enter(ref)
    else if (goal.kind !== 'open' && hold.wish !== 'none') {
      // A member found already down is held without a change that would have asked the floor.
      if (hold.confirmed !== 'none') this.#floor.enter(ref)
    } else if (hold.pending === null && this.#deciding === 0) this.#floor.withdraw(ref)
  }

  /**
   * Called when nothing is kept up any more, or the run leaves. An unanswered hold may still be carried out, so it
   * keeps its place in the floor as long as that is possible.
   */
  #noteComing(state: DrainState): void {
    const holds = this.#lateOf(state).filter((one) => mayCome(one) && !this.#noted.has(one.change))
    if (holds.length === 0) return
    for (const { change } of holds) this.#noted.add(change)
    const { lateBound } = this.#run.members?.policy.capabilities ?? { lateBound: 0 }
    const until = Math.max(...holds.map((one) => one.until ?? this.#run.now() + lateBound))
    this.#membership.mayCome(state.ref, { clock: this.#run.spec.clock, until, lateBound })
  }

  #join(): Membership {
    const { provider, side } = this.#run.spec
    return joinBalancer(provider, side !== null, (seq) => ({
      seq,
      side: (ref) => this.#sideOf(ref),
      down: this.#down,
      overrule: (ref, by, to, ticket) => this.#overrule(ref, by, to, ticket),
      ticket: () => this.#run.keeper?.head.id,
      takeUp: (ticket) => takeUpTicket(this.#run, ticket),
      owned: (ref) => ownedBy(this.#run.members?.get(refKey(ref))),
      late: (ref) => this.#lateOf(this.#run.members?.get(refKey(ref))),
      inherit: (left) => this.#handOver.inheritLeft(left),
      touched: (ref) => {
        this.#disturbed = true
        this.#share([refKey(ref)])
      },
    }))
  }

  #seen(ref: MemberRef, sight: Sight, clock: Clock): void {
    if (clock !== this.#run.spec.clock) return // its moments mean nothing here
    const key = refKey(ref)
    const { members } = this.#run
    members?.replace((state) =>
      refKey(state.ref) === key ? learnSight(this.#membership, state, sight) : state,
    )
    const state = members?.get(key)
    if (state === undefined || this.#run.isReleased() || !contradicts(state, sight)) return
    this.#run.sender?.send(members?.take(key, { type: 'sighted', sight }) ?? [])
    this.#options.contradicted()
  }

  #share(keys: readonly string[]): void {
    this.#run.members?.replace((state) =>
      keys.includes(refKey(state.ref)) ? shareHolds(state) : state,
    )
  }

  #sideOf(ref: MemberRef): Side | null {
    const state = this.#run.members?.get(refKey(ref))
    if (state === undefined || state.goal.kind === 'watch' || isLetGo(state)) return null
    // An undo with nothing to undo does not take the member from the run that holds it.
    return isOurs(state.goal) && !owesUndo(state) ? null : state.goal.kind
  }

  #lateOf(state: DrainState | undefined): readonly LeftChange[] {
    if (state === undefined) return []
    const { late, pending } = state.hold
    // A change that a step only announced was not sent.
    const isSent =
      pending !== null &&
      (this.#run.spec.announced === undefined || this.#run.sender?.isSent(pending.change) === true)
    // A run that inherits it counts its time from then on: the clock of a broken run can throw.
    const all = isSent ? [...late, lateChange(pending, state.hold.confirmedAt)] : late
    const { clock } = this.#run.spec
    const ticket = this.#run.keeper?.head.id
    const of = ticket === undefined ? { clock } : { clock, ticket }
    return all.map((entry) => ({ ...entry, ...of }))
  }

  /**
   * Whether this run knows a change of another run already from its ticket, where the same change is another object.
   * A step stores all inherited changes in its ticket, and must not inherit them twice.
   */
  #isKnown(key: string, change: Change, tickets: readonly (string | undefined)[]): boolean {
    const { keeper, members, spec } = this.#run
    const thawed = spec.announced !== undefined || tickets.includes(keeper?.head.id ?? '')
    const late = members?.get(key)?.hold.late ?? []
    return thawed && late.some((entry) => sameChange(entry.change, change))
  }

  #earlier(): readonly Stake[] {
    return this.#membership.others().filter(({ seq }) => seq < this.#membership.stake.seq)
  }

  #decideMember(ref: MemberRef): void {
    const mine = this.#sideOf(ref)
    const early = this.#takenEarly.get(refKey(ref))
    if (early !== undefined) this.#overrule(ref, early.by, null, early.ticket)
    if (mine === null) return
    const others = this.#membership.others()
    if (mine === 'open' && others.some((other) => other.late(ref).some(isHold)))
      this.#floor.enter(ref)
    for (const other of others) {
      if (other.seq < this.#membership.stake.seq) this.#handOver.take(ref, other, mine)
      else {
        const theirs = other.side(ref)
        if (theirs !== null && theirs !== mine) this.#overrule(ref, theirs, null, other.ticket())
      }
    }
  }

  /** Inherits unanswered changes of other runs; returns whether there were any. */
  #inheritLate(members: Members): boolean {
    let inherited = false
    for (const key of members.keys) {
      const ref = members.get(key)?.ref
      if (ref === undefined || this.#sideOf(ref) === null) continue
      const time = { now: this.#run.now(), clock: this.#run.spec.clock }
      const late = inheritedLate(this.#membership, ref, time, (change, tickets) =>
        this.#isKnown(key, change, tickets),
      )
      if (late.length === 0) continue
      inherited = true
      const calls = this.#membership.callsOf(ref)
      if (calls.length === 0) members.take(key, { type: 'inherit', late })
      else this.#inheritUnderWay(members, key, { ref, late, calls })
    }
    return inherited
  }

  /**
   * Inherits changes whose calls still go on after the wait: the time of these changes begins when the calls have
   * ended.
   */
  #inheritUnderWay(members: Members, key: string, { ref, late, calls }: UnderWay): void {
    const marked = late.map((entry) => ({ ...entry, until: null, underWay: true }))
    members.take(key, { type: 'inherit', late: marked })
    const words = 'the call that another run made has ended'
    const error = new DrainableError('CALL_TIMEOUT', words, { ref })
    const end = (): void => {
      for (const { change } of late) {
        const result = { ref, status: 'unknown', error } as const
        this.#run.sender?.send(members.take(key, { type: 'result', change, result }))
      }
    }
    this.#run.guard(() => Promise.allSettled(calls).then(end))
  }

  /**
   * Called when an undo begins: takes over the holds that drains of this process have put above the changes to undo,
   * before anything is decided.
   *
   * @returns whether one of their changes is pending: {@link decide} waits for it
   */
  takeOver(): boolean {
    for (const state of this.#run.states)
      if (owesUndo(state))
        for (const other of this.#earlier()) this.#handOver.take(state.ref, other, 'open')
    return this.#handOver.isAwaited()
  }

  /** Called when another call takes control of the member; returns the changes of a run that ends by this. */
  #overrule(ref: MemberRef, by: Side, to: AdminState | null, ticket?: string): Owned | null {
    const { members, sender, keeper } = this.#run
    const key = refKey(ref)
    if (members === undefined) {
      // A call with the same goal takes nothing, and gives back nothing that another call has taken.
      if (by !== this.#run.spec.side) this.#takenEarly.set(key, { by, ticket })
      this.#endTaken()
      return null
    }
    const state = members.get(key)
    const mine = drainsAgain(state) && by === 'open' ? 'drain' : this.#sideOf(ref)
    if (mine === null || mine === by || isKept(state, to)) return null
    const owned = ownedBy(state)
    members.take(key, { type: 'yield', error: overruledError(ref, by, mine) })
    this.#floor.withdraw(ref)
    // The members that it still keeps up are in no other run's ticket.
    if (ticket !== undefined && ticket === keeper?.head.id && !goesOn(this.#run)) keeper.yield()
    void sender?.save()
    this.#options.overruled()
    return owned
  }

  /** Ends a run that does not know its members yet, if other calls have taken all named members. */
  #endTaken(): void {
    const { refs, side } = this.#run.spec
    if (refs === undefined || side === null || this.#run.isReleased()) return
    const by = refs.map((ref) => this.#takenEarly.get(refKey(ref))?.by)
    const [ref] = refs
    const [first] = by
    if (ref === undefined || first === undefined) return
    if (!by.every((taker) => taker !== undefined && taker !== side)) return
    const elapsed = this.#run.since(this.#run.startedAt)
    const error = overruledError(ref, first, side)
    this.#options.endEarly({ outcome: 'overruled', members: [], elapsed, error })
  }
}

/** Changes of a member by other runs whose calls are in progress. */
interface UnderWay {
  readonly ref: MemberRef
  readonly late: readonly LateChange[]
  readonly calls: readonly Promise<void>[]
}
