import type { Run } from '../core/calls/run/run.js'
import { openDrain, opened, type Opened } from '../core/calls/drain.js'
import { resumedRun } from '../core/calls/drain-run.js'
import type { DrainEvent } from '../core/events.js'
import type { SeenLook } from '../core/balancer/look/look.js'
import type { ClaimedMember } from '../core/member/claimed.js'
import type { Ticket } from '../core/tickets/ticket.js'
import type { Wish } from '../endpoints/plan.js'
import { isoOf, wallOf } from '../provider/clock.js'
import type { MemberRef, PresentReading, Reading } from '../provider/contract.js'
import { isDrainableError, type DrainableError } from '../provider/error.js'
import type { DrainReport, MemberReport, Why } from '../provider/report.js'
import { isSameIdentity, refKey } from '../provider/member-ref.js'
import { Backoff } from './backoff.js'
import type { Removal } from './removals.js'
import { isSameEnding, type DrainShape } from './shape.js'
import { ticketId } from './tickets.js'
import type { WorkSpec } from './work-spec.js'

/** Why a member that is to be taken out is held after its deadline. */
export const LATE = 'its deadline passed with work left: it goes once it is idle'

/** Outcomes of an undo after which nothing of ours is left. */
const UNDONE: ReadonlySet<MemberReport['outcome']> = new Set([
  'restored',
  'gone',
  'removed',
  'overruled',
])

/** What became of an undo. */
export interface Undone {
  /** Why something of ours is left; null: nothing is. */
  readonly failure: string | null
  readonly error?: DrainableError | undefined
  readonly isOverruled: boolean
}

/** The drain of one member: what a reconciler has under way for it, or holds. Each of its calls goes on with the ticket of the last. */
export class MemberDrain {
  readonly ref: MemberRef
  /** Null where its ticket does not say it. */
  readonly identity: string | null
  readonly backoff = new Backoff()
  /** How its call was begun. Undefined: an earlier controller has begun it, which may have had another timeout. */
  shape: DrainShape | undefined
  /** ISO 8601. */
  since: string
  /**
   * `left`: by an earlier controller, and not taken over yet. `running`: no outcome yet. `held`: it has one, and the drain is
   * kept up. `failed`: it is tried again.
   */
  state: 'left' | 'running' | 'held' | 'failed' = 'running'
  /** Whether it is being taken back. */
  restoring = false
  /** Why it is not as wished, for a person. */
  held: string | null = null
  /** What is wished of it, as of the last plan; undefined: that it serves. */
  wish: Wish | undefined
  /** What was wished when it was overruled: until that changes it is left alone. */
  leftFor: string | null = null
  /** It was not idle in its time. */
  isLate = false
  /** The call that takes it out. */
  removal: Removal | undefined
  readonly #spec: WorkSpec
  /** What an earlier controller has left of it. */
  readonly #ticket: Ticket | undefined
  #call: Opened<Run> | undefined
  /** The last call before it that had a claim on the member. */
  #before: Opened<Run> | undefined
  /** Which call, or undo, is the newest. */
  #turn = 0
  /** Its removal failed, and is tried again. */
  #isRefusedRemoval = false
  /** Why the floor had no place for it. Each look decides that again, and it is told once. */
  #atMinimum: string | null = null

  constructor(
    spec: WorkSpec,
    { ref, identity }: Pick<MemberDrain, 'ref' | 'identity'>,
    of?: Ticket,
  ) {
    this.ref = ref
    this.identity = identity
    this.#spec = spec
    this.#ticket = of
    this.since = of?.startedAt ?? isoOf(spec.policy.clock)
    if (of !== undefined) this.state = 'left'
  }

  // --- its calls

