import type { Change, ChangeResult, MemberRef } from '../../provider/contract.js'
import type { DrainableError } from '../../provider/error.js'
import { refKey } from '../../provider/member-ref.js'
import type { Permit } from '../lease/permit.js'
import { isLetGo, type DrainState } from '../machine/state.js'
import { FIRST_ANSWER, LATER_ANSWER, notKept } from '../tickets/calls.js'
import type { TicketKeeper } from '../tickets/writing/keeper.js'
import type { MemberChange, Members } from './members.js'
import type { Scheduler } from './look/scheduler.js'

/** How long after a failed write the ticket is written again, in milliseconds: doubled with each failure. */
const SAVE_AGAIN = 1_000
const SAVE_AGAIN_MOST = 30_000

/** The options of a run's sender. */
export interface SenderOptions {
  readonly members: Members
  readonly scheduler: Scheduler
  readonly keeper: TicketKeeper | undefined
  /** Fires when the run has let go: calls in progress can still be answered, but nothing more is sent. */
  readonly signal: () => AbortSignal
  /** Called for each call that changes a member. */
  readonly calling: (ref: MemberRef, done: Promise<void>) => void
  /** See `RunSpec`. */
  readonly permit?: Permit | undefined
  /** Called after every change. */
  readonly changed: () => void
  readonly fault: (error: DrainableError) => void
  /** Called after an exception: no caller waits for a change, so no other part would notice it. */
  readonly broken: (thrown: unknown) => void
}

/** Writes the ticket, sends the changes, takes in each result as it comes, and writes the ticket again. */
export class Sender {
  readonly #options: SenderOptions
  readonly #sending = new Set<Promise<void>>()
  /** The controllers that abort the call of each change. */
  readonly #calls = new Map<Change, AbortController>()
  /** Since when the stored ticket is out of date; null: since before the next look. Undefined: it is up to date. */
  #unsavedAt: number | null | undefined
  /** How many writes have failed since the last one that did not. */
  #failures = 0
  /** What was said of them: each thing once. */
  #said: string | undefined
  /** Whether anything was sent. */
  sent = false

  constructor(options: SenderOptions) {
    this.#options = options
  }

  send(changes: readonly MemberChange[]): void {
    if (changes.length === 0) return
    const sending = this.#send(changes)
      .catch(this.#options.broken)
      .finally(() => this.#sending.delete(sending))
    this.#sending.add(sending)
  }

  /**
   * Stops waiting for an unanswered change: gives its call up, unless another run waits for it too; its result is
   * unknown.
   */
  giveUp({ ref, hold }: DrainState, error: DrainableError): void {
    if (hold.pending === null) return
    const { change } = hold.pending
    const call = this.#calls.get(change)
    call?.abort(error)
    this.#options.members.take(refKey(ref), {
      type: 'result',
      change,
      result: { ref, status: 'unknown', error },
      // A change that was not sent yet has no call that could end.
      ...(call === undefined ? {} : { givenUp: true }),
    })
  }

