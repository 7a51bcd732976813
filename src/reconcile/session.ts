import type { DesiredMember, HeldBack } from '../provider/desired.js'
import { balancerOf } from '../core/balancer/balancer.js'
import type { Term } from '../fleet/lease/leadership.js'
import { type Look, readingsOf, type SeenLook } from '../core/balancer/look/look.js'
import { schedulerOf, type Scheduler, type Subscription } from '../core/balancer/look/scheduler.js'
import { askedFirst } from '../core/tickets/calls.js'
import type { TicketStore } from '../core/tickets/store.js'
import type { Ticket } from '../core/tickets/ticket.js'
import { planWithWishes, type WishedPlan } from '../endpoints/plan-changes.js'
import { pause, wallOf } from '../provider/clock.js'
import type { DrainableProvider, Reading } from '../provider/contract.js'
import {
  DrainableError,
  isClosed,
  isDrainableError,
  toDrainableError,
  wordsOf,
} from '../provider/error.js'
import { formatRef, refKey } from '../provider/member-ref.js'
import { Additions } from './additions.js'
import { Backoff } from './backoff.js'
import { parseEnding, type ResolvedReconcile } from './options.js'
import type { Ending } from './shape.js'
import { Since } from './since.js'
import { recoverTickets } from './tickets.js'
import type { ReconciledMember } from './status.js'
import { Work } from './work.js'

