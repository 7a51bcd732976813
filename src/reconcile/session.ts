import type { DesiredMember } from '../provider/desired.js'
import { balancerOf } from '../core/balancer/balancer.js'
import type { Term } from '../fleet/lease/leadership.js'
import { notFound } from '../core/balancer/look/not-found.js'
import { searchPause } from '../core/balancer/look/cadence.js'
import type { Look, SeenLook } from '../core/balancer/look/look.js'
import { schedulerOf, type Scheduler, type Subscription } from '../core/balancer/look/scheduler.js'
import { askedFirst } from '../core/tickets/calls.js'
import type { TicketStore } from '../core/tickets/store.js'
import { planWithWishes } from '../endpoints/plan-changes.js'
import { isoOf, pause } from '../provider/clock.js'
import type { DrainableProvider, Reading } from '../provider/contract.js'
import {
  DrainableError,
  isClosed,
  isDrainableError,
  toDrainableError,
  wordsOf,
} from '../provider/error.js'
import { formatRef } from '../provider/member-ref.js'
import { Additions } from './additions.js'
import { Backoff } from './backoff.js'
import { parseEnding, type ResolvedReconcile } from './options.js'
import type { Ending } from './shape.js'
import { recoverTickets } from './tickets.js'
import { heldSince, rowsOf, type HeldSince, type ReconciledMember } from './status.js'
import { wantedOf, type Wanted } from './work-spec.js'
import { Work } from './work.js'

/** Shortest pause between two looks at everything that nothing asked for, in milliseconds. */
const RESYNC = 2_000
/**
 * After a look that a new set asked for, the next one of them waits so many times as long as it took, and so many times as
 * long as this process worked by it: 10,000 members take 20 ms of a core, and sets can come many times a second.
 */
const SOON_SHARE = 2
const WORK_SHARE = 8
/** The latter is no longer than this, in milliseconds: on a machine that is busy with other work, waiting looks like work. */
const MOST_REST = 500
/** Waits after looks, stores or descriptions that failed, in milliseconds. */
const RETRY_FROM = 250
const RETRY_TO = 15_000

/** What one session is about: one balancer, for as long as we may change it. */
export interface SessionSpec {
  readonly provider: DrainableProvider
  /** Whether it is the only balancer: of several, not each has every pool. */
  readonly isOnly: boolean
  readonly options: ResolvedReconcile
  readonly term: Term | undefined
  readonly tickets: TicketStore
  readonly owns: (reading: Reading) => boolean
  readonly subject: string
  readonly changed: () => void
  readonly fault: (error: DrainableError) => void
  /** Nothing can go on: the provider was closed, or a function of the caller answers nonsense. */
  readonly failed: (error: unknown) => void
}

/** Compares set after set with the balancer, and has the difference carried out, until it is ended. */
export class Session {
  readonly #spec: SessionSpec
  readonly #scheduler: Scheduler
  readonly #stop = new AbortController()
  #desired: readonly DesiredMember[] | undefined
  #ending: Ending
  /** The newest look that was planned by, and with what. */
  #planned: { readonly wanted: Wanted; readonly desired: readonly DesiredMember[] } | undefined
  /** What that plan holds back, or work on it did not do. */
  #held: ReadonlyMap<string, HeldSince> = new Map()
  /** The pools that the newest look did not show. */
  #missing: ReadonlyMap<string, string> = new Map()
  #work: Work | undefined
  #additions: Additions | undefined
  #subscription: Subscription | undefined
  readonly #backoff = new Backoff(RETRY_FROM, RETRY_TO)
  /** No look for a new set before that moment. */
  #restUntil = -Infinity
  /** When the look is due that something asked for; Infinity for none. */
  #soonAt = Infinity
  /** When one was asked for last. */
  #askedSoon = -Infinity
  /** After a look that failed: no other one before that moment. */
  #retryAt = -Infinity

