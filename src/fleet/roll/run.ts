import { abortable, Waits } from '../../provider/abort.js'
import { isoOf, pause, type Clock } from '../../provider/clock.js'
import type { DrainableProvider } from '../../provider/contract.js'
import { DrainableError, isDrainableError, toDrainableError } from '../../provider/error.js'
import type { RollReport, Why } from '../../provider/report.js'
import type { Term } from '../lease/leadership.js'
import { FIRST_ANSWER, notKept } from '../../core/tickets/calls.js'
import type { Ticket } from '../../core/tickets/ticket.js'
import type { ResolvedPolicy } from '../../core/calls/policy.js'
import type { RollEvent } from './events.js'
import type { RollLedger, ServerState } from './ledger.js'
import { holdsAnything, inOrder, isOut, noPlaceLeft } from './left.js'
import { OneServer, type ServerEnd } from './one-server.js'
import type { OwnHealthCheck } from '../../core/calls/run/run-spec.js'
import type { RollOptions } from './options.js'
import type { RollContext } from './roll-context.js'
import type { Spread } from './spread.js'
import { asInTicket, reportRoll } from './report.js'

/** What a roll is made of. */
export interface RollSpec {
  readonly provider: DrainableProvider
  readonly subject: string
  readonly policy: ResolvedPolicy
  readonly act: RollOptions['act']
  readonly check: OwnHealthCheck | undefined
  readonly emit: (event: RollEvent) => void
  /** The servers of the ticket that it goes on with: reported until it has begun. */
  readonly known?: readonly ServerState[]
  /** Finds the servers and refuses what can be refused, before anything is changed. */
  readonly prepare: Prepare
}

/**
 * @param say - told what it waits for, and of nothing where that is over
 * @param waits - the calls of store and lease that have no answer yet
 */
export type Prepare = (
  signal: AbortSignal,
  say: (why: readonly Why[]) => void,
  waits: Waits,
) => Promise<Prepared> | Prepared

/** What is known before anything is changed. */
export interface Prepared {
  readonly ledger: RollLedger
  readonly spread: Spread
  /** The lease under which it rolls. */
  readonly term: Term | undefined
  /** Lets another roll of the same ticket begin. */
  readonly leave: () => void
}

/** How often it is asked again whether a pool has enough servers, in milliseconds. */
const MINIMUM_PAUSE = 1_000

/** One roll over several servers. */
export class RollRun {
  readonly done: Promise<RollReport>
  readonly #spec: RollSpec
  readonly #clock: Clock
  readonly #startedAt: number
  readonly #abort = new AbortController()
  #all: readonly OneServer[] = []
  /** Servers that have not begun, the next one first. */
  #queue: OneServer[] = []
  /** Busy servers, for a last try. */
  #later: OneServer[] = []
  #isLastTry = false
  readonly #active = new Set<OneServer>()
  #prepared: Prepared | undefined
  /** What it waits for before it begins. */
  #said: readonly Why[] = []
  readonly #waits: Waits
  readonly #ready: Promise<void>
  /** Why no other server begins. */
  #stopped: DrainableError | 'asked' | undefined
  /** Its next server waits until another one is back. */
  #isBlocked = false
  /** Several that began at once left each other no place: the next one begins alone. */
  #isAlone = false
  /** Servers that were let go in their pools' turn, until they are back. */
  readonly #taken = new Set<OneServer>()
  #asking: Promise<unknown> = Promise.resolve()
  #failures = 0
  /** Why the next server may not begin yet. */
  #refused: DrainableError | undefined
  /** Its lease went to another process. */
  #isLost = false
  #wake: () => void = () => undefined
  #ended: RollReport | undefined

  constructor(spec: RollSpec) {
    this.#spec = spec
    this.#clock = spec.policy.clock
    this.#startedAt = this.#clock.now()
    this.#waits = new Waits(this.#clock)
    const { signal } = spec.policy
    const onAbort = (): void => this.#abort.abort(signal?.reason)
    if (signal?.aborted === true) onAbort()
    else signal?.addEventListener('abort', onAbort, { once: true })
    this.#ready = this.#prepare()
    this.done = this.#main().finally(() => signal?.removeEventListener('abort', onAbort))
  }