/** Shortest and longest pause between two looks at everything that nothing asked for, in milliseconds. */
const RESYNC_FROM = 2_000
const RESYNC_TO = 60_000
/** Such looks take at most one part in that many of the time. */
const RESYNC_SHARE = 100
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
  #planned:
    | {
        readonly look: SeenLook
        readonly plan: WishedPlan
        readonly desired: readonly DesiredMember[]
      }
    | undefined
  #work: Work | undefined
  #additions: Additions | undefined
  readonly #since: Since
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
    this.#since = new Since(spec.options.policy.clock)
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
    return this.#spec.options.dryRun || this.#work?.isDone(planned.plan) === true
  }

  /** Ends it: nothing is changed any more, and what is held stays so. */
  async end(): Promise<void> {
    this.#stop.abort()
    this.#subscription?.leave()
    await this.#work?.end()
  }

  // eslint-disable-next-line complexity -- each source of a row overrules the one before
  status(): readonly ReconciledMember[] {
    const { plan } = this.#planned ?? {}
    const work = this.#work
    if (plan === undefined || work === undefined) return []
    const rows = new Map<string, ReconciledMember>()
    const held = new Map(plan.held.map((one) => [refKey(one.ref), one]))
    for (const [key, one] of held) if (one.asWished !== true) rows.set(key, this.#rowOf(one))
    for (const [key, reason] of work.refused) {
      const ref = plan.steps.find(({ change }) => refKey(change.ref) === key)?.change.ref
      if (ref !== undefined) rows.set(key, this.#rowOf({ ref, reason }))
    }
    for (const [key, { ref, change, held: why, since }] of work.adds.all) {
      const what = change.kind === 'add' ? 'add' : 'the opening of what was added'
      rows.set(key, { ...this.#rowOf({ ref, reason: why ?? `${what} is under way` }), since })
    }
    const wanted = new Map(plan.down.map((wish) => [refKey(wish.reading.ref), wish]))
    for (const [key, drain] of work.drains) {
      if (drain.state === 'left') continue
      const wish = wanted.get(key)
      const unsaid = plan.unsaid.get(drain.ref.pool)
      const gone = wish?.remove === true ? 'absent' : 'drain'
      const want = unsaid !== undefined ? 'unknown' : wish === undefined ? 'serve' : gone
      const status = drain.status() ?? this.#rowOf({ ref: drain.ref, reason: '' })
      const reason = drain.why ?? unsaid ?? held.get(key)?.reason ?? null
      const why = [...status.why, ...drain.whyTicket]
      const { since, isPastDeadline: pastDeadline } = drain
      rows.set(key, { ...status, why, since, want, held: reason, pastDeadline })
    }
    if (this.#spec.options.dryRun) this.#addDry(rows, plan)
    return [...rows.values()]
  }

  // --- the beginning

  async #begin(): Promise<void> {
    const { signal } = this.#stop
    const info = await this.#insist(() => this.#scheduler.describe(signal))
    const recovered = await this.#insist(() => this.#recover())
    const { provider, options, tickets, subject, term, changed, fault } = this.#spec
    const { policy } = options
    const { capabilities } = info
    const additions = new Additions({
      store: tickets,
      provider,
      clock: policy.clock,
      term,
      lateBound: capabilities.lateBound,
      fault: (thrown) => fault(toDrainableError(thrown, provider.name, subject)),
    })
    await this.#insist(() => additions.load(options.pools, signal))
    this.#additions = additions
    this.#work = new Work(
      {
        provider,
        scheduler: this.#scheduler,
        policy: { ...policy, tickets, term, signal: undefined },
        tickets,
        additions,
        capabilities,
        subject,
        changed: (soon) => {
          if (soon) this.#soon()
          changed()
        },
        fault,
      },
      recovered,
      this.#ending,
    )
    const work = this.#work
    this.#subscription = this.#scheduler.join({
      refs: () => 'all',
      background: false,
      see: (look) => this.#see(look, work),
    })
  }

  #recover(): Promise<Map<string, Ticket>> {
    const { tickets, provider, options, fault, subject } = this.#spec
    const asked = askedFirst({ clock: options.policy.clock, signal: this.#stop.signal })
    return recoverTickets(tickets, provider, options.pools, asked, (_, error) =>
      fault(toDrainableError(error, provider.name, subject)),
    )
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
    const resync = Math.min(RESYNC_TO, Math.max(RESYNC_FROM, look.took * RESYNC_SHARE))
    const due = Math.max(0, work.dueAt - now)
    this.#subscription?.next(Math.min(resync, due))
    if (isAsked) this.#soon()
  }

  /** While the balancer can't be read, the drains of earlier sets wait for it: those that are not wished any more end. */
  #withdraw(): void {
    const { look, desired: before } = this.#planned ?? {}
    const desired = this.#desired
    const work = this.#work
    if (look === undefined || work === undefined || desired === undefined) return
    if (desired === before || this.#now() >= this.#retryAt || this.#stop.signal.aborted) return
    try {
      work.takeBackUnwished(this.#compare(desired, look, work), look)
    } catch (thrown) {
      this.#spec.failed(thrown)
    }
  }

  #compare(desired: readonly DesiredMember[], look: SeenLook, work: Work): WishedPlan {
    const { options, owns, subject } = this.#spec
    const { pools, keepReady, allowEmpty, gone } = options
    return planWithWishes(desired, look.snapshot, {
      pools,
      owns: (reading) => work.ours(reading) || asked(owns, reading, subject),
      ...(keepReady === undefined ? {} : { keepReady }),
      ...(gone === undefined ? {} : { gone }),
      allowEmpty,
      idle: () => true, // the drain that removes it proves it
      capabilities: work.spec.capabilities,
    })
  }

  #plan(look: SeenLook, work: Work): void {
    const desired = this.#desired
    if (desired === undefined) return
    for (const drain of work.drains.values()) drain.saveAgain()
    const plan = this.#compare(desired, look, work)
    this.#planned = { look, plan, desired }
    if (!this.#spec.options.dryRun) {
      this.#additions?.seen(look)
      work.carryOut(plan, look, this.#ending)
    }
    this.#since.note(
      (function* () {
        for (const { ref, reason } of plan.held) yield [refKey(ref), reason] as const
        yield* work.refused
      })(),
    )
  }

  // --- status

  #addDry(rows: Map<string, ReconciledMember>, plan: WishedPlan): void {
    for (const { change, reason } of plan.steps) {
      const what = change.kind === 'hold' ? `hold in ${change.to}` : change.kind
      rows.set(
        refKey(change.ref),
        this.#rowOf({ ref: change.ref, reason: `dry run: would ${what}: ${reason}` }),
      )
    }
  }

  /** A member of which nothing is under way. */
  #rowOf({ ref, reason }: HeldBack): ReconciledMember {
    const { plan, look } = this.#planned ?? {}
    const reading = look === undefined ? undefined : readingsOf(look.snapshot).get(refKey(ref))
    const wish = plan?.down.find((one) => refKey(one.reading.ref) === refKey(ref))
    const unsaid = plan?.unsaid.has(ref.pool) === true
    const { clock } = this.#spec.options.policy
    const scopes = reading?.scopes.filter(({ state }) => state !== 'ended') ?? []
    const whole = scopes.length > 0 && scopes.every(({ state }) => state === 'read')
    const sum = (key: 'active' | 'queued'): number | null =>
      whole ? scopes.reduce((all, scope) => all + scope[key], 0) : null
    const down = wish?.remove === true ? 'absent' : 'drain'
    return {
      ref,
      phase: 'active',
      since: this.#since.of(refKey(ref)) ?? new Date(wallOf(clock)).toISOString(),
      deadline: null,
      active: sum('active'),
      queued: sum('queued'),
      why: [],
      want: unsaid ? 'unknown' : wish === undefined ? 'serve' : down,
      held: reason === '' ? null : reason,
      pastDeadline: false,
    }
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
