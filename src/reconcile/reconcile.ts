import { EventEmitter } from 'eventemitter3'
import * as z from 'zod/mini'
import { balancersOf } from '../fleet/balancers.js'
import { tagError, tagReading, tagRef, tagWhy } from '../fleet/combined/tag.js'
import type { DesiredMember } from '../provider/desired.js'
import { guarded } from '../core/event-hub.js'
import { Leadership, Term } from '../fleet/lease/leadership.js'
import { callShape, checkProvider, type Call } from '../core/calls/call-options.js'
import type { TicketStore } from '../core/tickets/store.js'
import { abortable, aborted, settledWithin } from '../provider/abort.js'
import { pause } from '../provider/clock.js'
import type { DrainableProvider } from '../provider/contract.js'
import { DrainableError, toDrainableError } from '../provider/error.js'
import { parseOptions } from '../provider/options.js'
import { DesiredSets } from './check-set.js'
import { memoryTickets } from './tickets.js'
import {
  parseEnding,
  parseReconcile,
  type ReconcileOptions,
  type ResolvedReconcile,
  type SetOptions,
} from './options.js'
import { isLost, Session, type SessionSpec } from './session.js'
import type { Ending } from './shape.js'
import type { ReconciledMember } from './status.js'

/** The events of a {@link Reconciler}. */
export interface ReconcilerEvents {
  /** The status has changed; sent at most ten times a second. */
  readonly status: readonly ReconciledMember[]
  /** A failure that is retried: of the balancer, the store, the lease, or a change. */
  readonly fault: DrainableError
  /** It got the lease, or lost it. */
  readonly leading: boolean
}

/** A loop that compares desired sets with the balancer and carries them out, until it is closed. */
export interface Reconciler extends AsyncDisposable {
  /**
   * Sets the desired members of the pools: the whole set, each time. It is cheap: many calls a second share looks.
   * Before the first call nothing is changed, and after `close()` nothing any more: a late informer does no harm.
   *
   * With `options` its drains end another way than `reconcile()` was given, those that are under way too: their time is
   * counted from their beginning. The next set without them has those of `reconcile()` again.
   *
   * @throws `INVALID_OPTIONS` with the path, before anything is changed: for input of a shape the types do not allow, an
   *   unknown field, an address that is no IP address, and a name that two entries want in different states
   */
  set(desired: readonly DesiredMember[], options?: SetOptions): void
  /**
   * Lists every member that is drained, held back or left alone, with the reason; not the members that are simply as
   * wanted.
   */
  status(): readonly ReconciledMember[]
  /**
   * Resolves once the newest set is carried out: every member is as wanted, or has its reason in
   * {@link ReconciledMember.held}. While another contender holds the lease, it waits.
   *
   * @returns the status as of then; `pastDeadline` says which members have work left at their deadline
   * @throws `signal.reason`, `CONFLICT` if it was closed, or the error that ended it
   */
  settled(options?: Pick<Call, 'signal' | 'clock'>): Promise<readonly ReconciledMember[]>
  /** Whether it can make changes: it holds the lease, or needs none. */
  readonly leading: boolean
  /**
   * Resolves when it was closed or its signal fired; otherwise it does not end by itself. Rejects if it can't go on:
   * the provider was closed, or `owns` returned something other than true or false.
   */
  readonly done: Promise<void>
  /** Listens to an event. */
  on<K extends keyof ReconcilerEvents>(e: K, fn: (event: ReconcilerEvents[K]) => void): this
  /** Stops listening. */
  off<K extends keyof ReconcilerEvents>(e: K, fn: (event: ReconcilerEvents[K]) => void): this
  /** Ends it, as disposing does: held members stay held, the tickets stay, and the lease is released. */
  close(): Promise<void>
}

const SUBJECT = 'reconcile()'
const SET = `${SUBJECT}.set()`
const EVENTS = ['status', 'fault', 'leading']
/** The shortest time between two `status` events, in milliseconds. */
const STATUS_PAUSE = 100
/** How long the end of a term waits for work that can't send changes any more, in milliseconds. */
const TERM_END = 2_000