  constructor(spec: SessionSpec) {
    this.#spec = spec
    this.#ending = parseEnding({}, spec.options, spec.subject)
    this.#scheduler = schedulerOf(spec.provider, spec.options.policy.clock)
    void this.#begin().catch((thrown: unknown) => {
      if (!this.#stop.signal.aborted) spec.failed(thrown)
    })
  }

  set(desired: readonly DesiredMember[], ending: Ending): void {
    this.#desired = desired
    this.#ending = ending
    this.#withdraw()
    this.#soon()
  }

  /** Whether the newest set is in place, as far as it can be. */
  get isSettled(): boolean {
    const planned = this.#planned
    if (planned === undefined || planned.desired !== this.#desired) return false
    return this.#spec.options.dryRun || this.#work?.isDone === true
  }

  /** Ends it: nothing is changed any more, and what is held stays so. */
  async end(): Promise<void> {
    this.#stop.abort()
    this.#subscription?.leave()
    await this.#work?.end()
  }

  status(): readonly ReconciledMember[] {
    const { wanted } = this.#planned ?? {}
    const work = this.#work
    if (wanted === undefined || work === undefined) return []
    const { dryRun: isDry, policy } = this.#spec.options
    return rowsOf({ wanted, held: this.#held, work, isDry, clock: policy.clock })
  }

  // --- the beginning

  async #begin(): Promise<void> {
    const { signal } = this.#stop
    const { provider, options, tickets, subject, term, changed, fault } = this.#spec
    const { policy, pools } = options
    const { clock } = policy
    const tell = (thrown: unknown): void => fault(toDrainableError(thrown, provider.name, subject))
    const { capabilities } = await this.#insist(() => this.#scheduler.describe(signal))
    const recovered = await this.#insist(() =>
      recoverTickets(tickets, provider, pools, askedFirst({ clock, signal }), tell),
    )
    const base = {
      provider,
      policy: { ...policy, tickets, term, signal: undefined },
      tickets,
      capabilities,
      subject,
      fault,
    }
    const additions = new Additions(base)
    await this.#insist(() => additions.load(pools, signal))
    this.#additions = additions
    const spec = {
      ...base,
      scheduler: this.#scheduler,
      additions,
      changed: (soon: boolean) => {
        if (soon) this.#soon()
        changed()
      },
    }
    this.#work = new Work(spec, recovered, this.#ending)
    const work = this.#work
    this.#subscription = this.#scheduler.join({
      refs: () => 'all',
      background: false,
      see: (look) => this.#see(look, work),
    })
  }

  /** Tries until it works: nothing is changed before it is known what is there. */
  async #insist<T>(ask: () => Promise<T>): Promise<T> {
    const { signal } = this.#stop
    const { options, provider, subject, fault } = this.#spec
    for (;;) {
      try {
        const answer = await ask()
        signal.throwIfAborted()
        this.#backoff.reset()
        return answer
      } catch (thrown) {
        signal.throwIfAborted()
        const error = toDrainableError(thrown, provider.name, subject)
        if (isClosed(error)) throw error
        fault(error)
        await pause(options.policy.clock, this.#backoff.next(), signal)
      }
    }
  }

  // --- looks

  #soon(): void {
    // Many sets a second make one look after another, not one each; and none of them puts it off.
    const now = this.#now()
    this.#askedSoon = now
    const at = Math.max(now, this.#restUntil, this.#retryAt)
    if (at >= this.#soonAt) return
    this.#soonAt = at
    this.#subscription?.next(at - now)
  }

  #see(look: Look, work: Work): void {
    const { term, fault, failed, changed } = this.#spec
    if (this.#stop.signal.aborted) return
    if (term?.permit() !== undefined) return // its signal ends this session
    // What was asked for meanwhile is not seen by this look.
    const isAsked = this.#askedSoon > look.askedAt
    this.#soonAt = Infinity
    if (look.error !== undefined) {
      if (isClosed(look.error)) failed(look.error)
      else {
        fault(look.error)
        const wait = this.#backoff.next()
        this.#retryAt = this.#now() + wait
        this.#withdraw()
        this.#subscription?.next(wait)
      }
      return
    }
    this.#backoff.reset()
    this.#retryAt = -Infinity
    this.#restUntil = look.at + look.took * SOON_SHARE
    const { provider, options } = this.#spec
    balancerOf(provider, options.policy.clock).leftRecords.see(provider, look)
    try {
      this.#plan(look, work)
    } catch (thrown) {
      failed(thrown)
      return
    }
    changed()
    const now = this.#now()
    const rest = Math.min(MOST_REST, (now - look.at) * WORK_SHARE)
    this.#restUntil = Math.max(this.#restUntil, now + rest)
    const resync = Math.max(RESYNC, searchPause(look.took))
    const due = Math.max(0, work.dueAt - now)
    this.#subscription?.next(Math.min(resync, due))
    if (isAsked) this.#soon()
  }

  /** While the balancer can't be read, the drains of earlier sets wait for it: those that are not wished any more end. */
  #withdraw(): void {
    const { wanted: { look } = {}, desired: before } = this.#planned ?? {}
    const desired = this.#desired
    const work = this.#work
    if (look === undefined || work === undefined || desired === undefined) return
    if (desired === before || this.#now() >= this.#retryAt || this.#stop.signal.aborted) return
    try {
      work.takeBackUnwished(this.#compare(desired, look, work))
    } catch (thrown) {
      this.#spec.failed(thrown)
    }
  }

  #compare(desired: readonly DesiredMember[], look: SeenLook, work: Work): Wanted {
    const { options, owns, subject } = this.#spec
    const { pools, keepReady, allowEmpty, gone } = options
    const plan = planWithWishes(
      desired,
      look.snapshot,
      {
        pools,
        owns: (reading) => work.ours(reading) || asked(owns, reading, subject),
        ...(keepReady === undefined ? {} : { keepReady }),
        ...(gone === undefined ? {} : { gone }),
        allowEmpty,
        idle: () => true, // the drain that removes it proves it
        capabilities: work.spec.capabilities,
      },
      (pool) => notFound({ kind: 'pool', pool }, look.snapshot).message,
    )
    return wantedOf(plan, look)
  }

  #plan(look: SeenLook, work: Work): void {
    const desired = this.#desired
    if (desired === undefined) return
    for (const drain of work.drains.values()) drain.saveAgain()
    const wanted = this.#compare(desired, look, work)
    this.#planned = { wanted, desired }
    // It may come, and it may be a name that nobody has: that is told once.
    const { missing } = wanted.plan
    for (const [pool, words] of missing)
      if (this.#spec.isOnly && !this.#missing.has(pool))
        this.#spec.fault(new DrainableError('NOT_FOUND', words))
    this.#missing = missing
    if (!this.#spec.options.dryRun) {
      this.#additions?.seen(look)
      work.carryOut(wanted, this.#ending)
    }
    const held = [...wanted.plan.held, ...work.refused.values()]
    this.#held = heldSince(held, this.#held, isoOf(this.#spec.options.policy.clock))
  }

  #now(): number {
    return this.#spec.options.policy.clock.now()
  }
}

/** Whether a fault is that we are not the leader any more, which is said another way. */
export function isLost(error: unknown): boolean {
  return isDrainableError(error, 'NOT_LEADER')
}

/** What the caller's function says; what it throws is no failure of the balancer. */
function asked(owns: (reading: Reading) => boolean, reading: Reading, subject: string): boolean {
  try {
    return owns(reading)
  } catch (cause) {
    const words = `owns: your function failed for ${formatRef(reading.ref)}: ${wordsOf(cause)}`
    throw new DrainableError('INVALID_OPTIONS', `${subject}: ${words}`, { cause })
  }
}