  /** How it goes at the moment. */
  report(): RollReport {
    if (this.#ended !== undefined) return this.#ended
    return this.#reportAs(this.#outcome())
  }

  /** What the servers under way wait for, and why the next one, or all of it, does not begin. */
  why(): readonly Why[] {
    if (this.#ended !== undefined) return []
    if (this.#prepared === undefined) return [...this.#whyUnanswered(), ...this.#said]
    const servers = [...this.#active].flatMap((one) => one.why())
    const said = [...this.#whyUnanswered(), ...servers]
    const { ref, message } = this.#refused ?? {}
    if (ref === undefined || message === undefined) return said
    return [...said, { code: 'pool-at-minimum', ref, text: message }]
  }

  /** What of its store or its lease does not answer. */
  #whyUnanswered(): readonly Why[] {
    const { ledger } = this.#prepared ?? {}
    const why = ledger === undefined ? this.#waits.why : ledger.why
    if (why === undefined) return []
    const [server = ledger?.servers[0]] = [...this.#active].map((one) => one.server)
    return [{ ...why, ref: server?.refs[0] ?? { pool: '*', member: '*' } }]
  }

  /** The ticket as of now; rejects where the roll could not begin. */
  async ticket(): Promise<Ticket> {
    await this.#ready
    if (this.#prepared !== undefined) return this.#prepared.ledger.ticket()
    throw this.#error() ?? new DrainableError('CONFLICT', 'the roll was given up before it began')
  }

  /** Begins no other server; those under way finish. */
  stop(): Promise<RollReport> {
    this.#stopped ??= 'asked'
    this.#wake()
    return this.done
  }

  /** Gives the roll up: the callers' functions are told, drains are let go. */
  async close(): Promise<void> {
    if (this.#ended !== undefined) return
    this.#abort.abort(new DrainableError('CONFLICT', 'the roll was closed'))
    this.#wake()
    await this.done
  }

  async #prepare(): Promise<void> {
    const { signal } = this.#abort
    try {
      signal.throwIfAborted()
      this.#prepared = await this.#spec.prepare(signal, (why) => (this.#said = why), this.#waits)
    } catch (thrown) {
      if (!signal.aborted) this.#stopped = this.#toError(thrown)
    }
  }

  async #main(): Promise<RollReport> {
    await this.#ready
    try {
      if (this.#prepared !== undefined) {
        this.#heed(this.#prepared.term?.signal)
        await this.#roll(this.#prepared)
      }
    } catch (thrown) {
      this.#stopped ??= this.#toError(thrown)
    }
    const report = this.#reportAs(this.#outcome())
    this.#ended = report
    await this.#letGo(report)
    this.#spec.emit({ type: 'roll-end', at: this.#stamp(), report })
    return report
  }

  /** A lease that is lost ends it as an abort does, and is said. */
  #heed(lost: AbortSignal | undefined): void {
    const give = (): void => {
      if (this.#abort.signal.aborted || this.#ended !== undefined) return
      this.#isLost = true
      this.#stopped = this.#toError(lost?.reason)
      this.#abort.abort(lost?.reason)
      this.#wake()
    }
    if (lost?.aborted === true) give()
    else lost?.addEventListener('abort', give, { once: true })
  }

  /** Begins servers as others come back, until there is none left or none may begin. */
  async #roll({ ledger }: Prepared): Promise<void> {
    const context = this.#contextOf(ledger)
    this.#all = ledger.servers.map((server) => new OneServer(server, context))
    this.#queue = inOrder(this.#all)
    await abortable(ledger.save(FIRST_ANSWER), this.#abort.signal)
    for (;;) {
      const woken = new Promise<void>((resolve) => (this.#wake = resolve))
      const begun = this.#beginSome()
      if (begun.length > 0) {
        const refs = begun.flatMap(({ server }) => server.refs)
        this.#spec.emit({ type: 'batch', at: this.#stamp(), refs })
        for (const one of begun) void this.#follow(one)
      }
      for (const one of this.#queue) one.hold()
      if (this.#active.size > 0) await woken
      else if (this.#queue.length > 0 && !this.#isOver()) this.#stopped = noPlaceLeft(ledger)
      else if (!this.#takeLater()) return
    }
  }

  #beginSome(): readonly OneServer[] {
    const begun: OneServer[] = []
    while (this.#mayBegin()) {
      const one = this.#queue.shift()
      if (one === undefined) break
      this.#active.add(one)
      begun.push(one)
    }
    return begun
  }

  #mayBegin(): boolean {
    const { ledger } = this.#prepared ?? {}
    if (ledger === undefined || this.#isOver() || this.#isBlocked) return false
    const { maxUnavailable } = ledger.plan
    const missing = this.#canariesMissing()
    const most = missing > 0 ? Math.min(missing, maxUnavailable) : maxUnavailable
    if (this.#active.size >= (this.#isAlone ? 1 : most)) return false
    const [next] = this.#queue
    if (next === undefined || isOut(next.server)) return true // it takes no place that it has not got
    return this.#active.size + this.#outBeside() < maxUnavailable
  }

  /** Servers that are out and not under way: those that failed, or wait for another try. */
  #outBeside(): number {
    return this.#all.filter((one) => isOut(one.server) && !this.#active.has(one)).length
  }

  #canariesMissing(): number {
    const done = this.#all.filter(({ server }) => server.state === 'done').length
    return Math.max(0, (this.#prepared?.ledger.plan.canary ?? 0) - done)
  }

  #isOver(): boolean {
    return this.#stopped !== undefined || this.#abort.signal.aborted
  }

  /** All others are through: those that were busy have their last try. */
  #takeLater(): boolean {
    if (this.#later.length === 0 || this.#isOver()) return false
    this.#queue = this.#later
    this.#later = []
    this.#isLastTry = true
    return true
  }

  async #follow(one: OneServer): Promise<void> {
    const wasCanary = this.#canariesMissing() > 0
    const end = await this.#runOne(one)
    this.#active.delete(one)
    this.#isBlocked = end === 'minimum' && this.#active.size > 0
    this.#isAlone = end === 'minimum' && this.#active.size === 0
    this.#taken.delete(one)
    if (end === 'minimum') this.#queue.unshift(one)
    if (end === 'postponed') {
      this.#later.push(one)
      this.#spec.emit(one.event('postponed'))
    }
    if (end === 'failed') this.#countFailure(one, wasCanary)
    this.#wake()
  }

  async #runOne(one: OneServer): Promise<ServerEnd> {
    if (one.server.state === 'acted') return one.run()
    const refused = await this.#askSpread(one)
    if (refused === undefined) return one.run()
    if (this.#abort.signal.aborted) return 'aborted'
    if (this.#active.size > 1) return 'minimum'
    return one.refuse(refused)
  }

  /** Whether enough servers are left, one server after another; where the policy says so, it is waited for. */
  #askSpread(one: OneServer): Promise<DrainableError | undefined> {
    const asked = this.#asking.then(() => this.#askNow(one))
    this.#asking = asked
    return asked
  }

  async #askNow(one: OneServer): Promise<DrainableError | undefined> {
    const { spread } = this.#prepared ?? {}
    const { server } = one
    const isOut = server.drain !== null && holdsAnything(server.drain)
    if (spread === undefined || isOut) return undefined
    const { data } = this.#spec.policy
    const until = this.#clock.now() + (data.timeout ?? Infinity)
    try {
      for (;;) {
        const others = [...this.#taken].map((other) => other.server)
        const refused = await spread.ask(server, others, this.#abort.signal)
        if (refused === undefined) this.#taken.add(one)
        this.#refused = refused
        const waits = data.onMinimum === 'wait' && this.#active.size === 1
        if (refused === undefined || !waits || this.#clock.now() >= until) return refused
        await pause(this.#clock, MINIMUM_PAUSE, this.#abort.signal)
      }
    } catch (thrown) {
      return this.#toError(thrown)
    }
  }

  /** A busy server has not failed: `act` was not called for it, and it serves again. */
  #countFailure({ server }: OneServer, wasCanary: boolean): void {
    const { ledger } = this.#prepared ?? {}
    if (ledger === undefined || server.state === 'postponed') return
    this.#failures += 1
    const { maxFailed } = ledger.plan
    const most = wasCanary ? 0 : (maxFailed ?? Infinity)
    if (this.#failures > most) this.#stopped ??= server.error ?? 'asked'
  }

  #contextOf(ledger: RollLedger): RollContext {
    const { provider, subject, policy, act, check, emit } = this.#spec
    const { term } = this.#prepared ?? {}
    return {
      provider,
      subject,
      policy: { ...policy, term },
      act,
      check,
      ledger,
      emit,
      signal: this.#abort.signal,
      hasOthers: () => this.#active.size > 1,
      mayPostpone: () => !this.#isLastTry,
    }
  }

  /** Drains that were held for the others' sake are let go; the ticket is what a resume needs. */
  async #letGo(report: RollReport): Promise<void> {
    await Promise.all(this.#all.map((one) => one.release()))
    if (this.#prepared === undefined) return
    const { ledger, leave, term } = this.#prepared
    const isDone = report.outcome === 'done'
    await (isDone ? ledger.drop() : ledger.save()).catch((cause: unknown) => {
      const [ref = { pool: '*', member: '*' }] = ledger.servers[0]?.refs ?? []
      const error = isDrainableError(cause, 'NOT_LEADER')
        ? cause
        : notKept(isDone ? 'deleted' : 'saved', cause)
      this.#spec.emit({ type: 'fault', at: this.#stamp(), ref, error })
    })
    await term?.release()
    leave()
  }

  #outcome(): RollReport['outcome'] {
    if (this.#abort.signal.aborted && !this.#isLost) return 'aborted'
    const { ledger } = this.#prepared ?? {}
    const isDone = ledger?.servers.every(({ state }) => state === 'done') ?? false
    return isDone ? 'done' : 'stopped'
  }

  #reportAs(outcome: RollReport['outcome']): RollReport {
    const elapsed = this.#clock.now() - this.#startedAt
    const { known = [] } = this.#spec
    const servers = this.#all.length > 0 ? this.#all : known.map(asInTicket)
    return reportRoll(outcome, servers, elapsed, this.#error())
  }

  #error(): DrainableError | undefined {
    return this.#stopped === 'asked' ? undefined : this.#stopped
  }

  #toError(thrown: unknown): DrainableError {
    return toDrainableError(thrown, this.#spec.provider.name, this.#spec.subject)
  }

  #stamp(): string {
    return isoOf(this.#clock)
  }
}
