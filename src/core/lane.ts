import type {
  Change,
  ChangeResult,
  DrainableProvider,
  MemberRef,
  ProviderInfo,
  Reading,
  Snapshot,
} from '../provider/contract.js'
import type { Clock } from '../provider/clock.js'
import { DrainableError } from '../provider/error.js'
import { refKey } from '../provider/member-ref.js'
import { abortable, allUnknown, bounded, CALL_LIMIT, settledWithin } from './call.js'
import { Push, speaksFor } from './push.js'
import { Reservations } from './reservations.js'
import { setBackgroundTimer } from './timer.js'

/** What one look brought: either the snapshot or why there is none. */
export type Look =
  | {
      readonly snapshot: Snapshot
      readonly error?: never
      readonly askedAt: number
      readonly at: number
    }
  | {
      readonly snapshot?: never
      readonly error: DrainableError
      readonly askedAt: number
      readonly at: number
    }

/** Somebody who wants to be shown some members from time to time. */
export interface Viewer {
  readonly refs: readonly MemberRef[] | 'all'
  /** Called with every look that included its members. */
  readonly see: (look: Look) => void
  /** Whether this alone should keep the process alive. */
  readonly background: boolean
}

/** How long a change is waited for that nobody waits for any more, in milliseconds. */
const LINGER = 2_000

interface Seat {
  readonly viewer: Viewer
  due: number
  pause: number
}

interface Flush {
  readonly changes: Change[]
  readonly done: Promise<readonly ChangeResult[]>
  readonly stop: AbortController
  /** How many who asked have not given up. */
  waiting: number
}

/**
 * The one way to one balancer: everybody who drains on it shares one observe per tick and one apply
 * per flush. An abort of one waits for no shared call.
 */
export class Lane {
  readonly provider: DrainableProvider
  readonly clock: Clock
  /** Members about to be drained that still count as serving in what was read. */
  readonly reservations = new Reservations()
  readonly #seats = new Set<Seat>()
  readonly #stop = new AbortController()
  readonly #push: Push
  #info: Promise<ProviderInfo> | undefined
  #cancelTimer: (() => void) | undefined
  #looking = false
  #costs: readonly number[] = [0]
  #floor = 0
  #lastLook = -Infinity
  #flush: Flush | undefined
  /** Calls that change something and have no answer yet. */
  readonly #flying = new Set<Flush>()
  /** Gives up the look under way, once nobody waits for it any more. */
  #stopLook = new AbortController()

  constructor(provider: DrainableProvider, clock: Clock) {
    this.provider = provider
    this.clock = clock
    this.#push = new Push(provider, clock, (snapshot, askedAt) => this.#pushed(snapshot, askedAt))
  }

