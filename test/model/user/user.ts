import {
  ready,
  restore,
  resumeDrain,
  startDrain,
  stepDrain,
  watch,
  type Drain,
  type DrainEvent,
  type DrainReport,
  type MemberRef,
  type Policy,
  type Ticket,
  type TicketStore,
} from 'drainable'
import { drainWith, inForceOf, saysRestored } from './compat.js'
import type { Call, Chain } from './drain-call.js'
import { judgeAction } from '../judge/judge-idle.js'
import type { Judge } from '../judge/judge.js'
import type { ModelProvider } from '../world/model-provider.js'
import { randomPolicy } from './random-policy.js'
import type { Random } from '../random.js'
import type { UserProcess } from './user-process.js'
import { keyOf } from '../world/member.js'
import { words, type Promised, type WaitingList } from './waiting-list.js'

/** A handle that its user still has. */
export interface Held {
  readonly call: Call
  readonly chain: Chain
  readonly handle: Drain
  readonly controller: AbortController
  abortedAt: number
  /** Its `done` and `inForce`. */
  readonly promised: Promised[]
  done: boolean
}

/** Own limits of the library beside a deadline: a last look, a cut, a removal, the store; generous. */
const SLACK = 25_000
/** How long after an undo its `done` may still be on its way, in milliseconds. */
const AFTER_UNDO = 3_000
/** Health after maint, a call that hangs, a late change. */
const UNDO_LIMIT = 90_000

/** A person or a script at work in one user process. */
export class User {
  readonly process: UserProcess
  readonly #judge: Judge
  readonly #waiting: WaitingList
  readonly #random: Random
  readonly #chains: Chain[]
  readonly held: Held[] = []
  /** What ends the drains with an action that are under way. */
  readonly actions: (() => void)[] = []
  /** Drains it works on between calls, or did. */
  readonly worksOn: Chain[] = []
  readonly #newProvider: () => ModelProvider
  #stepping = true
  /** Who makes the next step of a drain, where it is another process. */
  handsOver: (() => User | undefined) | undefined

  constructor(
    process: UserProcess,
    judge: Judge,
    waiting: WaitingList,
    random: Random,
    chains: Chain[],
    newProvider: () => ModelProvider,
  ) {
    this.process = process
    this.#judge = judge
    this.#waiting = waiting
    this.#random = random
    this.#chains = chains
    this.#newProvider = newProvider
  }