/**
 * Keeps the members of a balancer as a controller wants them, as long as it runs: adds missing members, drains those
 * that are to go and removes them once they are proved idle, and makes returning members ready. It repeats
 * `planChanges` of `drainable/endpoints` and carries out the plans with concurrent drains; it retries a failed member
 * with growing waits and reports why.
 *
 * It changes only members that it added or drained itself, or that `owns` claims. It makes a returning member ready
 * only if it drained it itself: a member that an operator holds stays held. With `tickets`, it remembers this after a
 * crash.
 *
 * @throws `INVALID_OPTIONS`, or `UNSUPPORTED` for a store that can't list its tickets, at once; everything else is an event, or ends {@link Reconciler.done}
 *
 * @example
 * ```ts
 * import { fileTickets, reconcile, type DrainableProvider, type DesiredMember } from 'drainable'
 *
 * export async function lead(lb: DrainableProvider, next: () => Promise<readonly DesiredMember[]>) {
 *   await using loop = reconcile(lb, {
 *     pools: ['web'],
 *     owns: ({ ref }) => ref.member.startsWith('ctl-'),
 *     tickets: fileTickets('/var/lib/controller'),
 *   })
 *   loop.on('fault', (error) => console.error(error.message))
 *   for (;;) loop.set(await next())
 * }
 * ```
 */
export function reconcile(provider: DrainableProvider, options: ReconcileOptions): Reconciler {
  checkProvider(provider, SUBJECT)
  return new Loop(provider, parseReconcile(options, SUBJECT))
}

class Loop implements Reconciler {
  readonly done: Promise<void>
  readonly #provider: DrainableProvider
  readonly #options: ResolvedReconcile
  readonly #tickets: TicketStore
  readonly #emitter = new EventEmitter()
  readonly #stop = new AbortController()
  /** Fires when it is closed, or the caller's signal does. */
  readonly #over: AbortSignal
  readonly #waiting = new Set<() => void>()
  readonly #sets: DesiredSets
  #sessions: readonly { readonly key: string | undefined; readonly session: Session }[] = []
  #wanted: [readonly DesiredMember[], Ending] | undefined
  #leading = false
  #failure: { readonly error: unknown } | undefined
  #cancelTelling: (() => void) | undefined

