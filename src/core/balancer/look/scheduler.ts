import type {
  AddressTarget,
  Capabilities,
  Change,
  DrainableProvider,
  MemberRef,
  ProviderInfo,
  Snapshot,
} from '../../../provider/contract.js'
import { abortable } from '../../../provider/abort.js'
import type { Clock } from '../../../provider/clock.js'
import { isDrainableError, toDrainableError, type DrainableError } from '../../../provider/error.js'
import { refKey } from '../../../provider/member-ref.js'
import type { Permit } from '../owner.js'
import { Batch, type OnResult, type SendSignals } from './batch.js'
import { dateOf, Push, speaksFor } from './push.js'
import { tracedLook } from '../../telemetry.js'
import { bounded, CALL_LIMIT } from './call.js'
import { checkInfo, checkRefs, checkSnapshot } from './gate.js'
import { Costs, countLane, lanesOf } from './cadence.js'
import type { Look, SeenLook, Subscriber } from './look.js'
import { setBackgroundTimer } from './timer.js'

/** How often in a row a timer that fires too early is set again. */
const EARLY_TIMERS = 5

interface Entry {
  readonly subscriber: Subscriber
  due: number
  pause: number
}

/** A subscription at the scheduler. */
export interface Subscription {
  /** Requests the next look after this many milliseconds. */
  readonly next: (pause: number) => void
  readonly leave: () => void
}

/**
 * Schedules all calls to one provider: all drains on it share one `observe` per tick and one `apply` per batch. An
 * aborted caller does not wait for a shared call.
 */
export class Scheduler {
  readonly provider: DrainableProvider
  readonly clock: Clock
  readonly #entries = new Set<Entry>()
  readonly #push: Push
  #info: Promise<ProviderInfo> | undefined
  #cancelTimer: (() => void) | undefined
  #looking = false
  readonly #costs = new Costs()
  /** What this process works by a look for each subscriber, in milliseconds. */
  readonly #work = new Costs()
  #floor = 0
  #counts: Capabilities['counts'] | undefined
  #lastLook = -Infinity
  #lastEnd = -Infinity
  #rested = Infinity
  #batch: Batch | undefined
  /** Aborts the pending look once no caller waits for it any more. */
  #stopLook = new AbortController()

  constructor(provider: DrainableProvider, clock: Clock) {
    this.provider = provider
    this.clock = clock
    this.#push = new Push(provider, clock, (snapshot) => this.#pushed(snapshot))
  }

  /** How long a look at everything that is looked at takes at present, with what this process works by it, in milliseconds. */
  get cost(): number {
    return this.#costs.lowest + this.#work.lowest * this.#entries.size
  }

  /** The provider's shortest pause between two looks. */
  get floor(): number {
    return this.#floor
  }

  /** How long the pause before the last look was, in milliseconds. */
  get rested(): number {
    return this.#rested
  }

  /** How many balancers this process looks at by this clock. */
  get lanes(): number {
    return lanesOf(this.clock)
  }

