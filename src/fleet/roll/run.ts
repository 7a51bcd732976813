import { abortable, Waits } from '../../provider/abort.js'
import { isoOf, pause, type Clock } from '../../provider/clock.js'
import type { MemberRef } from '../../provider/contract.js'
import { DrainableError, isDrainableError, toDrainableError } from '../../provider/error.js'
import type { RollReport, Why } from '../../provider/report.js'
import { newHead } from '../../core/calls/drain-run.js'
import type { Hub } from '../../core/event-hub.js'
import { FIRST_ANSWER, notKept } from '../../core/tickets/calls.js'
import type { Ticket } from '../../core/tickets/ticket.js'
import { Leadership, type Term } from '../lease/leadership.js'
import type { RollEvent } from './events.js'
import { holdsAnything, inOrder, isOut, noPlaceLeft } from './left.js'
import { RollLedger, type ServerState } from './ledger.js'
import { enterRoll } from './live.js'
import { OneServer, type ServerEnd } from './one-server.js'
import { asInTicket, reportRoll } from './report.js'
import type { RollContext, RollSpec } from './roll-spec.js'
import { Spread } from './spread.js'

/** How often it is asked again whether a pool has enough servers, in milliseconds. */
const MINIMUM_PAUSE = 1_000

/** One roll over several servers. */
export class RollRun {
  readonly done: Promise<RollReport>
  readonly #spec: RollSpec
  readonly #hub: Hub<RollEvent>
  readonly #clock: Clock
  readonly #startedAt: number
  readonly #giveUp = new AbortController()
  /** Fires when it is given up, or the caller's signal does. */
  readonly #signal: AbortSignal
  #all: readonly OneServer[] = []
  /** Servers that have not begun, the next one first. */
  #queue: OneServer[] = []
  #isLastTry = false
  readonly #active = new Set<OneServer>()
  /** Known once it is prepared: before that nothing is changed. */
  #ledger: RollLedger | undefined
  #spread: Spread | undefined
  /** The lease under which it rolls. */
  #term: Term | undefined
  /** Lets another roll of the same ticket begin. */
  #leave: () => void = () => undefined
  /** What it waits for before it begins, or before its next server does. */
  #said: readonly Why[] = []
  readonly #waits: Waits
  readonly #ready: Promise<void>
  /** Why no other server begins. */
  #stopped: DrainableError | 'asked' | undefined
  /**
   * How many may be under way because the last one found no place at the floor: its next try waits until another one is back.
   * Where several that began at once left each other no place, the next one begins alone.
   */
  #most = Infinity
  #failures = 0
  #wake: () => void = () => undefined
  #ended: RollReport | undefined

  constructor(spec: RollSpec, hub: Hub<RollEvent>) {
    this.#hub = hub
    this.#spec = spec
    this.#clock = spec.policy.clock
    this.#startedAt = this.#clock.now()
    this.#waits = new Waits(this.#clock)
    const { signal } = spec.policy
    const given = signal === undefined ? [] : [signal]
    this.#signal = AbortSignal.any([this.#giveUp.signal, ...given])
    this.#ready = this.#prepare()
    this.done = this.#main()
  }