  /**
   * How long a look takes at present, in milliseconds: the shortest of the last three, because a look
   * that had to wait for a change of ours says nothing of what looking costs.
   */
  get cost(): number {
    return Math.min(...this.#costs)
  }

  /** Shortest pause between two looks, as the provider wants it. */
  get floor(): number {
    return this.#floor
  }

  /** Product and capabilities, asked once. */
  async describe(signal: AbortSignal): Promise<ProviderInfo> {
    signal.throwIfAborted()
    this.#info ??= this.#ask()
    const info = await abortable(this.#info, signal)
    this.#floor = info.capabilities.minInterval ?? 0
    return info
  }

  /** A failure is not remembered, also where nobody waits for the answer any more. */
  #ask(): Promise<ProviderInfo> {
    const asked = bounded(
      this.provider.name,
      'describe',
      this.clock,
      this.#stop.signal,
      CALL_LIMIT,
      (context) => this.provider.describe(context),
    )
    asked.catch(() => {
      if (this.#info === asked) this.#info = undefined
    })
    return asked
  }

  /** One look, now and alone. */
  async look(
    refs: readonly MemberRef[] | 'all',
    signal: AbortSignal,
    limit = CALL_LIMIT,
  ): Promise<Look & { readonly snapshot: Snapshot }> {
    const askedAt = this.clock.now()
    const any = AbortSignal.any([signal, this.#stop.signal])
    const snapshot = await bounded(
      this.provider.name,
      'observe',
      this.clock,
      any,
      limit,
      (context) => this.provider.observe(refs, context),
    )
    checkSnapshot(snapshot, this.provider)
    return { snapshot, askedAt, at: this.clock.now() }
  }

  /** Changes, together with those of everybody else who asks in the same turn; given up at once by the signal. */
  apply(changes: readonly Change[], signal: AbortSignal): Promise<readonly ChangeResult[]> {
    if (signal.aborted) return Promise.reject(signal.reason as Error)
    return abortable(this.send(changes, signal), signal)
  }

  /** The same, for who still wants the answer after the signal: it comes, or the call is given up soon after. */
  send(changes: readonly Change[], signal: AbortSignal): Promise<readonly ChangeResult[]> {
    const flush = (this.#flush ??= this.#openFlush())
    const from = flush.changes.length
    flush.changes.push(...changes)
    flush.waiting += 1
    const leave = (): void => {
      flush.waiting -= 1
      if (flush.waiting === 0) this.#linger(flush, signal.reason)
    }
    signal.addEventListener('abort', leave, { once: true })
    const answer = flush.done.finally(() => signal.removeEventListener('abort', leave))
    return answer.then((results) => results.slice(from, from + changes.length))
  }

  /**
   * Everybody who asked has given up. The answer is waited for a little longer, because a ticket that
   * learns of it can undo the change; then the call goes too.
   */
  #linger(flush: Flush, reason: unknown): void {
    const cancel = setBackgroundTimer(this.clock, () => flush.stop.abort(reason), LINGER)
    flush.done.finally(cancel).catch(() => undefined)
  }

  /** Resolves when no change of these members is under way any more, or after `limit`. */
  async quiet(refs: readonly MemberRef[], limit: number, signal: AbortSignal): Promise<void> {
    const keys = new Set(refs.map(refKey))
    const theirs = [...this.#flying].filter(({ changes }) =>
      changes.some(({ ref }) => keys.has(refKey(ref))),
    )
    if (theirs.length === 0) return
    const done = Promise.allSettled(theirs.map((flush) => flush.done))
    await abortable(settledWithin(done, this.clock, limit), signal)
  }

  #openFlush(): Flush {
    const changes: Change[] = []
    const stop = new AbortController()
    const done = (async () => {
      await Promise.resolve()
      this.#flush = undefined
      try {
        const results = await bounded(
          this.provider.name,
          'apply',
          this.clock,
          AbortSignal.any([stop.signal, this.#stop.signal]),
          CALL_LIMIT,
          (context) => this.provider.apply(changes, context),
        )
        if (results.length === changes.length) return results
        throw new DrainableError(
          'MALFORMED_REPLY',
          `the provider gave ${results.length} results for ${changes.length} changes`,
          { provider: this.provider.name },
        )
      } catch (error) {
        if (this.#stop.signal.aborted || stop.signal.aborted) throw error
        return allUnknown(changes, error as DrainableError)
      }
    })()
    const flush: Flush = { changes, done, stop, waiting: 0 }
    this.#flying.add(flush)
    const landed = (): void => void this.#flying.delete(flush)
    done.then(landed, landed) // whoever asked sees a failure; an abandoned flush is nobody's
    return flush
  }

  /** Takes a seat; the first look is due at once. Returns how to move the next look and how to leave. */
  join(viewer: Viewer): { readonly next: (pause: number) => void; readonly leave: () => void } {
    const seat: Seat = { viewer, due: this.clock.now(), pause: 0 }
    this.#seats.add(seat)
    this.#follow()
    this.#schedule()
    return {
      next: (pause) => {
        seat.pause = pause
        seat.due = this.clock.now() + pause
        this.#schedule()
      },
      leave: () => {
        this.#seats.delete(seat)
        if (this.#seats.size === 0) this.#stopLook.abort()
        this.#follow()
        this.#schedule()
      },
    }
  }

  #follow(): void {
    const refs = union([...this.#seats].filter((seat) => seat.viewer.refs !== 'all'))
    this.#push.follow(refs === 'all' ? [] : refs)
  }

  /** What the provider says of its own accord goes to everybody it speaks for. */
  #pushed(snapshot: Snapshot, askedAt: number): void {
    if (this.#stop.signal.aborted || snapshot.readings.some(isWithoutScope)) return
    const look: Look = { snapshot, askedAt, at: this.clock.now() }
    for (const seat of [...this.#seats]) {
      if (speaksFor(snapshot, seat.viewer.refs)) seat.viewer.see(look)
    }
  }

  #schedule(): void {
    this.#cancelTimer?.()
    this.#cancelTimer = undefined
    if (this.#looking || this.#seats.size === 0 || this.#stop.signal.aborted) return
    const due = Math.min(...[...this.#seats].map((seat) => seat.due))
    if (due === Infinity) return
    const wait = Math.max(
      0,
      due - this.clock.now(),
      this.#lastLook + this.#floor - this.clock.now(),
    )
    const background = [...this.#seats].every((seat) => seat.viewer.background)
    const look = (): void => {
      this.#cancelTimer = undefined
      void this.#tick()
    }
    this.#cancelTimer = background
      ? setBackgroundTimer(this.clock, look, wait)
      : this.clock.setTimeout(look, wait)
  }

  async #tick(): Promise<void> {
    const askedAt = this.clock.now()
    // Whoever is nearly due comes along, so that many drains make one look and not many.
    const seats = [...this.#seats].filter((seat) => seat.due <= askedAt + seat.pause / 4)
    if (seats.length === 0) {
      this.#schedule()
      return
    }
    this.#looking = true
    this.#stopLook = new AbortController()
    this.#lastLook = askedAt
    for (const seat of seats) seat.due = Infinity
    const look = await this.#observe(union(seats), askedAt)
    this.#looking = false
    if (this.#stop.signal.aborted) return
    this.#costs = [...this.#costs.slice(-2), look.at - askedAt]
    for (const seat of seats) if (this.#seats.has(seat)) seat.viewer.see(look)
    this.#schedule()
  }

  async #observe(refs: readonly MemberRef[] | 'all', askedAt: number): Promise<Look> {
    try {
      const look = await this.look(refs, this.#stopLook.signal)
      return { ...look, askedAt }
    } catch (error) {
      return { error: error as DrainableError, askedAt, at: this.clock.now() }
    }
  }

  /** Ends everything: seats, timers, calls. */
  close(reason: unknown): void {
    this.#stop.abort(reason)
    this.#push.follow([])
    this.#cancelTimer?.()
    this.#cancelTimer = undefined
    const seats = [...this.#seats]
    this.#seats.clear()
    for (const seat of seats) {
      const at = this.clock.now()
      const error = new DrainableError('UNREACHABLE', 'the provider was closed', {
        provider: this.provider.name,
        retryable: false,
      })
      seat.viewer.see({ error, askedAt: at, at })
    }
  }

  get closed(): boolean {
    return this.#stop.signal.aborted
  }
}

function union(seats: readonly Seat[]): readonly MemberRef[] | 'all' {
  const refs = new Map<string, MemberRef>()
  for (const { viewer } of seats) {
    if (viewer.refs === 'all') return 'all'
    for (const ref of viewer.refs) refs.set(refKey(ref), ref)
  }
  return [...refs.values()]
}

function isWithoutScope(reading: Reading): boolean {
  return reading.present && reading.scopes.length === 0
}

/** A provider that lists a present member without a process would make "no scope" look like "no work". */
function checkSnapshot(snapshot: Snapshot, provider: DrainableProvider): void {
  for (const reading of snapshot.readings) {
    if (isWithoutScope(reading)) {
      throw new DrainableError(
        'MALFORMED_REPLY',
        `${provider.name} listed a member without any process that can hold its work`,
        { provider: provider.name, ref: reading.ref },
      )
    }
  }
}

const lanes = new WeakMap<DrainableProvider, Map<Clock, Lane>>()

/** The lane of a provider: one per balancer and clock, shared by everybody in this process. */
export function laneOf(provider: DrainableProvider, clock: Clock): Lane {
  const byClock = lanes.get(provider) ?? openLanes(provider)
  let lane = byClock.get(clock)
  if (lane === undefined || lane.closed) {
    lane = new Lane(provider, clock)
    byClock.set(clock, lane)
  }
  return lane
}

/** The first lane of a provider: from now on closing the provider closes its lanes. */
function openLanes(provider: DrainableProvider): Map<Clock, Lane> {
  const byClock = new Map<Clock, Lane>()
  lanes.set(provider, byClock)
  hookClose(provider, () => {
    for (const lane of byClock.values()) {
      lane.close(new DrainableError('UNREACHABLE', 'the provider was closed', { retryable: false }))
    }
    byClock.clear()
  })
  return byClock
}

/** Makes closing a provider close its lanes, and then call `also`. */
export function closeLanesWith(provider: DrainableProvider, also: () => void): void {
  if (!lanes.has(provider)) openLanes(provider)
  hookClose(provider, also)
}

/**
 * Runs `end` before the provider closes: nothing may keep looking at a closed provider, or keep the
 * process alive for it. Both ways to close are hooked on the object itself, because `await using`
 * takes the dispose method when the variable is declared.
 */
function hookClose(provider: DrainableProvider, end: () => void): void {
  if (!Object.isExtensible(provider)) return
  for (const method of ['close', Symbol.asyncDispose] as const) {
    const original = provider[method].bind(provider)
    Object.defineProperty(provider, method, {
      configurable: true,
      writable: true,
      value: async () => {
        end()
        await original()
      },
    })
  }
}
