import {
  ready,
  restore,
  resumeDrain,
  startDrain,
  watch,
  type Drain,
  type DrainReport,
  type Ticket,
} from 'drainable'
import { drainWith, inForceOf, saysRestored } from './compat.js'
import type { Call, Chain } from './drain-call.js'
import { judgeAction } from '../judge/judge-idle.js'
import type { Judge } from '../judge/judge.js'
import type { ModelProvider } from '../world/model-provider.js'
import { describe, Desk, sayReport } from './desk.js'
import type { Random } from '../random.js'
import { SLACK, Steps } from './steps.js'
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
  readonly #desk: Desk
  readonly #steps: Steps
  readonly held: Held[] = []
  /** What ends the drains with an action that are under way. */
  readonly actions: (() => void)[] = []
  /** Drains it works on between calls, or did. */
  readonly worksOn: Chain[] = []

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
    this.#desk = new Desk(process, judge, random, chains)
    this.#steps = new Steps(this.#desk, waiting, this.worksOn, newProvider)
  }

  /** Who makes the next step of a drain, where it is another process. */
  set handsOver(next: () => User | undefined) {
    this.#steps.handsOver = () => {
      const user = next()
      return user === undefined ? undefined : user.#steps
    }
  }

  /** A drain by steps, from its beginning or its ticket. */
  steps(from?: Chain): void {
    this.#steps.begin(from)
  }

  stopSteps(): void {
    this.#steps.stop()
  }

  startDrain(): void {
    const refs = this.#desk.members(2)
    const chain = this.#desk.newChain(refs)
    const provider = this.#desk.provider
    const call = this.#judge.opens('startDrain', this.process, provider, chain.keys, chain)
    const controller = new AbortController()
    this.#desk.tell(`startDrain ${chain.id} ${describe(chain)}`)
    const handle = this.process.run(() =>
      startDrain(provider, refs, this.#desk.policy(chain, call, controller)),
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
        this.#desk.tell(`${chain.id} is ${sayReport(report)}`)
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
      provider: held.call.provider,
      startedAt: abortedAt,
      settledAt: this.#judge.now,
      keys: mine.map(({ ref }) => keyOf(ref)),
      restored: new Set(restored),
      calm: false,
    })
  }

  drainWithAction(): void {
    const refs = this.#desk.members(2)
    const chain = this.#desk.newChain(refs)
    const provider = this.#desk.provider
    const call = this.#judge.opens('drain', this.process, provider, chain.keys, chain)
    const controller = new AbortController()
    const length = this.#random.int(1, 3_000)
    this.#desk.tell(`drain ${chain.id} ${describe(chain)} with an action of ${length} ms`)
    const action = (
      report: DrainReport,
      given: { readonly signal?: AbortSignal },
    ): Promise<string> => {
      this.#judge.truth.figures.add('actions begun')
      this.#desk.tell(`the action of ${chain.id} begins: ${sayReport(report)}`)
      const proved = report.members.filter(({ outcome }) => outcome === 'idle')
      judgeAction(this.#judge, call, new Set(proved.map(({ ref }) => keyOf(ref))))
      for (const member of report.members) this.#judge.isOver(call, member)
      return new Promise((resolve, reject) => {
        this.#judge.truth.clock.setTimeout(() => this.process.run(() => resolve('done')), length)
        const stop = (): void => {
          this.#judge.truth.figures.add('actions told to stop')
          this.#desk.tell(`the action of ${chain.id} is told: ${words(given.signal?.reason)}`)
          reject(given.signal?.reason)
        }
        given.signal?.addEventListener('abort', stop, { once: true })
      })
    }
    const promise = this.process.run(() =>
      drainWith(provider, refs, this.#desk.policy(chain, call, controller), action),
    )
    const close = (): void => this.#judge.closes(call)
    const within = chain.wish.timeout + length + SLACK
    const what = `drain ${chain.id}`
    const promised = this.#waiting.expect(what, this.process, within, promise, close, close)
    this.actions.push(() => this.#giveUp(call, [promised], controller, 'the user goes home'))
  }

  ready(): void {
    const refs = this.#desk.members(2)
    const keys = new Set(refs.map(keyOf))
    const provider = this.#desk.provider
    const call = this.#judge.opens('ready', this.process, provider, keys)
    this.#desk.tell(`ready ${[...keys].join(' ')}`)
    const promise = this.process.run(() => ready(provider, refs, { clock: this.process.clock }))
    const settled = (restored: ReadonlySet<string>): void => {
      this.#judge.saysUndone({
        chain: undefined,
        process: this.process,
        provider,
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
    this.#desk.tell(`restore() of the handle of ${chain.id}`)
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
    this.#desk.tell(`${chain.id} is undone: ${sayReport(report)}`)
    const restored = report.members.filter(saysRestored).map(({ ref }) => keyOf(ref))
    this.#judge.saysUndone({
      chain,
      process: this.process,
      provider: undo.provider,
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
    const provider = this.#desk.provider
    const undo = this.#judge.opens('undo', this.process, provider, chain.keys, chain)
    undo.ticketAt = chain.savedAt
    this.#desk.tell(`restore(ticket) of ${chain.id}`)
    const { tickets } = this.#desk.tickets(chain)
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
    const provider = this.#desk.provider
    const call = this.#judge.opens('resumeDrain', this.process, provider, chain.keys, chain)
    call.ticketAt = chain.savedAt
    const controller = new AbortController()
    this.#desk.tell(`resumeDrain ${chain.id}`)
    const handle = this.process.run(() =>
      resumeDrain(provider, JSON.parse(saved) as Ticket, {
        clock: this.process.clock,
        signal: controller.signal,
        onEvent: this.#desk.listen(call),
        ...this.#desk.tickets(chain),
      }),
    )
    this.#hold(call, chain, handle, controller)
  }

  watch(): void {
    const refs = this.#desk.members(2)
    const provider = this.#desk.provider
    const keys = new Set(refs.map(keyOf))
    const call = this.#judge.opens('watch', this.process, provider, keys)
    const handle = this.process.run(() =>
      watch(provider, refs, { clock: this.process.clock, onEvent: this.#desk.listen(call) }),
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
    this.#desk.tell(`abort of ${held.chain.id}`)
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
    this.#desk.tell(`release of ${held.chain.id}`)
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
