import type { Run } from '../core/calls/run/run.js'
import type { ResolvedPolicy } from '../core/calls/policy.js'
import { openDrain, opened } from '../core/calls/drain.js'
import { resumedRun } from '../core/calls/drain-run.js'
import type { DrainHandle } from '../core/calls/handle.js'
import { statusOf, type MemberStatus } from '../core/status.js'
import type { SeenLook } from '../core/balancer/look/look.js'
import { loadOf, type ClaimedMember } from '../core/member/claimed.js'
import type { Ticket } from '../core/tickets/ticket.js'
import { wallOf } from '../provider/clock.js'
import type { DrainableProvider, MemberRef, PresentReading, Reading } from '../provider/contract.js'
import { isDrainableError, type DrainableError } from '../provider/error.js'
import type { DrainReport, MemberReport, Why } from '../provider/report.js'
import { isSameIdentity, refKey } from '../provider/member-ref.js'
import { Backoff } from './backoff.js'
import type { Removal } from './removals.js'
import type { Wish } from '../endpoints/plan.js'
import { isSameEnding, type Ending } from './shape.js'

/** The drain of one member: what a reconciler has under way for it, or holds. */
export interface DrainShape {
  readonly hold: 'drain' | 'maint'
  readonly keepReady: number
  /** What is left for it when it begins, in milliseconds; null for no limit. */
  readonly timeout: number | null
  readonly ending: Ending
  /** When its time is over, in epoch milliseconds; null for never. Later tries do not move it. */
  readonly deadline: number | null
}

/** What a drain is opened with. */
export interface OpenSpec {
  readonly provider: DrainableProvider
  readonly policy: ResolvedPolicy
  readonly ref: MemberRef
  readonly identity: string
  readonly look: SeenLook
  readonly subject: string
}

/** Why a member that is to be taken out is held after its deadline. */
export const LATE = 'its deadline passed with work left: it goes once it is idle'

/** Why a member that is to be taken out at once is still there. */
const AT_WORK = 'this balancer removes no member that has work: it goes once that has ended'

/** A drain of ours of one member, and what became of it. */
export class MemberDrain {
  readonly ref: MemberRef
  readonly identity: string
  readonly backoff: Backoff
  shape: DrainShape
  /** `running`: no outcome yet. `held`: it has one, and the drain is kept up. `failed`: it is tried again. */
  state: 'running' | 'held' | 'failed' = 'running'
  /** Whether it is being taken back. */
  restoring = false
  /** Why it is not as wished, for a person. */
  held: string | null = null
  /** What is wished of it, as of the last plan. */
  said: string
  /** What was wished when it was overruled: until that changes it is left alone. */
  leftFor: string | null = null
  /** Another hand set another state: what its ticket knows is not ours to undo any more. */
  foreign = false
  /** Another drain is about to take its place. */
  replaced = false
  /** The newest plan wants the member to serve. */
  unwished = false
  /** It wants it out of its pool. */
  leaves = false
  /** It was not idle in its time. */
  isLate = false
  /** Its removal failed, and is tried again. */
  #isTried = false
  /** The call that takes it out. */
  removal: Removal | undefined
  since: string
  readonly #clock: ResolvedPolicy['clock']
  #handle: DrainHandle
  #run: Run
  /** Why the floor had no place for it. Each look decides that again, and it is told once. */
  #atMinimum: string | null

