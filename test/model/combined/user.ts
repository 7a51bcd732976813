import {
  combineProviders,
  drain,
  isDrainableError,
  ready,
  restore,
  resumeDrain,
  startDrain,
  stepDrain,
  watch,
  type Drain,
  type DrainableProvider,
  type DrainEvent,
  type DrainReport,
  type MemberRef,
  type Policy,
  type StepOptions,
  type Ticket,
  type TicketStore,
} from 'drainable'
import { inProcess } from '../user/host.js'
import type { UserProcess } from '../user/user-process.js'
import { WaitingList, words, type Promised } from '../user/waiting-list.js'
import { keyOf } from '../world/member.js'
import type { Delivery } from '../world/model-provider.js'
import type { Call, CombinedJudge } from './judge.js'
import { providerOn } from './judge.js'

/** What the verbs take as a target. */
export type Target = Parameters<typeof drain>[1]

/** One drain, as its ticket knows it: it may go on in several processes, one after the other. */
export interface Chain {
  readonly id: string
  readonly target: Target
  readonly keys: ReadonlySet<string>
  readonly policy: Policy
  /** Where its ticket is kept. `returned`: steps hand it back, and nothing else keeps it. */
  readonly kept: 'store' | 'caller' | 'returned'
  /** As JSON. */
  saved: string | undefined
  /** A drain by steps is under way, also between two of them. */
  stepping: boolean
  /** What its last undo said. */
  undone: DrainReport | undefined
}

/** A handle that its user still has. */
export interface Held {
  readonly call: Call
  readonly chain: Chain
  readonly handle: Drain
  readonly controller: AbortController
  /** Its `done`. */
  promised?: Promised
}

/** How long after its deadline a drain may end: a last look, two ordinary ones, a ticket, a removal. */
const AFTER_DEADLINE = 12_000
/** Health after maint, a call that hangs, a late change, and another process that takes it. */
const UNDO_LIMIT = 60_000
/** A step: its time, and first looks that hang. */
const STEP_LIMIT = 45_000
/** When it is asked whether the signal of an action has fired, in milliseconds. */
const ASKED_EVERY = 25

/** Those who use the library: in one process after the other, or in two at once. */
export class Users {
  readonly chains: Chain[] = []
  readonly held: Held[] = []
  readonly waiting: WaitingList
  readonly #judge: CombinedJudge
  readonly #combined = new Map<UserProcess, DrainableProvider>()
  readonly #endings: (() => void)[] = []

  constructor(judge: CombinedJudge) {
    this.#judge = judge
    this.waiting = new WaitingList(judge)
  }

  begin(process: UserProcess): void {
    process.providers = this.#judge.sides.map((side) => side.providerOf(process))
    const parts = this.#judge.sides.map((side) => [side.key, providerOn(process, side)] as const)
    const all = process.run(() =>
      combineProviders(Object.fromEntries(parts) as Record<string, DrainableProvider>),
    )
    this.#combined.set(process, all)
  }

  /** Ends the actions that are under way. */
  endActions(): void {
    for (const end of this.#endings.splice(0)) end()
  }

  #on(process: UserProcess): DrainableProvider {
    const all = this.#combined.get(process)
    if (all === undefined) throw new Error('no such process')
    return all
  }