  constructor(provider: DrainableProvider, options: ResolvedReconcile) {
    this.#provider = provider
    this.#options = options
    this.#sets = new DesiredSets(SET, options.pools)
    this.#tickets = options.policy.tickets ?? memoryTickets()
    const { signal } = options.policy
    const closing = this.#stop.signal
    this.#over = signal === undefined ? closing : AbortSignal.any([closing, signal])
    this.done = this.#run().finally(() => {
      if (this.#cancelTelling !== undefined) this.#tellStatus()
      this.#wake()
    })
    this.done.catch(() => undefined) // the caller sees it; the fault was told
  }

  get leading(): boolean {
    return this.#leading
  }

  set(desired: readonly DesiredMember[], options: SetOptions = {}): void {
    const taken = this.#sets.take(desired)
    this.#wanted = [taken, parseEnding(options, this.#options, SET)]
    for (const { session } of this.#sessions) session.set(...this.#wanted)
  }

  status(): readonly ReconciledMember[] {
    return this.#sessions.flatMap(({ key, session }) => {
      const rows = session.status()
      if (key === undefined) return rows
      return rows.map((row) => ({
        ...row,
        ref: tagRef(row.ref, key),
        why: row.why.map((why) => tagWhy(why, key)),
      }))
    })
  }

  async settled(
    options: Pick<Call, 'signal' | 'clock'> = {},
  ): Promise<readonly ReconciledMember[]> {
    const { signal } = parseOptions(
      z.strictObject({ signal: callShape().signal, clock: callShape().clock }),
      options,
      'settled()',
    )
    signal?.throwIfAborted()
    while (!this.#isSettled()) {
      if (this.#failure !== undefined) throw this.#failure.error
      if (this.#over.aborted) throw closed()
      await abortable(new Promise<void>((resolve) => void this.#waiting.add(resolve)), signal)
    }
    return this.status()
  }

  on(event: string, listener: unknown): this {
    checkListener(event, listener)
    this.#emitter.on(event, listener)
    return this
  }

  off(event: string, listener: unknown): this {
    checkListener(event, listener)
    this.#emitter.off(event, listener)
    return this
  }

  async close(): Promise<void> {
    this.#stop.abort()
    await this.done.catch(() => undefined)
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  // --- terms

  async #run(): Promise<void> {
    const { lease, leaseTtl: ttl, policy } = this.#options
    const { clock, owner } = policy
    try {
      if (lease === undefined) {
        await this.#lead(undefined)
        return
      }
      const leadership = new Leadership({ lease, ttl, clock, owner, subject: SUBJECT })
      while (!this.#over.aborted) {
        const term = await this.#win(leadership)
        if (term === undefined) continue
        try {
          await this.#lead(term)
        } finally {
          await term.release()
        }
      }
    } catch (thrown) {
      if (!this.#over.aborted || this.#failure !== undefined) throw thrown
    }
  }

  /** Tries once to get the lease, and waits after a failure. */
  async #win(leadership: Leadership): Promise<Term | undefined> {
    const signal = this.#over
    try {
      const got = await leadership.acquire(signal)
      if (got instanceof Term) return got
    } catch (thrown) {
      signal.throwIfAborted()
      this.#fault(toDrainableError(thrown, this.#options.lease?.name ?? '', SUBJECT))
    }
    await pause(this.#options.policy.clock, leadership.retry, signal)
    return undefined
  }

  /** Changes the balancer until the reconciler is closed, or the term is over. */
  async #lead(term: Term | undefined): Promise<void> {
    const failed = new AbortController()
    const own = [this.#over, failed.signal]
    this.#begin(term, (error) => {
      this.#failure ??= { error }
      this.#fault(toDrainableError(error, this.#provider.name, SUBJECT))
      failed.abort()
    })
    this.#tell(true)
    await aborted(AbortSignal.any(term === undefined ? own : [...own, term.signal]))
    const lost = term !== undefined && term.signal.aborted
    if (lost) this.#fault(term.signal.reason as DrainableError)
    await this.#endSessions(lost)
    this.#tell(false)
    if (this.#failure !== undefined) throw this.#failure.error
  }

  #begin(term: Term | undefined, failed: (error: unknown) => void): void {
    const { owns = () => false } = this.#options
    this.#sessions = [...balancersOf(this.#provider)].map(([key, provider]) => {
      const spec: SessionSpec = {
        provider,
        isOnly: key === undefined,
        options: this.#options,
        term,
        tickets: this.#tickets,
        owns: key === undefined ? owns : (reading) => owns(tagReading(reading, key)),
        subject: SUBJECT,
        changed: () => this.#changed(),
        fault: (error) => {
          if (!isLost(error)) this.#fault(key === undefined ? error : tagError(error, key))
        },
        failed,
      }
      const session = new Session(spec)
      if (this.#wanted !== undefined) session.set(...this.#wanted)
      return { key, session }
    })
  }

  /** Lets an undo in progress finish, unless the lease was lost and it can't send any more. */
  async #endSessions(lost: boolean): Promise<void> {
    const ends = Promise.all(this.#sessions.map(({ session }) => session.end()))
    if (lost) await settledWithin(ends, this.#options.policy.clock, TERM_END)
    else await ends
    this.#sessions = []
    this.#changed()
  }

  // --- events

  #tell(leading: boolean): void {
    this.#leading = leading
    // Without a lease it leads from its first moment, before anybody can listen.
    queueMicrotask(() => this.#emit('leading', leading))
  }

  #fault(error: DrainableError): void {
    this.#emit('fault', error)
  }

  #changed(): void {
    if (this.#isSettled()) this.#wake()
    const { clock } = this.#options.policy
    this.#cancelTelling ??= clock.setTimeout(() => this.#tellStatus(), STATUS_PAUSE)
  }

  #tellStatus(): void {
    this.#cancelTelling?.()
    this.#cancelTelling = undefined
    if (this.#emitter.listenerCount('status') > 0) this.#emit('status', this.status())
  }

  #isSettled(): boolean {
    const sessions = this.#sessions
    return sessions.length > 0 && sessions.every(({ session }) => session.isSettled)
  }

  #wake(): void {
    const waiting = [...this.#waiting]
    this.#waiting.clear()
    for (const wake of waiting) wake()
  }

  #emit<K extends keyof ReconcilerEvents>(name: K, event: ReconcilerEvents[K]): void {
    for (const listener of this.#emitter.listeners(name)) guarded(() => listener(event))
  }
}

function closed(): DrainableError {
  return new DrainableError('CONFLICT', `${SUBJECT}: it was closed`, { retryable: false })
}

function checkListener(
  event: unknown,
  listener: unknown,
): asserts listener is (...args: unknown[]) => void {
  if (typeof event === 'string' && EVENTS.includes(event) && typeof listener === 'function') return
  throw new DrainableError(
    'INVALID_OPTIONS',
    `${SUBJECT}: on(): expected one of ${EVENTS.join(', ')}, and a function`,
  )
}