  private constructor(
    { ref, identity, policy }: Pick<OpenSpec, 'ref' | 'identity' | 'policy'>,
    shape: DrainShape,
    opened: { readonly handle: DrainHandle; readonly run: Run },
    before?: MemberDrain,
  ) {
    this.ref = ref
    this.identity = identity
    this.shape = shape
    this.#clock = policy.clock
    this.#handle = opened.handle
    this.#run = opened.run
    this.backoff = before?.backoff ?? new Backoff()
    const now = wallOf(this.#clock)
    this.said = before?.said ?? ''
    this.#atMinimum = before === undefined ? null : before.#atMinimum
    this.since = before?.since ?? new Date(now).toISOString()
  }

  /** Whether the member that was read is the one of this drain. */
  isOf(reading: Reading | undefined): reading is PresentReading {
    return reading?.present === true && isSameIdentity(this.identity, reading.identity)
  }

  /** Begins it. A ticket that is kept for the member is inherited: its undo, and what may come late. */
  static open(spec: OpenSpec, shape: DrainShape, before?: MemberDrain): MemberDrain {
    const { provider, policy, ref, identity, look, subject } = spec
    const { hold, keepReady, timeout, ending } = shape
    const onTimeout = ending.onTimeout === 'remove' ? ('fail' as const) : ending.onTimeout
    const data = { ...policy.data, hold, until: 'idle' as const, keepReady, timeout, onTimeout }
    const resolved = { ...policy, data }
    const target = { kind: 'members', refs: [ref], planned: { look, identity } } as const
    return new MemberDrain(spec, shape, openDrain(provider, target, resolved, subject), before)
  }

  /** A drain that another process began, or an earlier term: to be taken back. */
  static fromTicket(
    { provider, policy, ref, identity, subject }: Omit<OpenSpec, 'look'>,
    ticket: Ticket,
  ): MemberDrain {
    const resolved = { ...policy, data: ticket.policy, id: ticket.id }
    const resumed = opened(provider, resolved, `ticket ${ticket.id}`, undefined, (emit) =>
      resumedRun(provider, ticket, resolved, subject, emit),
    )
    const { hold, keepReady, timeout, onTimeout } = ticket.policy
    const deadline = ticket.deadline === null ? null : Date.parse(ticket.deadline)
    const ending = { waits: true, timeout, onTimeout }
    const shape = { hold, keepReady, timeout, ending, deadline }
    const drain = new MemberDrain({ ref, identity, policy }, shape, resumed)
    drain.since = ticket.startedAt
    return drain
  }

  get done(): Promise<DrainReport> {
    return this.#handle.done
  }

  /** Whether it has nothing to wait for but the balancer, or another drain is about to take its place. */
  get isBusy(): boolean {
    return this.state === 'running' || this.replaced || this.removal?.isBounded === true
  }

  /** The member as its run sees it; undefined while it is not known yet. */
  get claimed(): ClaimedMember | undefined {
    return this.#run.claimedMembers[0]
  }

  /** Whether its hold is in place, and is not to be given back for the floor. */
  get mayGo(): boolean {
    const claim = this.claimed?.claim
    if (claim === undefined || this.restoring || this.replaced) return false
    return (
      claim.held && claim.ending.holding && claim.goal.kind === 'drain' && claim.floor !== 'granted'
    )
  }

  /** Whether the floor has no place for its hold. */
  get isRefused(): boolean {
    return this.state === 'failed' && this.#atMinimum !== null
  }

  /** It is tried again. @returns whether that is news */
  fail(why: string, error: DrainableError | undefined, now: number): boolean {
    const told = this.#atMinimum
    this.state = 'failed'
    this.held = why
    this.#atMinimum = isDrainableError(error, 'POOL_AT_MINIMUM') ? error.message : null
    // A place that comes free is taken by the next look, however often there was none.
    if (this.#atMinimum === null) this.backoff.fail(now)
    else this.backoff.reset()
    return this.#atMinimum === null || this.#atMinimum !== told
  }

  /** Whether the member is still held up by its run; a drain that was overruled is not. */
  get isHeld(): boolean {
    const { claimed } = this
    return claimed === undefined ? this.state === 'running' : claimed.claim.ending.holding
  }

  /** What the newest plan wishes of it. What was left alone is not, once that is another thing. */
  wished(wish: Wish): void {
    this.said = `${wish.state} ${wish.reason}`
    this.leaves = wish.remove
    this.unwished = false
    if (this.leftFor === null || this.leftFor === this.said) return
    this.leftFor = null
    this.backoff.reset()
  }

  /** It could not be taken out, and stays held. */
  tried(why: string, now: number): void {
    this.#isTried = true
    this.held = why
    this.backoff.fail(now)
  }

  /** A call takes it out, or none does any more. */
  leave(removal: Removal | undefined): void {
    this.removal = removal
    if (removal === undefined) return
    this.#isTried = false
    this.held = this.isLate ? LATE : null
  }

  /** Why it is not as wished: opened now, it would get work that a removal which is still under way cuts. */
  get why(): string | null {
    const late = this.claimed?.ledger.late.find(({ change }) => change.kind === 'remove')
    if (this.held === null && this.#waitsForWork) return AT_WORK
    if (!this.unwished || late === undefined) return this.held
    const at = (late.until ?? this.#clock.now()) + wallOf(this.#clock) - this.#clock.now()
    return `it should serve, but a removal without an answer may still be carried out until ${new Date(at).toISOString()}: it is made ready after that`
  }

  /** Whether no drain is wanted, and it is drained all the same: the product removes no member at work. */
  get #waitsForWork(): boolean {
    const { removal, claimed } = this
    if (removal === undefined || removal.isBounded || removal.ending.waits) return false
    return claimed !== undefined && loadOf(claimed) > 0
  }

  /** Its time is over: it goes once it is idle. */
  late(): void {
    this.isLate = true
    this.held = LATE
  }

  /** Whether something of it failed that is tried again. */
  get isTried(): boolean {
    return this.state === 'failed' || this.#isTried
  }

  /** Why its hold could not be put back, where the balancer refused that for good; undefined otherwise. */
  get refusal(): DrainableError | undefined {
    const { claimed } = this
    const refusal = claimed?.ledger.refusal ?? null
    if (claimed === undefined || refusal === null) return undefined
    const { claim } = claimed
    const { change, error } = refusal
    if (claim.ending.holding || claim.overruled) return undefined
    return change.kind === 'hold' && claim.held && !error.retryable ? error : undefined
  }

  /** Nothing says yet that its hold is in place. What was, and is put back, takes no place of another. */
  get isToBegin(): boolean {
    const isInPlace = this.claimed?.claim.held === true
    return this.state === 'running' && !this.restoring && !isInPlace
  }

  /** Whether it asks the floor to leave another number than is wished now. */
  asksOther({ keepReady }: DrainShape): boolean {
    return this.isToBegin && this.shape.keepReady !== keepReady
  }

  get deadline(): number | null {
    return this.shape.deadline
  }

  /** Whether its time is over, and it is not proved idle. */
  get isPastDeadline(): boolean {
    const isDone = this.state === 'held' && this.held === null
    return !isDone && !this.unwished && wallOf(this.#clock) >= (this.deadline ?? Infinity)
  }

  /** Takes up how the newest set has it end. @returns whether that needs another drain in place of this one */
  reshape({ ending, deadline }: DrainShape): boolean {
    if (this.restoring || isSameEnding(this.shape.ending, ending)) return false
    this.backoff.reset()
    if (this.state !== 'held' || this.held !== null) return true
    this.shape = { ...this.shape, ending, deadline }
    return false
  }

  /** Takes it back: only what we changed. */
  async restore(): Promise<MemberReport | undefined> {
    const { members } = await this.#handle.restore()
    return members[0]
  }

  /** Its run may not look any more: a ticket that could not be written is written again at the loop's looks. */
  saveAgain(): void {
    this.#run.saveAgain()
  }

  /** Writes its ticket now, with what another call on the member is about to change. @param limit - milliseconds */
  save(limit: number): Promise<void> {
    return this.#run.saveTicket(limit)
  }

  /** Another drain goes on with its ticket. */
  handOver(): Promise<void> {
    return this.#run.handOver()
  }

  /** Lets go of the member as it is. */
  release(): Promise<void> {
    return this.#handle.release()
  }

  /** What is wrong with its ticket. */
  get whyTicket(): readonly Why[] {
    return this.#run.why().filter(({ code }) => code === 'ticket')
  }

  /** As it is now; undefined while it is not known yet. */
  status(): MemberStatus | undefined {
    const leaving = this.removal?.run.claimedMembers.find(
      ({ ref }) => refKey(ref) === refKey(this.ref),
    )
    const claimed = leaving ?? this.claimed
    if (claimed === undefined) return undefined
    const now = this.#clock.now()
    const wallOffset = wallOf(this.#clock) - now
    const { since } = this
    const deadline = this.deadline === null ? null : new Date(this.deadline).toISOString()
    return statusOf(claimed, { since, deadline, now, wallOffset })
  }
}

/** Outcomes of an undo after which nothing of ours is left. */
const UNDONE: ReadonlySet<MemberReport['outcome']> = new Set([
  'restored',
  'gone',
  'removed',
  'overruled',
])

/** Whether an undo has left nothing of ours. */
export function isUndone({ outcome }: MemberReport): boolean {
  return UNDONE.has(outcome)
}