  #tell(process: UserProcess, text: string): void {
    this.#judge.truth.tell(`${process.name}: ${text}`)
  }

  // --- tickets

  #store(chain: Chain, process: UserProcess): TicketStore {
    const others = new Map<string, unknown>()
    const alive = async <T>(value: T): Promise<T> =>
      process.alive ? value : new Promise<never>(() => undefined)
    return {
      get: (key) => {
        const own = chain.saved === undefined ? undefined : (JSON.parse(chain.saved) as unknown)
        return alive(key === chain.id ? own : others.get(key))
      },
      set: (key, value) => {
        if (!process.alive) return alive(true)
        if (key === chain.id) this.#keep(chain, value as Ticket)
        else others.set(key, value)
        return alive(true)
      },
      delete: (key) => {
        if (key === chain.id && process.alive) chain.saved = undefined
        return alive(others.delete(key))
      },
      keys: () => [],
    }
  }

  #keep(chain: Chain, ticket: Ticket): void {
    this.#judge.ticket(`the ticket of ${chain.id}`, ticket)
    chain.saved = JSON.stringify(ticket)
  }

  #tickets(chain: Chain, process: UserProcess): Pick<Policy, 'tickets' | 'onTicket'> {
    if (chain.kept === 'store') return { tickets: this.#store(chain, process) }
    return {
      onTicket: (ticket) => {
        if (process.alive) this.#keep(chain, ticket)
      },
    }
  }

  // --- calls

  #opens(verb: Call['verb'], process: UserProcess, chain: Chain): Call {
    const { id, keys, policy } = chain
    this.#tell(process, `${verb} ${id} ${JSON.stringify(chain.target)} ${JSON.stringify(policy)}`)
    return this.#judge.opens({ verb, id, process, keys, policy })
  }

  #hear(call: Call): (event: DrainEvent) => void {
    return (event) => {
      if (!call.process.alive) return
      const what = `${call.verb} ${call.id}`
      if (event.type === 'load') {
        this.#judge.names(what, [event.ref])
        this.#judge.why(what, event.why)
        return
      }
      if (event.type === 'end') {
        this.#tell(call.process, `${what} ends: ${event.outcome}`)
        return
      }
      this.#judge.names(what, [event.ref])
      const { type, ref } = event
      this.#tell(call.process, `${what} says ${type} of ${ref.balancer} ${keyOf(ref)}`)
      if (type === 'idle') this.#judge.saysIdle(call, ref)
    }
  }

  #policy(call: Call, chain: Chain, controller: AbortController): Policy {
    return {
      ...chain.policy,
      id: chain.id,
      clock: call.process.clock,
      signal: controller.signal,
      onEvent: this.#hear(call),
      ...this.#tickets(chain, call.process),
    }
  }

  #within(chain: Chain): number {
    return (chain.policy.timeout as number) + AFTER_DEADLINE
  }

  start(chain: Chain, process: UserProcess): void {
    this.chains.push(chain)
    const call = this.#opens('start', process, chain)
    const controller = new AbortController()
    const policy = this.#policy(call, chain, controller)
    const handle = process.run(() => startDrain(this.#on(process), chain.target, policy))
    this.#hold({ call, chain, handle, controller }, this.#within(chain))
  }

  resume(chain: Chain, process: UserProcess): void {
    if (chain.saved === undefined || this.#isBusy(chain, process)) return
    const ticket = JSON.parse(chain.saved) as Ticket
    const call = this.#opens('resume', process, chain)
    const controller = new AbortController()
    const options = {
      clock: process.clock,
      signal: controller.signal,
      onEvent: this.#hear(call),
      ...this.#tickets(chain, process),
    }
    const handle = process.run(() => resumeDrain(this.#on(process), ticket, options))
    this.#hold({ call, chain, handle, controller }, this.#within(chain))
  }

  /** Whether another process may still work on it, or a step or an undo of this one. */
  #isBusy({ id, stepping }: Chain, process: UserProcess): boolean {
    const live = this.#judge.calls.filter((call) => call.live && call.id === id)
    return stepping || live.some((call) => call.process !== process || call.verb === 'undo')
  }

  #hold(held: Held, within: number): void {
    const { call, chain, handle } = held
    this.held.push(held)
    held.promised = this.waiting.expect(
      `done of ${chain.id}`,
      call.process,
      within,
      handle.done,
      (report) => {
        this.#ended(call, report)
        this.#judge.why(`why of ${chain.id}`, handle.why())
      },
    )
  }

  #ended(call: Call, report: DrainReport): void {
    const what = `${call.verb} ${call.id}`
    this.#tell(call.process, `${what} is ${sayReport(report)}`)
    this.#judge.report(what, report)
    this.#judge.saysOutcome(call, report.outcome, report.members)
  }

  drain(chain: Chain, process: UserProcess, length: number): void {
    this.chains.push(chain)
    const call = this.#opens('drain', process, chain)
    const controller = new AbortController()
    const policy = this.#policy(call, chain, controller)
    const action = (report: DrainReport, { signal }: { signal: AbortSignal }): Promise<void> => {
      this.#tell(process, `the action of ${chain.id} begins`)
      this.#judge.count('actions')
      this.#ended(call, report)
      return this.#act(call, report, signal, length)
    }
    const promise = process.run(() => drain(this.#on(process), chain.target, policy, action))
    const close = (): void => {
      call.live = false
    }
    const failed = (error: unknown): void => {
      close()
      if (isDrainableError(error) && error.report !== undefined)
        this.#judge.report(`the error of ${chain.id}`, error.report)
    }
    const within = this.#within(chain) + length
    const what = `drain ${chain.id}`
    const promised = this.waiting.expect(what, process, within, promise, close, failed)
    this.#endings.push(() => {
      if (promised.settled) return
      promised.by = Math.max(promised.by, this.#judge.now + UNDO_LIMIT)
      process.run(() => controller.abort(new Error('the user goes home')))
    })
  }

  /** An action that goes on for a while, also after it was told: meanwhile it is seen whether it was told in time. */
  #act(call: Call, report: DrainReport, signal: AbortSignal, length: number): Promise<void> {
    const { process } = call
    const from = this.#judge.now
    const proved = report.members.filter((row) => row.outcome === 'idle' && row.verifiedIdle)
    const { promise, resolve } = Promise.withResolvers<undefined>()
    let isTold = false
    const ask = (): void => {
      if (!process.alive || isTold || this.#judge.now >= from + length) {
        if (process.alive) process.run(() => resolve(undefined))
        return
      }
      isTold = signal.aborted
      if (isTold) this.#judge.count('actions told')
      else for (const { ref } of proved) this.#judgeSignal(call, ref, from)
      void this.#clock(process)(() => ask(), ASKED_EVERY)
    }
    ask()
    return promise
  }

  #clock(process: UserProcess) {
    return (fn: () => void, ms: number) =>
      process.clock.setTimeout(() => inProcess(process.globals, fn), ms)
  }

  /** What a look has shown that came before now must have been told. */
  #judgeSignal(call: Call, ref: MemberRef, from: number): void {
    const side = this.#judge.side(ref.balancer)
    if (side === undefined) return
    const looks = this.#judge
      .looksAt(call, side, keyOf(ref))
      .filter(({ askedAt, at }) => askedAt >= from && at < this.#judge.now)
    const atWork = looks.find((look) => showsWork(look, keyOf(ref)))
    if (atWork !== undefined) {
      const at = Math.round(atWork.at)
      const what = `${side.key} ${keyOf(ref)} had work at ${at}`
      this.#judge.fault('signal', `the action of ${call.id} goes on although ${what}`)
    }
    const { setter, own } = side.truth.member(keyOf(ref))
    const isOpened = own === 'ready' && setter.by === 'operator' && side.reloadedAt < call.startedAt
    if (!isOpened || call.policy.onOverrule === 'reapply') return
    const seen = looks.filter(({ readAt }) => readAt > setter.at)
    if (seen.length > 2)
      this.#judge.fault('signal', `the action of ${call.id} goes on although ${side.key} is open`)
  }

  watch(chain: Chain, process: UserProcess, length: number): void {
    const call = this.#opens('watch', process, chain)
    const options = { clock: process.clock, onEvent: this.#hear(call) }
    const handle = process.run(() => watch(this.#on(process), chain.target, options))
    this.#clock(process)(() => {
      void handle.close()
      this.waiting.expect('done of a watch', process, 15_000, handle.done, (report) => {
        call.live = false
        this.#judge.report('a watch', report)
      })
    }, length)
  }

  ready(chain: Chain, process: UserProcess): void {
    const call = this.#opens('ready', process, chain)
    const promise = process.run(() =>
      ready(this.#on(process), chain.target, { clock: process.clock }),
    )
    const close = (): void => {
      call.live = false
    }
    this.waiting.expect(
      'ready',
      process,
      UNDO_LIMIT,
      promise,
      ({ members }) => {
        close()
        const refs = members.map(({ ref }) => ref)
        this.#judge.names('ready', refs)
      },
      close,
    )
  }

  // --- steps

  steps(chain: Chain, process: UserProcess): void {
    if (!this.chains.includes(chain)) this.chains.push(chain)
    else if (this.#isBusy(chain, process)) return
    chain.stepping = true
    this.#step(chain, process, 0)
  }

  #step(chain: Chain, process: UserProcess, failed: number): void {
    if (!process.alive || !chain.stepping) {
      chain.stepping = false
      return
    }
    const call = this.#opens('step', process, chain)
    const { saved, kept } = chain
    const options: StepOptions = {
      clock: process.clock,
      onEvent: this.#hear(call),
      ...(kept === 'returned' ? {} : this.#tickets(chain, process)),
    }
    const from =
      saved === undefined
        ? { target: chain.target, policy: { ...chain.policy, id: chain.id } }
        : (JSON.parse(saved) as Ticket)
    const promise = process.run(() => stepDrain(this.#on(process), from, options))
    const again = (ms: number, failures: number): void => {
      const wait = Math.max(1, Math.min(ms, 1_000))
      this.#clock(process)(() => this.#step(chain, process, failures), wait)
    }
    this.waiting.expect(
      `step of ${chain.id}`,
      process,
      STEP_LIMIT,
      promise,
      ({ ticket, outcome, why, againIn }) => {
        call.live = false
        this.#keep(chain, ticket)
        this.#judge.why(`step of ${chain.id}`, why)
        this.#tell(process, `step of ${chain.id}: ${outcome ?? `again in ${againIn}`}`)
        if (outcome === undefined) again(againIn, 0)
        else {
          chain.stepping = false
          this.#judge.saysOutcome(call, outcome, this.#rowsOf(ticket))
        }
      },
      (error) => {
        call.live = false
        this.#tell(process, `step of ${chain.id} failed: ${words(error)}`)
        if (failed < 3) again(100, failed + 1)
        else chain.stepping = false
      },
    )
  }

  /** A ticket does not say whether idle is verified: it is where arrivals are counted and nothing was lost. */
  #rowsOf({ members }: Ticket) {
    return members.map(({ ref, outcome, lost }) => ({
      ref,
      outcome: outcome ?? ('aborted' as const),
      verifiedIdle:
        lost.length === 0 && this.#judge.side(ref.balancer)?.truth.product.countsArrivals === true,
    }))
  }

  // --- letting go

  /** What a drain has promised comes after its undo now. */
  #afterUndo({ promised }: Held): void {
    if (promised !== undefined) promised.by = Math.max(promised.by, this.#judge.now + UNDO_LIMIT)
  }

  restoreHandle(held: Held): void {
    const { call, chain, handle } = held
    this.#drop(held)
    this.#afterUndo(held)
    const undo = this.#opens('undo', call.process, chain)
    const promise = call.process.run(() => handle.restore())
    const what = `restore() of ${chain.id}`
    this.waiting.expect(what, call.process, UNDO_LIMIT, promise, (report) => {
      this.#undone(undo, chain, report)
      call.live = false
    })
  }

  #undone(undo: Call, chain: Chain, report: DrainReport): void {
    undo.live = false
    chain.undone = report
    this.#tell(undo.process, `undo of ${chain.id}: ${sayReport(report)}`)
    this.#judge.report(`undo of ${chain.id}`, report)
    const others = this.chains.filter((other) => other !== chain)
    for (const { ref, outcome, why } of report.members) {
      if (outcome !== 'restored' || why.some(({ code }) => code === 'held')) continue
      const key = `${ref.balancer} ${keyOf(ref)}`
      if (others.some(({ keys }) => keys.has(key))) continue
      this.#judge.count('restored')
      if (this.#judge.side(ref.balancer)?.isOurs(ref) === true)
        this.#judge.fault('restored', `${key} is called restored by ${chain.id}, and is held`)
    }
  }

  restoreTicket(chain: Chain, process: UserProcess): void {
    if (chain.saved === undefined || this.#isBusy(chain, process)) return
    const ticket = JSON.parse(chain.saved) as Ticket
    const undo = this.#opens('undo', process, chain)
    const options = {
      clock: process.clock,
      ...(chain.kept === 'store' ? { tickets: this.#store(chain, process) } : {}),
    }
    const promise = process.run(() => restore(this.#on(process), ticket, options))
    this.waiting.expect(
      `restore(ticket) of ${chain.id}`,
      process,
      UNDO_LIMIT,
      promise,
      (report) => this.#undone(undo, chain, report),
      (error) => {
        undo.live = false
        this.#judge.fault('restore', `restore(ticket) of ${chain.id}: ${words(error)}`)
      },
    )
  }

  release(held: Held): void {
    const { call, chain, handle } = held
    this.#drop(held)
    this.#tell(call.process, `release of ${chain.id}`)
    const promise = call.process.run(() => handle.release())
    this.waiting.expect(`release of ${chain.id}`, call.process, 15_000, promise, () => {
      call.live = false
    })
  }

  abort(held: Held): void {
    const { call, chain, controller } = held
    if (chain.policy.onAbort === 'restore') this.#afterUndo(held)
    this.#tell(call.process, `abort of ${chain.id}`)
    call.process.run(() => controller.abort(new Error('the user aborts')))
  }

  peek({ call, chain, handle }: Held): void {
    const what = `${call.verb} ${chain.id}`
    this.#judge.report(what, handle.report())
    this.#judge.why(what, handle.why())
    void handle.ticket.then((ticket) => {
      if (call.process.alive) this.#judge.ticket(what, ticket)
    })
  }

  crash(process: UserProcess): void {
    this.#tell(process, 'is killed')
    process.die()
    this.#judge.crashed(process)
    for (const held of [...this.held]) if (held.call.process === process) this.#drop(held)
    for (const chain of this.chains) {
      const last = this.#judge.calls.findLast(({ id }) => id === chain.id)
      if (last?.process === process) chain.stepping = false
    }
  }

  #drop(held: Held): void {
    this.held.splice(this.held.indexOf(held), 1)
  }
}

function showsWork({ snapshot }: Delivery, key: string): boolean {
  const reading = snapshot.readings.find(({ ref }) => keyOf(ref) === key)
  return (reading?.scopes ?? []).some(
    ({ state, active, queued }) => state === 'read' && active + queued > 0,
  )
}

function sayReport(report: DrainReport): string {
  const rows = report.members.map(
    ({ ref, outcome, verifiedIdle, error }) =>
      `${ref.balancer} ${keyOf(ref)} ${outcome}${verifiedIdle ? ' verified' : ''}${error === undefined ? '' : ` (${words(error)})`}`,
  )
  const error = report.error === undefined ? '' : ` (${words(report.error)})`
  return `${report.outcome}${error}: ${rows.join(', ')}`
}