  /**
   * Begins it, or a call in place of the one before, which lets go.
   *
   * @returns how that ended; undefined: another call, or an undo, has taken its place
   */
  begin(look: SeenLook, shape: DrainShape): Promise<DrainReport | undefined> {
    const before = this.#holder
    // One that undoes goes on until the new one has its claim.
    void this.#call?.handle.release()
    const call = this.#open(look, shape, before?.run)
    const turn = (this.#turn += 1)
    this.#before = before
    this.#call = call
    this.shape = shape
    this.state = 'running'
    this.held = null
    this.restoring = this.isLate = this.#isRefusedRemoval = false
    return call.handle.done.then((report) => (turn === this.#turn ? report : undefined))
  }

  /** A ticket that is kept for the member is inherited: its undo, and what may come late. */
  #open(look: SeenLook, shape: DrainShape, before: Run | undefined): Opened<Run> {
    const { provider, subject } = this.#spec
    const { ref, identity } = this
    const { hold, keepReady, timeout, ending } = shape
    const onTimeout = ending.onTimeout === 'remove' ? ('fail' as const) : ending.onTimeout
    const policy = this.#policy()
    const data = { ...policy.data, hold, until: 'idle' as const, keepReady, timeout, onTimeout }
    const planned = { look, identity: identity ?? '' }
    const target = { kind: 'members', refs: [ref], planned } as const
    const earlier = before && ((): Ticket => before.ticketNow())
    return openDrain(provider, target, { ...policy, data, earlier }, subject)
  }

  /** Takes it back: only what we changed. @returns undefined where a call has taken its place */
  async restore(): Promise<Undone | undefined> {
    const turn = (this.#turn += 1)
    this.restoring = true
    this.held = this.leftFor = null
    this.state = 'running'
    // A call without a claim has changed nothing.
    if (this.#holder !== this.#call) await this.#call?.handle.release()
    if (turn !== this.#turn) return undefined
    this.#call = this.#holder ?? this.#resume() ?? this.#call
    const report = await this.#call?.handle.restore()
    if (turn !== this.#turn) return undefined
    const { outcome = 'restored', error } = report?.members[0] ?? {}
    const isOverruled = outcome === 'overruled'
    if (UNDONE.has(outcome)) return { failure: null, isOverruled }
    const failure = error?.message ?? `it could not be made ready: ${outcome}`
    return { failure, error, isOverruled }
  }

  /** The call that knows what we changed; undefined: none of this process does. */
  get #holder(): Opened<Run> | undefined {
    return this.claimed === undefined ? this.#before : this.#call
  }

  /** The call of an earlier controller, by its ticket. */
  #resume(): Opened<Run> | undefined {
    const ticket = this.#ticket
    if (ticket === undefined) return undefined
    const { provider, subject } = this.#spec
    const resolved = { ...this.#policy(), data: ticket.policy, id: ticket.id }
    return opened(provider, resolved, `ticket ${ticket.id}`, undefined, (emit) =>
      resumedRun(provider, ticket, resolved, subject, emit),
    )
  }

  #policy() {
    const { provider, policy, changed, fault } = this.#spec
    const onEvent = (event: DrainEvent): void => {
      changed(event.type === 'idle-lost')
      // The balancer's own failures are seen by the loop's looks.
      if (event.type === 'fault' && isDrainableError(event.error, 'TICKET_INVALID'))
        fault(event.error)
      policy.onEvent?.(event)
    }
    return { ...policy, id: ticketId(provider, this.ref), onEvent }
  }

  /** Its run may not look any more: a ticket that could not be written is written again at the loop's looks. */
  saveAgain(): void {
    this.#call?.run.saveAgain()
  }

  /** Writes its ticket now, with what another call on the member is about to change. @param limit - milliseconds */
  async save(limit: number): Promise<void> {
    await this.#call?.run.saveTicket(limit)
  }

  /** Lets go of the member as it is. An undo that has not begun yet does not begin any more. */
  async release(): Promise<void> {
    this.#turn += 1
    await Promise.all([this.#call?.handle.release(), this.#before?.handle.release()])
  }

  // --- what is wished, and what became of it

  /** What the newest plan wishes of it. What was left alone is not, once that is another thing. */
  wished(wish: Wish, { ending, deadline }: DrainShape): void {
    const before = this.said
    this.wish = wish
    if (before !== this.said && this.state === 'failed' && this.#isIdle) {
      // It was to be raised, and could not; it is held as it was.
      this.state = 'held'
      this.held = null
      this.backoff.reset()
    }
    if (this.leftFor !== null && this.leftFor !== this.said) {
      this.leftFor = null
      this.backoff.reset()
    }
    const { shape } = this
    if (this.restoring || shape === undefined || isSameEnding(shape.ending, ending)) return
    this.backoff.reset()
    if (this.state !== 'held' || this.held !== null) return
    this.shape = { ...shape, ending, deadline }
  }

  /** When its time is over, in epoch milliseconds; null for never. Later tries do not move it. */
  get deadline(): number | null {
    if (this.shape !== undefined) return this.shape.deadline
    const { deadline = null } = this.#ticket ?? {}
    return deadline === null ? null : Date.parse(deadline)
  }

  get #isIdle(): boolean {
    const claim = this.claimed?.claim
    return claim?.phase === 'idle' && claim.ending.holding
  }

  get said(): string {
    return this.wish === undefined ? '' : `${this.wish.state} ${this.wish.reason}`
  }

  /**
   * Whether what is wished now needs another call. Not between a reload and the hold that is put back: let go then, it would take
   * no place in the floor. And no first hold begins anew only to end another way: sets that come faster than its ticket is written
   * would keep it from being sent at all.
   */
  isOther(wished: DrainShape, isDown: boolean): boolean {
    const { shape, isToBegin } = this
    if (shape === undefined) return isDown || isToBegin
    const isRaised = wished.hold === 'maint' && shape.hold === 'drain'
    if (isToBegin && (isRaised || this.asksOther(wished))) return true
    return isDown && (isRaised || !isSameEnding(shape.ending, wished.ending))
  }

  /** Whether it asks the floor to leave another number than is wished now. */
  asksOther({ keepReady }: DrainShape): boolean {
    return this.isToBegin && this.shape?.keepReady !== keepReady
  }

  /** It is tried again. @returns whether that is news */
  fail(why: string, error?: DrainableError): boolean {
    const told = this.#atMinimum
    this.state = 'failed'
    this.held = why
    this.#atMinimum = isDrainableError(error, 'POOL_AT_MINIMUM') ? error.message : null
    // A place that comes free is taken by the next look, however often there was none.
    if (this.#atMinimum === null) this.backoff.fail(this.#now())
    else this.backoff.reset()
    return this.#atMinimum === null || this.#atMinimum !== told
  }

  /** Another client made it ready. @param isLeft - whether it is left alone until its endpoint changes */
  overruled(isLeft: boolean): void {
    this.since = isoOf(this.#spec.policy.clock)
    if (isLeft) this.leftFor = this.said
  }

  /** It could not be taken out, and stays held. */
  tried(why: string): void {
    this.#isRefusedRemoval = true
    this.held = why
    this.backoff.fail(this.#now())
  }

  /** A call takes it out, or none does any more. */
  leave(removal: Removal | undefined): void {
    this.removal = removal
    if (removal === undefined) return
    this.#isRefusedRemoval = false
    this.held = this.isLate ? LATE : null
  }

  /** Its time is over: it goes once it is idle. */
  late(): void {
    this.isLate = true
    this.held = LATE
  }

  // --- how it is

  /** Whether the member that was read is the one of this drain. */
  isOf(reading: Reading | undefined): reading is PresentReading {
    if (reading?.present !== true || this.identity === null) return false
    return isSameIdentity(this.identity, reading.identity)
  }

  /** Whether it has nothing to wait for but the balancer. */
  get isBusy(): boolean {
    return this.state === 'running' || this.removal?.isBounded === true
  }

  /** The member as its call sees it; undefined while that has no claim on it. */
  get claimed(): ClaimedMember | undefined {
    return this.#call?.run.claimedMembers[0]
  }

  /** Whether its hold is in place, and is not to be given back for the floor. */
  get mayGo(): boolean {
    const claim = this.claimed?.claim
    if (claim === undefined || this.restoring) return false
    return (
      claim.held && claim.ending.holding && claim.goal.kind === 'drain' && claim.floor !== 'granted'
    )
  }

  /** Whether the floor has no place for its hold. */
  get isRefused(): boolean {
    return this.state === 'failed' && this.#atMinimum !== null
  }

  /** Whether it had its outcome, and its hold is not kept up any more. */
  get isLetGo(): boolean {
    return this.state === 'held' && this.claimed?.claim.ending.holding !== true
  }

  /** Whether another client has set the member since. One that ended before its hold was sent is let go too. */
  get isOverruled(): boolean {
    return this.claimed?.claim.overruled === true
  }

  /** Whether something of it failed that is tried again; for a place at the floor it only waits. */
  get isTried(): boolean {
    if (this.leftFor !== null || this.isRefused) return false
    return this.state === 'failed' || this.#isRefusedRemoval
  }

  /** Why its hold could not be put back, or raised, where the balancer refused that for good; undefined otherwise. */
  get refusal(): DrainableError | undefined {
    const { claimed } = this
    const refusal = claimed?.ledger.refusal ?? null
    if (claimed === undefined || refusal === null) return undefined
    const { claim } = claimed
    const { change, error } = refusal
    if (claim.overruled) return undefined
    return change.kind === 'hold' && claim.held && !error.retryable ? error : undefined
  }

  /** Nothing says yet that its hold is in place. What was, and is put back, takes no place of another. */
  get isToBegin(): boolean {
    const isBegun = this.restoring || this.claimed?.claim.held === true
    return !isBegun && (this.state === 'running' || this.state === 'left')
  }

  /** Whether its time is over, and it is not proved idle. */
  get isPastDeadline(): boolean {
    const isDone = this.state === 'held' && this.held === null
    const { clock } = this.#spec.policy
    return !isDone && this.wish !== undefined && wallOf(clock) >= (this.deadline ?? Infinity)
  }

  /** The member as the call sees it that is to take it out. */
  get leaving(): ClaimedMember | undefined {
    const key = refKey(this.ref)
    return this.removal?.run.claimedMembers.find(({ ref }) => refKey(ref) === key)
  }

  /** What is wrong with its ticket. */
  get whyTicket(): readonly Why[] {
    return this.#call?.run.why().filter(({ code }) => code === 'ticket') ?? []
  }

  #now(): number {
    return this.#spec.policy.clock.now()
  }
}