  /** Resolves when no change of ours is in progress any more. */
  async settled(): Promise<void> {
    while (this.#sending.size > 0) await Promise.allSettled(this.#sending)
  }

  /** Whether a change was sent and its call is in progress. */
  isSent(change: Change): boolean {
    return this.#calls.has(change)
  }

  /** Whether a call of ours is in progress. */
  get calling(): boolean {
    return this.#calls.size > 0
  }

  /** Resolves when no call of ours is in progress any more. */
  async called(): Promise<void> {
    while (this.calling) await Promise.allSettled(this.#sending)
  }

  /** Writes the ticket; reports a failure, and the run goes on. */
  async save(): Promise<void> {
    const { keeper, members } = this.#options
    this.#unsavedAt = undefined
    try {
      await keeper?.save(() => members.all, LATER_ANSWER)
      this.#failures = 0
      this.#said = undefined
    } catch (cause) {
      this.#unsavedAt = null
      this.#failures += 1
      this.#fault(notKept('saved', cause))
    }
  }

  /** Called at each look: writes an outdated ticket again, at most once a second, and less often while that fails. */
  saveAgain(): void {
    if (this.#unsavedAt === undefined) return
    const now = this.#options.scheduler.clock.now()
    this.#unsavedAt ??= now
    const wait = Math.min(SAVE_AGAIN_MOST, SAVE_AGAIN * 2 ** Math.max(0, this.#failures - 1))
    if (now - this.#unsavedAt >= wait) void this.save()
  }

  async #send(wished: readonly MemberChange[]): Promise<void> {
    const { members, scheduler, signal, permit, changed } = this.#options
    try {
      await this.#keep(wished)
    } catch (cause) {
      this.#notKept(wished, notKept('saved', cause))
    }
    if (signal().aborted) return
    // The store can be slow: changes that were given up meanwhile must not be sent any more.
    const still = wished.filter(({ key, change }) => isStillWished(members, key, change))
    const next: MemberChange[] = still.flatMap(({ key }) => members.recall(key))
    const changes = still.filter(({ key, change }) => isStillWished(members, key, change))
    if (changes.length < still.length) {
      this.send(next.splice(0))
      void this.save()
      changed()
    }
    if (changes.length === 0) return
    this.sent = true
    const giveUp = new AbortController()
    for (const { change } of changes) this.#calls.set(change, giveUp)
    const call = scheduler.send(
      changes.map(({ change }) => change),
      { leave: signal(), giveUp: giveUp.signal },
      (i, result) => next.push(...this.#take(changes[i], result)),
      permit,
    )
    for (const { change } of changes) this.#options.calling(change.ref, call)
    await call
    for (const { change } of changes) this.#calls.delete(change)
    this.send(next)
    changed()
  }

  /** Writes the ticket before changes are sent: the first one of a member waits for it, any other one not for long. */
  async #keep(wished: readonly MemberChange[]): Promise<void> {
    const { members, keeper } = this.#options
    if (keeper?.kept !== true) return
    keeper.takeUp()
    const limit = wished.some(({ key }) => this.#isFirst(key)) ? FIRST_ANSWER : LATER_ANSWER
    await keeper.save(() => members.all, limit)
  }

  /** Whether this is our first change of the member: without a ticket an undo would be impossible. */
  #isFirst(key: string): boolean {
    const state = this.#options.members.get(key)
    return state?.goal.kind === 'drain' && state.hold.confirmed === 'none'
  }

  #take(sent: MemberChange | undefined, result: ChangeResult): readonly MemberChange[] {
    if (sent === undefined) return []
    const { members, broken } = this.#options
    const { key, change } = sent
    try {
      const next = members.take(key, { type: 'result', change, result })
      void this.save()
      return next
    } catch (thrown) {
      broken(thrown) // here: others share the call, and it is in the hands of the provider
      return []
    }
  }

  /**
   * Handles a ticket that could not be written. Before the first change this ends the drain, because an undo would be
   * impossible; later it is a fault, and the drain goes on.
   */
  #notKept(changes: readonly MemberChange[], error: DrainableError): void {
    const { members, changed } = this.#options
    for (const { key, change } of changes) {
      if (!this.#isFirst(key)) continue
      members.take(key, {
        type: 'result',
        change,
        result: { ref: change.ref, status: 'rejected', error },
      })
      members.take(key, { type: 'end', outcome: 'refused', error })
    }
    this.#fault(error)
    changed()
  }

  #fault(error: DrainableError): void {
    if (error.message === this.#said) return
    this.#said = error.message
    this.#options.fault(error)
  }
}

function isStillWished(members: Members, key: string, change: Change): boolean {
  const state = members.get(key)
  if (state?.hold.pending?.change !== change) return false
  return !isLetGo(state)
}