  get #provider(): ModelProvider {
    return this.#random.pick(this.process.providers)
  }

  #tell(text: string): void {
    this.#judge.truth.tell(`${this.process.name}: ${text}`)
  }

  #members(most: number): MemberRef[] {
    const pool = this.#random.pick([...this.#judge.truth.pools.keys()])
    const names = this.#judge.truth.pools.get(pool) ?? []
    return this.#random.some(names, most).map((member) => ({ pool, member }))
  }

  #newChain(refs: readonly MemberRef[]): Chain {
    const chain: Chain = {
      id: `d${this.#chains.length + 1}`,
      keys: new Set(refs.map(keyOf)),
      wish: randomPolicy(this.#random, this.#judge.truth.product),
      saved: undefined,
      savedAt: -Infinity,
      held: new Set(),
      announced: [],
      busy: false,
      crashed: false,
    }
    this.#chains.push(chain)
    return chain
  }

  /** Where tickets are kept: survives the process. */
  #tickets(chain: Chain): Pick<Policy, 'tickets' | 'onTicket'> {
    const { process } = this
    const save = async (ticket: unknown): Promise<void> => {
      const early = this.#random.chance(0.5)
      const text = JSON.stringify(ticket)
      const keep = (): void => {
        chain.saved = text
        chain.savedAt = asOf
      }
      const asOf = this.#judge.now
      if (early && process.alive) keep()
      const wait = this.#random.pick([0, 0, 3])
      if (wait > 0)
        await new Promise<void>((resolve) => this.#judge.truth.clock.setTimeout(resolve, wait))
      if (!process.alive) return new Promise(() => undefined)
      if (!early) keep()
    }
    if (this.#random.chance(0.5)) return { onTicket: save }
    const others = new Map<string, unknown>()
    const tickets: TicketStore = {
      get: async (key) =>
        key === chain.id
          ? chain.saved === undefined
            ? undefined
            : (JSON.parse(chain.saved) as unknown)
          : others.get(key),
      set: async (key, value) => {
        if (key === chain.id) await save(value)
        else others.set(key, value)
        return true
      },
      delete: async (key) => {
        if (key !== chain.id) return others.delete(key)
        if (!process.alive) return new Promise(() => undefined)
        this.#judge.ticketDropped(chain)
        chain.saved = undefined
        return true
      },
    }
    return { tickets }
  }

  #listen(call: Call, askedAt = call.startedAt): (event: DrainEvent) => void {
    return (event) => {
      this.#judge.truth.figures.add(`event: ${event.type}`)
      if (event.type === 'load') return
      if (event.type === 'end') {
        if (call.verb !== 'watch')
          for (const member of event.report.members) this.#judge.saysEnded(call, member)
        return
      }
      const key = keyOf(event.ref)
      this.#tell(
        `${call.verb} ${call.chain?.id ?? ''} says ${event.type} of ${key}${detail(event)}`,
      )
      if (event.type === 'idle' && call.verb !== 'watch')
        this.#judge.saysIdle(call, key, event.proof, askedAt)
      // one that found it drained has asked the floor for nothing, and holds it by nobody's leave but theirs
      const draining = event.type === 'phase' && event.to === 'draining'
      if (draining && call.wishesDown.has(key)) call.holds.add(key)
      if (event.type === 'fault') {
        const { code, retryable } = event.error
        if (code === 'POOL_AT_MINIMUM' && call.holds.has(key)) call.yields.add(key)
        if (code === 'REJECTED' && !retryable) call.refused.add(key)
      }
      // overruled by another call of this process, or opened by its own undo
      const opened = event.type === 'phase' && event.to === 'active'
      const overruled = event.type === 'overruled' && !event.reset
      if (opened || overruled || event.type === 'removed') this.#judge.letGo(call, key)
      if (overruled && call.verb !== 'stepDrain') call.over.add(key)
    }
  }

  #policy(chain: Chain, call: Call, controller: AbortController): Policy {
    return {
      ...chain.wish.policy,
      id: chain.id,
      clock: this.process.clock,
      signal: controller.signal,
      onEvent: this.#listen(call),
      ...this.#tickets(chain),
    }
  }

  // --- the verbs ---

  startDrain(): void {
    const refs = this.#members(2)
    const chain = this.#newChain(refs)
    const provider = this.#provider
    const call = this.#judge.opens('startDrain', this.process, provider, chain.keys, chain)
    const controller = new AbortController()
    this.#tell(`startDrain ${chain.id} ${describe(chain)}`)
    const handle = this.process.run(() =>
      startDrain(provider, refs, this.#policy(chain, call, controller)),
    )
    this.#hold(call, chain, handle, controller)
  }

  #hold(call: Call, chain: Chain, handle: Drain, controller: AbortController): void {
    const held: Held = {
      call,
      chain,
      handle,
      controller,
      abortedAt: Infinity,
      promised: [],
      done: false,
    }
    this.held.push(held)
    const within = chain.wish.timeout + SLACK
    const done = this.#waiting.expect(
      `done of ${chain.id}`,
      this.process,
      within,
      handle.done,
      (report) => {
        held.done = true
        this.#tell(`${chain.id} is ${sayReport(report)}`)
        for (const member of report.members) this.#judge.isOver(call, member)
        // it could not start, or it was given up as a whole
        if (report.members.length === 0 || held.abortedAt !== Infinity)
          for (const key of call.keys) call.over.add(key)
        this.#afterAbort(held, report)
      },
    )
    held.promised.push(done)
    const inForce = inForceOf(handle)
    if (inForce === undefined) return
    held.promised.push(
      this.#waiting.expect(
        `inForce of ${chain.id}`,
        this.process,
        within,
        inForce,
        () => undefined,
      ),
    )
  }

  /** With `onAbort: 'restore'` a member that ended as aborted without an error is as it was. */
  #afterAbort(held: Held, report: DrainReport): void {
    const { abortedAt, chain } = held
    if (abortedAt === Infinity || chain.wish.policy.onAbort !== 'restore') return
    const mine = report.members.filter(({ outcome }) => outcome === 'aborted')
    const restored = mine.filter(({ error }) => error === undefined).map(({ ref }) => keyOf(ref))
    this.#judge.saysUndone({
      chain,
      process: this.process,
      startedAt: abortedAt,
      settledAt: this.#judge.now,
      keys: mine.map(({ ref }) => keyOf(ref)),
      restored: new Set(restored),
      calm: false,
    })
  }

  drainWithAction(): void {
    const refs = this.#members(2)
    const chain = this.#newChain(refs)
    const provider = this.#provider
    const call = this.#judge.opens('drain', this.process, provider, chain.keys, chain)
    const controller = new AbortController()
    const length = this.#random.int(1, 3_000)
    this.#tell(`drain ${chain.id} ${describe(chain)} with an action of ${length} ms`)
    const action = (
      report: DrainReport,
      given: { readonly signal?: AbortSignal },
    ): Promise<string> => {
      this.#judge.truth.figures.add('actions begun')
      this.#tell(`the action of ${chain.id} begins: ${sayReport(report)}`)
      const proved = report.members.filter(({ outcome }) => outcome === 'idle')
      judgeAction(this.#judge, call, new Set(proved.map(({ ref }) => keyOf(ref))))
      return new Promise((resolve, reject) => {
        this.#judge.truth.clock.setTimeout(() => this.process.run(() => resolve('done')), length)
        const stop = (): void => {
          this.#judge.truth.figures.add('actions told to stop')
          this.#tell(`the action of ${chain.id} is told: ${words(given.signal?.reason)}`)
          reject(given.signal?.reason)
        }
        given.signal?.addEventListener('abort', stop, { once: true })
      })
    }
    const promise = this.process.run(() =>
      drainWith(provider, refs, this.#policy(chain, call, controller), action),
    )
    const close = (): void => this.#judge.closes(call)
    const within = chain.wish.timeout + length + SLACK
    const what = `drain ${chain.id}`
    const promised = this.#waiting.expect(what, this.process, within, promise, close, close)
    this.actions.push(() => this.#giveUp(call, [promised], controller, 'the user goes home'))
  }

  ready(): void {
    const refs = this.#members(2)
    const keys = new Set(refs.map(keyOf))
    const provider = this.#provider
    const call = this.#judge.opens('ready', this.process, provider, keys)
    this.#tell(`ready ${[...keys].join(' ')}`)
    const promise = this.process.run(() => ready(provider, refs, { clock: this.process.clock }))
    const settled = (restored: ReadonlySet<string>): void => {
      this.#judge.saysUndone({
        chain: undefined,
        process: this.process,
        startedAt: call.startedAt,
        settledAt: this.#judge.now,
        keys: [...keys],
        restored,
        calm: false,
      })
      this.#judge.closes(call)
    }
    this.#waiting.expect(
      `ready of call ${call.number}`,
      this.process,
      UNDO_LIMIT,
      promise,
      () => settled(keys),
      () => settled(new Set()),
    )
  }

  /** Undoes by the handle. */
  restoreHandle(held: Held): void {
    const { chain, handle, call } = held
    this.held.splice(this.held.indexOf(held), 1)
    const { process } = this
    this.#afterUndo(held.promised)
    const undo = this.#judge.opens('undo', process, call.provider, chain.keys, chain)
    this.#tell(`restore() of the handle of ${chain.id}`)
    chain.busy = true
    this.worksOn.push(chain)
    const promise = this.process.run(() => handle.restore())
    const close = (): void => {
      this.#judge.closes(undo)
      this.#judge.closes(call)
      this.#judge.truth.clock.setTimeout(() => {
        if (!process.alive) return
        if (!held.done) this.#judge.fault('silent end', `done of ${chain.id}, long after its undo`)
        this.#release(handle, chain)
        chain.busy = false
      }, AFTER_UNDO)
    }
    this.#waiting.expect(
      `handle.restore of ${chain.id}`,
      process,
      UNDO_LIMIT,
      promise,
      (report) => {
        this.#undone(chain, undo, report, false)
        close()
      },
      (error) => {
        this.#judge.fault('rejection', `handle.restore of ${chain.id} rejected: ${words(error)}`)
        close()
      },
    )
  }

  #undone(chain: Chain, undo: Call, report: DrainReport, calm: boolean): void {
    this.#tell(`${chain.id} is undone: ${sayReport(report)}`)
    const restored = report.members.filter(saysRestored).map(({ ref }) => keyOf(ref))
    this.#judge.saysUndone({
      chain,
      process: this.process,
      startedAt: undo.startedAt,
      settledAt: this.#judge.now,
      keys: [...chain.keys],
      restored: new Set(restored),
      report,
      calm,
    })
  }

  /** Undoes by the ticket last saved. */
  restoreTicket(chain: Chain, calm = false): void {
    const saved = chain.saved
    if (saved === undefined) return
    const provider = this.#provider
    const undo = this.#judge.opens('undo', this.process, provider, chain.keys, chain)
    undo.ticketAt = chain.savedAt
    this.#tell(`restore(ticket) of ${chain.id}`)
    const { tickets } = this.#tickets(chain)
    const promise = this.process.run(() =>
      restore(provider, JSON.parse(saved) as Ticket, {
        clock: this.process.clock,
        ...(tickets === undefined ? {} : { tickets }),
      }),
    )
    this.#waiting.expect(
      `restore(ticket) of ${chain.id}`,
      this.process,
      UNDO_LIMIT,
      promise,
      (report) => {
        this.#undone(chain, undo, report, calm)
        this.#judge.closes(undo)
      },
      () => this.#judge.closes(undo),
    )
  }

  resume(chain: Chain): void {
    const { saved } = chain
    if (saved === undefined) return
    const provider = this.#provider
    const call = this.#judge.opens('resumeDrain', this.process, provider, chain.keys, chain)
    call.ticketAt = chain.savedAt
    const controller = new AbortController()
    this.#tell(`resumeDrain ${chain.id}`)
    const handle = this.process.run(() =>
      resumeDrain(provider, JSON.parse(saved) as Ticket, {
        clock: this.process.clock,
        signal: controller.signal,
        onEvent: this.#listen(call),
        ...this.#tickets(chain),
      }),
    )
    this.#hold(call, chain, handle, controller)
  }

  /** The next step is made by another process, often on another machine, from the ticket alone. */
  #handOver(other: User, chain: Chain, failed: number): void {
    this.#judge.truth.figures.add('steps handed to another process')
    this.#tell(`${chain.id} is handed to ${other.process.name}`)
    this.worksOn.splice(this.worksOn.indexOf(chain), 1)
    other.worksOn.push(chain)
    other.#step(chain, other.#newProvider(), undefined, this.#judge.now, failed)
  }

  /** A drain by steps, from its beginning or its ticket. */
  steps(from?: Chain): void {
    const refs = this.#members(2)
    const chain = from ?? this.#newChain(refs)
    this.#tell(`stepDrain ${chain.id} ${describe(chain)}`)
    chain.busy = true
    this.worksOn.push(chain)
    // a provider object of its own: its looks are this chain's alone
    const provider = this.#newProvider()
    this.#step(chain, provider, from === undefined ? refs : undefined, this.#judge.now, 0)
  }

  #step(
    chain: Chain,
    provider: ModelProvider,
    refs: readonly MemberRef[] | undefined,
    since: number,
    failures: number,
  ): void {
    const { process } = this
    if (!this.#stepping || !process.alive) {
      chain.busy = false
      return
    }
    const { keys, wish, saved } = chain
    // a step that failed leaves no ticket, and so no memory
    const knownSince = saved === undefined ? this.#judge.now : since
    const call = this.#judge.opens('stepDrain', process, provider, keys, chain, knownSince)
    this.#judge.truth.figures.add('steps')
    const o = { clock: process.clock, onEvent: this.#listen(call) }
    const promise = process.run(() =>
      saved === undefined
        ? stepDrain(provider, { target: refs ?? [], policy: { ...wish.policy, id: chain.id } }, o)
        : stepDrain(provider, JSON.parse(saved) as Ticket, o),
    )
    const again = (ms: number, failed: number): void => {
      const wait = Math.max(1, Math.min(ms, 1_000))
      this.#judge.truth.clock.setTimeout(() => {
        const other = process.alive ? this.handsOver?.() : undefined
        if (other === undefined || other === this || chain.saved === undefined)
          this.#step(chain, provider, refs, knownSince, failed)
        else this.#handOver(other, chain, failed)
      }, wait)
    }
    this.#waiting.expect(
      `step of ${chain.id}`,
      process,
      SLACK * 3,
      promise,
      (step) => {
        chain.saved = JSON.stringify(step.ticket)
        chain.savedAt = this.#judge.now
        for (const { ref, state } of step.ticket.members) {
          const to = state.hold.intended?.kind === 'hold' ? state.hold.intended.to : undefined
          if (to !== undefined) chain.announced.push({ key: keyOf(ref), to, at: this.#judge.now })
        }
        this.#judge.closes(call)
        if (step.outcome === undefined) again(step.againIn, 0)
        else {
          chain.busy = false
          this.#tell(`the steps of ${chain.id} end: ${step.outcome}`)
          this.#judge.truth.figures.add(`steps end: ${step.outcome}`)
        }
      },
      () => {
        this.#judge.closes(call)
        if (failures < 3) again(100, failures + 1)
        else chain.busy = false
      },
    )
  }

  stopSteps(): void {
    this.#stepping = false
  }

  watch(): void {
    const refs = this.#members(2)
    const provider = this.#provider
    const keys = new Set(refs.map(keyOf))
    const call = this.#judge.opens('watch', this.process, provider, keys)
    const handle = this.process.run(() =>
      watch(provider, refs, { clock: this.process.clock, onEvent: this.#listen(call) }),
    )
    this.#judge.truth.clock.setTimeout(
      () => {
        if (!this.process.alive) return
        this.process.run(() => void handle.close())
        this.#waiting.expect('done of a watch', this.process, SLACK, handle.done, () =>
          this.#judge.closes(call),
        )
      },
      this.#random.int(100, 3_000),
    )
  }

  abort(held: Held): void {
    this.#tell(`abort of ${held.chain.id}`)
    if (!held.done && held.abortedAt === Infinity) {
      held.abortedAt = this.#judge.now
      this.#giveUp(held.call, held.promised, held.controller, 'the user aborts')
    } else this.process.run(() => held.controller.abort(new Error('the user aborts')))
  }

  #giveUp(
    call: Call,
    promised: readonly Promised[],
    controller: AbortController,
    why: string,
  ): void {
    this.#judge.aborts(call)
    if (call.chain?.wish.policy.onAbort === 'restore') this.#afterUndo(promised)
    this.process.run(() => controller.abort(new Error(why)))
  }

  /** What a drain has promised comes after its undo now. */
  #afterUndo(promised: readonly Promised[]): void {
    for (const one of promised) one.by = Math.max(one.by, this.#judge.now + UNDO_LIMIT)
  }

  /** A release would cut the undo short that an abort has begun. */
  waitsForAbort({ abortedAt, done }: Held): boolean {
    return abortedAt !== Infinity && !done
  }

  releaseUnlessAborting(held: Held): void {
    if (!this.waitsForAbort(held)) this.release(held)
  }

  release(held: Held): void {
    this.held.splice(this.held.indexOf(held), 1)
    this.#tell(`release of ${held.chain.id}`)
    held.call.releasedAt = this.#judge.now
    this.#release(held.handle, held.chain, held.call)
  }

  #release(handle: Drain, chain: Chain, call?: Call): void {
    const promise = this.process.run(() => handle.release())
    this.#waiting.expect(`release of ${chain.id}`, this.process, SLACK, promise, () => {
      if (call !== undefined) this.#judge.closes(call)
    })
  }
}

function describe({ keys, wish }: Chain): string {
  return `${[...keys].join(' ')} ${JSON.stringify(wish.policy)}`
}

function detail(event: DrainEvent): string {
  if (event.type === 'phase') return ` ${event.from} -> ${event.to}`
  if (event.type === 'fault') return ` (${words(event.error)})`
  if (event.type === 'overruled') return ` (${event.expected}, found ${event.found})`
  return ''
}

function sayReport(report: DrainReport): string {
  const members = report.members.map(
    ({ ref, outcome, verifiedIdle, sealed, error }) =>
      `${keyOf(ref)} ${outcome}${verifiedIdle ? ' verified' : ''}${sealed ? ' sealed' : ''}${error === undefined ? '' : ` (${words(error)})`}`,
  )
  const error = report.error === undefined ? '' : ` (${words(report.error)})`
  return `${report.outcome}${error}: ${members.join(', ')}`
}