  /** Returns product and capabilities, asked once. A failure is not remembered. */
  async describe(signal: AbortSignal, limit = CALL_LIMIT): Promise<ProviderInfo> {
    signal.throwIfAborted()
    this.#info ??= this.#ask(limit)
    const info = await abortable(this.#info, signal)
    this.#floor = info.capabilities.minInterval ?? 0
    this.#counts = info.capabilities.counts
    return info
  }

  #ask(limit: number): Promise<ProviderInfo> {
    const { provider, clock } = this
    const asked = bounded(
      {
        provider: provider.name,
        what: 'describe',
        clock,
        signals: [],
        limit: Math.min(limit, CALL_LIMIT),
      },
      (context) => provider.describe(context),
    ).then((info) => checkInfo(info, provider.name))
    asked.catch(() => {
      if (this.#info === asked) this.#info = undefined
    })
    return asked
  }

  /** Finds the members at an address; undefined if the provider can only look at everything. */
  async find(
    wanted: AddressTarget,
    signal: AbortSignal,
    limit = CALL_LIMIT,
  ): Promise<readonly MemberRef[] | undefined> {
    const { provider, clock } = this
    if (provider.find === undefined) return undefined
    const options = { provider: provider.name, what: 'find', clock, signals: [signal] }
    const found = await bounded(
      { ...options, limit: Math.min(limit, CALL_LIMIT) },
      async (context) => provider.find?.(wanted, context),
    )
    return checkRefs(found, provider.name)
  }

  /** Takes one separate look now. */
  async look(
    refs: readonly MemberRef[] | 'all',
    signal: AbortSignal,
    limit = CALL_LIMIT,
    until?: number,
  ): Promise<SeenLook> {
    const { provider, clock } = this
    const askedAt = clock.now()
    const snapshot = await bounded(
      {
        provider: provider.name,
        what: 'observe',
        clock,
        signals: [signal],
        limit: Math.min(limit, CALL_LIMIT),
        until,
      },
      (context) => tracedLook(provider, refs, () => provider.observe(refs, context)),
    )
    const at = clock.now()
    const safe = checkSnapshot(snapshot, provider.name, at, this.#counts)
    // The first one of the loop can wait together with a first change: it would seem dear, and the pause after it long.
    if (this.#costs.lowest === 0) this.#costs.add(at, at - askedAt)
    return { snapshot: safe, refs, askedAt, at, took: at - askedAt }
  }

  /**
   * Sends changes, together with those of all callers in the same event-loop turn; reports each result as soon as it
   * is known. After a signal, the answer can still come, or the call is given up.
   *
   * @param permit - checked when the call is sent: if it refuses, these changes are `rejected`
   */
  send(
    changes: readonly Change[],
    signals: SendSignals,
    onResult: OnResult,
    permit?: Permit,
  ): Promise<void> {
    const batch = (this.#batch ??= this.#openBatch())
    return batch.add(changes, signals, onResult, permit)
  }

  #openBatch(): Batch {
    return new Batch(this.provider, this.clock, () => (this.#batch = undefined))
  }

  /** Adds a subscriber; the first look is due at once. */
  join(subscriber: Subscriber): Subscription {
    const entry: Entry = { subscriber, due: this.clock.now(), pause: 0 }
    if (this.#entries.size === 0) countLane(this.clock, 1)
    this.#entries.add(entry)
    this.#follow()
    this.#schedule()
    return {
      next: (pause) => {
        entry.pause = pause
        entry.due = this.clock.now() + pause
        this.#schedule()
      },
      leave: () => {
        if (!this.#entries.delete(entry)) return
        if (this.#entries.size === 0) {
          countLane(this.clock, -1)
          this.#stopLook.abort()
        }
        this.#follow()
        this.#schedule()
      },
    }
  }

  #follow(): void {
    // Each member of a pool names all other held members, which is expensive with many drains.
    if (this.provider.watch === undefined) return
    const refs = [...this.#entries].flatMap(({ subscriber }) => {
      const wanted = subscriber.refs()
      return wanted === 'all' ? [] : wanted
    })
    this.#push.follow([...new Map(refs.map((ref) => [refKey(ref), ref])).values()])
  }

  /** Passes a pushed snapshot to all runs that it covers. */
  #pushed(snapshot: Snapshot): void {
    const at = this.clock.now()
    let safe: Snapshot
    try {
      safe = checkSnapshot(snapshot, this.provider.name, at, this.#counts)
    } catch {
      return // the next look says what is wrong
    }
    const askedAt = dateOf(safe, at)
    if (askedAt === undefined) return // the next look sees it
    const refs = safe.readings.map(({ ref }) => ref)
    this.share({ snapshot: safe, refs, askedAt, at, took: 0 })
  }

  /** Passes a look to all subscribers whose members it shows. */
  share(look: SeenLook): void {
    for (const { subscriber } of [...this.#entries])
      if (speaksFor(look.snapshot, subscriber.refs())) subscriber.see(look)
  }

  /** @param early - how often the timer has fired too early: a clock that always does must not stop the looks */
  #schedule(early = 0): void {
    this.#cancelTimer?.()
    this.#cancelTimer = undefined
    if (this.#looking || this.#entries.size === 0) return
    const due = Math.min(...[...this.#entries].map((entry) => entry.due))
    if (due === Infinity) return
    const wait = this.#waitUntil(due)
    const background = [...this.#entries].every(({ subscriber }) => subscriber.background)
    const look = (): void => {
      this.#cancelTimer = undefined
      if (early < EARLY_TIMERS && this.#isEarly(due)) this.#schedule(early + 1)
      else void this.#tick()
    }
    this.#cancelTimer = background
      ? setBackgroundTimer(this.clock, look, wait)
      : this.clock.setTimeout(look, wait)
  }

  /**
   * Whether that moment is still to come. Node's timers drop fractions of a millisecond, and a look that comes too early
   * for what is due must be taken again.
   */
  #isEarly(due: number): boolean {
    try {
      return this.clock.now() < due
    } catch {
      return false
    }
  }

  /** If the clock throws, the look itself fails and reports that to all subscribers. */
  #waitUntil(due: number): number {
    try {
      const now = this.clock.now()
      return Math.max(0, due - now, this.#lastLook + this.#floor - now)
    } catch {
      return this.#floor
    }
  }

  async #tick(): Promise<void> {
    try {
      await this.#look()
    } catch (thrown) {
      this.#looking = false
      const error = toDrainableError(thrown, this.provider.name, 'observe')
      const at = this.#lastLook
      // Each subscriber requests its next look, or leaves.
      for (const { subscriber } of [...this.#entries])
        subscriber.see({ error, askedAt: at, at, took: 0 })
    }
  }

  async #look(): Promise<void> {
    const askedAt = this.clock.now()
    // Subscribers that are nearly due share the look, so that many drains make one look.
    const entries = [...this.#entries].filter((entry) => entry.due <= askedAt + entry.pause / 4)
    if (entries.length === 0) {
      this.#schedule()
      return
    }
    this.#looking = true
    this.#stopLook = new AbortController()
    this.#lastLook = askedAt
    this.#rested = askedAt - this.#lastEnd
    for (const entry of entries) entry.due = Infinity
    const refs = union(entries)
    const present = [...this.#entries]
    const look = await this.#observe(refs, askedAt)
    this.#lastEnd = look.at
    // A look that failed shows how long its limit is, not what a look takes.
    if (look.error === undefined) this.#costs.add(look.at, look.at - askedAt)
    // A look at everything goes to all subscribers, also to those with a long wait after failures.
    const shown = refs === 'all' && look.error === undefined ? present : entries
    // One that sits down anew because of what others are shown in this very look is still shown it.
    const sitting = shown.filter((entry) => this.#entries.has(entry))
    // The next look is scheduled only after all subscribers have requested theirs.
    const from = this.clock.now()
    for (const { subscriber } of sitting) subscriber.see(look)
    const to = this.clock.now()
    this.#work.add(to, (to - from) / shown.length)
    this.#looking = false
    this.#schedule()
  }

  async #observe(refs: readonly MemberRef[] | 'all', askedAt: number): Promise<Look> {
    try {
      const ends = [...this.#entries].map(({ subscriber }) => subscriber.until?.() ?? Infinity)
      return await this.look(refs, this.#stopLook.signal, CALL_LIMIT, Math.min(...ends))
    } catch (thrown) {
      const error: DrainableError = isDrainableError(thrown)
        ? thrown
        : toDrainableError(thrown, this.provider.name, 'observe')
      const at = this.clock.now()
      return { error, askedAt, at, took: at - askedAt }
    }
  }
}

function union(entries: readonly Entry[]): readonly MemberRef[] | 'all' {
  const refs = new Map<string, MemberRef>()
  for (const { subscriber } of entries) {
    const wanted = subscriber.refs()
    if (wanted === 'all') return 'all'
    for (const ref of wanted) refs.set(refKey(ref), ref)
  }
  return [...refs.values()]
}

const schedulers = new WeakMap<DrainableProvider, WeakMap<Clock, Scheduler>>()

/** The scheduler of a provider object: one per clock, shared in this process. */
export function schedulerOf(provider: DrainableProvider, clock: Clock): Scheduler {
  const byClock = schedulers.get(provider) ?? new WeakMap<Clock, Scheduler>()
  schedulers.set(provider, byClock)
  const scheduler = byClock.get(clock) ?? new Scheduler(provider, clock)
  byClock.set(clock, scheduler)
  return scheduler
}