  /** How it goes at the moment. */
  report(): RollReport {
    if (this.#ended !== undefined) return this.#ended
    return this.#reportAs(this.#outcome())
  }

  /** What the servers under way wait for, and why the next one, or all of it, does not begin. */
  why(): readonly Why[] {
    if (this.#ended !== undefined) return []
    const servers = [...this.#active].flatMap((one) => one.why())
    return [...this.#whyUnanswered(), ...servers, ...this.#said]
  }

  /** What of its store or its lease does not answer. */
  #whyUnanswered(): readonly Why[] {
    const ledger = this.#ledger
    const why = ledger === undefined ? this.#waits.why : ledger.why
    if (why === undefined) return []
    const [server = ledger?.servers[0]] = [...this.#active].map((one) => one.server)
    return [{ ...why, ref: server?.refs[0] ?? { pool: '*', member: '*' } }]
  }

  /** The ticket as of now; rejects where the roll could not begin. */
  async ticket(): Promise<Ticket> {
    await this.#ready
    if (this.#ledger !== undefined) return this.#ledger.ticket()
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
    this.#giveUp.abort(new DrainableError('CONFLICT', 'the roll was closed'))
    this.#wake()
    await this.done
  }

  /** What it takes before that is given back at its end, whatever became of it. */
  async #prepare(): Promise<void> {
    const signal = this.#signal
    const { provider, subject, id, known, find, startedAt } = this.#spec
    const waits = this.#waits
    try {
      signal.throwIfAborted()
      const { leave, take } = enterRoll(provider, id, subject)
      this.#leave = leave
      take(known?.flatMap(openRefs) ?? [])
      this.#term = await this.#lead(signal)
      const say = (why: readonly Why[]): void => void (this.#said = why)
      const { plan, servers } = await find({ signal, waits, term: this.#term, take, say })
      const policy = { ...this.#spec.policy, id, term: this.#term }
      say([])
      const { clock, data, tickets: store, onTicket } = policy
      const begun = startedAt === undefined ? {} : { startedAt }
      const head = { ...newHead(policy, provider), deadline: null, ...begun }
      this.#spread = new Spread(provider, clock, data.keepReady, servers)
      this.#ledger = new RollLedger(head, { plan, servers }, { store, onTicket }, clock, waits)
    } catch (thrown) {
      if (!signal.aborted) this.#stopped = this.#toError(thrown)
    }
  }

  /** Takes the lease, if there is one; a resumed roll waits for that of a process that died. */
  async #lead(signal: AbortSignal): Promise<Term | undefined> {
    const { lease: wish, policy, subject, known } = this.#spec
    if (wish === undefined) return undefined
    const { lease, ttl } = wish
    const { clock, owner } = policy
    const waits = this.#waits
    const leadership = new Leadership({ lease, ttl, clock, owner, subject, waits })
    const [ref = { pool: '*', member: '*' }] = known?.flatMap(openRefs) ?? []
    const limit = known === undefined ? 0 : ttl + leadership.retry
    return leadership.acquireWithin(limit, signal, (refusal, until) => {
      const text = `${refusal.message}; the roll waits for it until ${until}`
      this.#said = [{ code: 'lease', ref, text }]
    })
  }

  async #main(): Promise<RollReport> {
    await this.#ready
    try {
      if (this.#ledger !== undefined) {
        this.#heed(this.#term?.signal)
        await this.#roll(this.#ledger)
      }
    } catch (thrown) {
      this.#stopped ??= this.#toError(thrown)
    }
    const report = this.#reportAs(this.#outcome())
    this.#ended = report
    await this.#letGo(report)
    this.#hub.emit({ type: 'roll-end', at: this.#stamp(), report })
    return report
  }

  /** A lease that is lost ends it as an abort does, and is said. */
  #heed(lost: AbortSignal | undefined): void {
    const give = (): void => {
      if (this.#signal.aborted || this.#ended !== undefined) return
      this.#stopped = this.#toError(lost?.reason)
      this.#giveUp.abort(lost?.reason)
      this.#wake()
    }
    if (lost?.aborted === true) give()
    else lost?.addEventListener('abort', give, { once: true })
  }

  /** Begins servers as others come back, until there is none left or none may begin. */
  async #roll(ledger: RollLedger): Promise<void> {
    const context = this.#contextOf(ledger)
    this.#all = ledger.servers.map((server) => new OneServer(server, context))
    this.#queue = inOrder(this.#all)
    await abortable(ledger.save(FIRST_ANSWER), this.#signal)
    for (;;) {
      const woken = new Promise<void>((resolve) => (this.#wake = resolve))
      const begun = this.#beginSome()
      if (begun.length > 0) {
        const refs = begun.flatMap(({ server }) => server.refs)
        this.#hub.emit({ type: 'batch', at: this.#stamp(), refs })
        for (const one of begun) void this.#follow(one)
      }
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
    const ledger = this.#ledger
    if (ledger === undefined || this.#isOver()) return false
    const [next] = this.#queue
    // What an earlier process has left out takes no place that it has not got, and is held by nothing before it begins.
    if (next !== undefined && isOut(next.server)) return true
    const { maxUnavailable } = ledger.plan
    const missing = this.#canariesMissing()
    const most = missing > 0 ? Math.min(missing, maxUnavailable) : maxUnavailable
    if (this.#active.size >= Math.min(this.#most, most)) return false
    return this.#active.size + this.#outBeside() < maxUnavailable
  }

  /** Servers that are out and not under way: those that failed, or wait for another try. */
  #outBeside(): number {
    return this.#all.filter((one) => isOut(one.server) && !this.#active.has(one)).length
  }

  #canariesMissing(): number {
    const done = this.#all.filter(({ server }) => server.state === 'done').length
    return Math.max(0, (this.#ledger?.plan.canary ?? 0) - done)
  }

  #isOver(): boolean {
    return this.#stopped !== undefined || this.#signal.aborted
  }

  /** All others are through: those that were busy have their last try. */
  #takeLater(): boolean {
    if (this.#isLastTry || this.#isOver()) return false
    this.#isLastTry = true
    this.#queue = this.#all.filter(({ server }) => server.state === 'postponed')
    return this.#queue.length > 0
  }

  async #follow(one: OneServer): Promise<void> {
    const wasCanary = this.#canariesMissing() > 0
    const end = await this.#runOne(one)
    this.#active.delete(one)
    this.#most = end === 'minimum' ? Math.max(1, this.#active.size) : Infinity
    if (end === 'minimum') this.#queue.unshift(one)
    // It has not failed: `act` was not called for it, and it serves again.
    if (end === 'postponed' && !this.#isLastTry) this.#hub.emit(one.event('postponed'))
    if (end === 'failed') this.#countFailure(one, wasCanary)
    this.#wake()
  }

  async #runOne(one: OneServer): Promise<ServerEnd> {
    if (one.server.state === 'acted') return one.run()
    const refused = await this.#askSpread(one)
    if (refused === undefined) return one.run()
    if (this.#signal.aborted) return 'aborted'
    if (this.#active.size > 1) return 'minimum'
    return one.fail(refused)
  }

  /**
   * Whether enough servers are left without it and those that began before it; where the policy says so, it is waited for. One
   * that is out takes no place.
   */
  async #askSpread(one: OneServer): Promise<DrainableError | undefined> {
    if (holdsAnything(one.server)) return undefined
    const { clock, data } = this.#spec.policy
    const signal = this.#signal
    const until = clock.now() + (data.timeout ?? Infinity)
    try {
      for (;;) {
        const begun = [...this.#active].map(({ server }) => server)
        const before = begun.slice(0, begun.indexOf(one.server))
        const refused = await this.#spread?.ask(one.server, before, signal)
        const { ref, message: text = '' } = refused ?? {}
        this.#said = ref === undefined ? [] : [{ code: 'pool-at-minimum', ref, text }]
        const waits = data.onMinimum === 'wait' && this.#active.size === 1 && clock.now() < until
        if (refused === undefined || !waits) return refused
        await pause(clock, MINIMUM_PAUSE, signal)
      }
    } catch (thrown) {
      return this.#toError(thrown)
    }
  }

  #countFailure({ server }: OneServer, wasCanary: boolean): void {
    const ledger = this.#ledger
    if (ledger === undefined) return
    this.#failures += 1
    const { maxFailed } = ledger.plan
    const most = wasCanary ? 0 : (maxFailed ?? Infinity)
    if (this.#failures > most) this.#stopped ??= server.error ?? 'asked'
  }

  #contextOf(ledger: RollLedger): RollContext {
    const { provider, subject, policy, act, check } = this.#spec
    return {
      provider,
      subject,
      policy: { ...policy, term: this.#term },
      act,
      check,
      ledger,
      emit: (event) => this.#hub.emit(event),
      signal: this.#signal,
      hasOthers: () => this.#active.size > 1,
    }
  }

  /** Drains that were held for the others' sake are let go; the ticket is what a resume needs. */
  async #letGo(report: RollReport): Promise<void> {
    await Promise.all(this.#all.map((one) => one.release()))
    if (this.#ledger !== undefined) await this.#keep(this.#ledger, report.outcome === 'done')
    await this.#term?.release()
    this.#leave()
  }

  async #keep(ledger: RollLedger, isDone: boolean): Promise<void> {
    try {
      await (isDone ? ledger.drop() : ledger.save())
    } catch (cause) {
      const [ref = { pool: '*', member: '*' }] = ledger.servers[0]?.refs ?? []
      const error = isDrainableError(cause, 'NOT_LEADER')
        ? cause
        : notKept(isDone ? 'deleted' : 'saved', cause)
      this.#hub.emit({ type: 'fault', at: this.#stamp(), ref, error })
    }
  }

  #outcome(): RollReport['outcome'] {
    const signal = this.#signal
    const isLost = signal.aborted && signal.reason === this.#term?.signal.reason
    if (signal.aborted && !isLost) return 'aborted'
    const ledger = this.#ledger
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

function openRefs({ refs, state }: ServerState): readonly MemberRef[] {
  return state === 'done' ? [] : refs
}
