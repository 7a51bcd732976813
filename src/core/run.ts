import type {
  Change,
  ChangeResult,
  DrainableProvider,
  Reading,
  Snapshot,
} from '../provider/contract.js'
import type { Clock } from '../provider/clock.js'
import { DrainableError } from '../provider/error.js'
import { formatRef, refKey } from '../provider/member-ref.js'
import type { DrainReport, Outcome, Why } from '../provider/report.js'
import { nextPause } from './cadence.js'
import { claim, leaveIdle } from './claims.js'
import { emitOn } from './emitters.js'
import type { DrainEvent } from './events.js'
import { FloorWatch } from './floor-watch.js'
import { abortable, settledWithin, toDrainableError } from './call.js'
import type { Lane, Look } from './lane.js'
import type { Ledger } from './ledger.js'
import { dueIn, unchangedFor, workOf } from './machine/due.js'
import type { DrainState, Effect, Input, MachinePolicy } from './machine/state.js'
import { transition } from './machine/transition.js'
import { explain } from './machine/why.js'
import { reportMember, worst } from './report.js'
import { readingsOf } from './target.js'
import { LONGEST_TIMER } from './timer.js'

/** How long a look or a change asked for at the deadline may take before it counts as failed. */
const LAST_LOOK = 2_000
/** Pause between looks while a drain that is over is still held. */
const HOLD_PAUSE = 100
/** How long the end waits until the ticket is written. */
const STORE_LIMIT = 2_000
/** Pause before the last look, where the one under way was asked for before the deadline. */
const LAST_PAUSE = 20

/** What a run needs to know beside the members. */
export interface RunOptions {
  readonly provider: DrainableProvider
  readonly lane: Lane
  readonly policy: MachinePolicy
  readonly keepReady: number
  readonly onMinimum: 'fail' | 'wait'
  readonly ledger: Ledger | undefined
  /** Epoch milliseconds minus the drain's clock. */
  readonly wallOffset: () => number
  readonly emit: (event: DrainEvent) => void
  /** Called once, when every member has an outcome. */
  readonly onEnd: (report: DrainReport) => void
}

/**
 * Turns the machine's effects into calls and events, for the members of one drain: looks come from
 * the lane, changes go to it, the ledger is written before and after each change.
 */
export class DrainRun {
  readonly #options: RunOptions
  readonly #states: Map<string, DrainState>
  readonly #startedAt: number
  readonly #stop = new AbortController()
  readonly #floor: FloorWatch
  readonly #unclaim: readonly (() => void)[]
  #seat: ReturnType<Lane['join']> | undefined
  readonly #sending = new Set<Promise<void>>()
  /** Members that left too few serving, until it is decided whether their hold is undone. */
  readonly #undecided = new Set<string>()
  #snapshot: Snapshot | undefined
  #failures = 0
  #cancelDeadline: (() => void) | undefined
  #over = false
  #released = false
  #halted = false

  constructor(options: RunOptions, states: readonly DrainState[]) {
    this.#options = options
    this.#states = new Map(states.map((state) => [refKey(state.ref), state]))
    this.#startedAt = this.#clock.now()
    this.#floor = new FloorWatch(options.lane, options.keepReady)
    this.#unclaim = states.map((state) =>
      claim(options.provider, state.ref, { yield: () => this.#yield(state) }),
    )
  }

  get #clock(): Clock {
    return this.#options.lane.clock
  }

  get states(): ReadonlyMap<string, DrainState> {
    return this.#states
  }

  /** Begins to look; `first` is the look the members were picked from. */
  start(first?: Look): void {
    this.#sit(false)
    this.#armDeadline()
    if (first !== undefined) this.#see(first)
  }

  #sit(background: boolean): void {
    this.#seat?.leave()
    const refs = [...this.#states.values()].map((state) => state.ref)
    this.#seat = this.#options.lane.join({ refs, background, see: (look) => this.#see(look) })
  }

  report(): DrainReport {
    const now = this.#clock.now()
    const members = [...this.#states.values()].map((state) =>
      reportMember(state, this.#options.policy, now),
    )
    return {
      outcome: worst(members.map((member) => member.outcome)),
      members,
      elapsed: Math.round(now - this.#startedAt),
    }
  }

  why(): readonly Why[] {
    const now = this.#clock.now()
    return [...this.#states.values()].flatMap((state) => explain(state, this.#options.policy, now))
  }

  /** Ends every member that has no outcome yet. */
  end(outcome: Outcome, error?: DrainableError): void {
    const input =
      error === undefined
        ? { type: 'end' as const, outcome }
        : { type: 'end' as const, outcome, error }
    for (const key of this.#states.keys()) this.#feed(key, input)
    this.#conclude()
  }

  /** Stops looking, for an undo: what is found from now on is no news. */
  halt(): void {
    this.#halted = true
    this.#cancelDeadline?.()
    this.#seat?.leave()
  }

  /** Stops looking and keeping the drain up; nothing is changed. */
  release(): void {
    if (this.#released) return
    this.#released = true
    this.#stop.abort(new DrainableError('CONFLICT', 'the drain was released'))
    this.#cancelDeadline?.()
    this.#seat?.leave()
    for (const state of this.#states.values()) this.#options.lane.reservations.release(state.ref)
    for (const state of this.#states.values()) {
      if (state.phase === 'idle') leaveIdle(this.#options.provider, state)
    }
    for (const unclaim of this.#unclaim) unclaim()
  }

  /** Another call of this process makes the member ready: do not fight it. */
  #yield({ ref }: DrainState): void {
    if (this.#options.policy.mode === 'watch') return
    const key = refKey(ref)
    if (this.#states.get(key)?.ended === null) {
      const error = new DrainableError(
        'DRAIN_OVERRULED',
        `${formatRef(ref)} was made ready by another call of this process while it was drained`,
        { ref },
      )
      this.#feed(key, { type: 'end', outcome: 'overruled', error })
      this.#conclude()
    } else this.#feed(key, { type: 'release' })
  }

  #armDeadline(): void {
    const deadlines = [...this.#states.values()].flatMap((state) => state.deadline ?? [])
    if (deadlines.length === 0 || this.#over) return
    const wait = Math.min(...deadlines) - this.#clock.now()
    const fire = (): void => {
      if (wait > LONGEST_TIMER) this.#armDeadline()
      else this.#atDeadline()
    }
    this.#cancelDeadline = this.#clock.setTimeout(fire, Math.max(0, Math.min(wait, LONGEST_TIMER)))
  }

  /** One last look; where it does not come in time, the balancer is not readable. */
  #atDeadline(): void {
    this.#seat?.next(0)
    const { cost, floor } = this.#options.lane
    const patience = LAST_LOOK + 2 * cost + floor // a large table takes its time to read
    this.#cancelDeadline = this.#clock.setTimeout(() => {
      const now = this.#clock.now()
      const late = new DrainableError(
        'CALL_TIMEOUT',
        `the balancer gave no answer to the last look within ${Math.round(patience)} ms`,
        {
          provider: this.#options.provider.name,
        },
      )
      for (const [key, state] of this.#states) {
        const { pending } = state
        const cutting = state.terminateUntil !== null && now < state.terminateUntil + patience
        if (state.ended !== null || cutting) continue
        if (pending?.state === 'sent') {
          const { change } = pending
          this.#feed(key, {
            type: 'result',
            change,
            result: { ref: change.ref, status: 'unknown', error: late },
          })
        }
        if (this.#states.get(key)?.ended === null) {
          this.#feed(key, { type: 'unreadable', error: late, askedAt: now })
        }
      }
      this.#conclude()
      if (!this.#over) this.#atDeadline()
    }, patience)
  }

  /** Takes a look in, for every member; what it makes necessary goes out in one call. */
  #see(look: Look): void {
    if (this.#released || this.#halted) return
    if (this.#options.lane.closed) {
      this.end('unreachable', look.error)
      this.release()
      return
    }
    this.#failures = look.error === undefined ? 0 : this.#failures + 1
    if (look.snapshot !== undefined) this.#snapshot = look.snapshot
    const changes: { key: string; change: Change }[] = []
    for (const [key, state] of this.#states) {
      if (this.#undecided.has(key)) continue
      const reading =
        look.snapshot === undefined ? undefined : this.#readingOf(look.snapshot, state)
      if (look.error !== undefined)
        this.#take(key, { type: 'unreadable', error: look.error, askedAt: look.askedAt }, changes)
      else if (reading !== undefined)
        this.#take(key, { type: 'reading', reading, askedAt: look.askedAt }, changes)
      if (reading !== undefined && look.snapshot !== undefined)
        this.#checkFloor(key, reading, look.snapshot, look.askedAt)
    }
    this.#send(changes)
    this.#conclude()
    this.#seat?.next(this.#pause())
  }

  /** The first look after a first hold: whether the pool still has enough. */
  #checkFloor(key: string, reading: Reading, snapshot: Snapshot, askedAt: number): void {
    const state = this.#states.get(key)
    if (state === undefined || state.pending !== null || askedAt <= state.confirmedAt) return
    if (!this.#floor.confirm(state, reading, snapshot)) return
    const { native = null } = state.found ?? {}
    this.#undecided.add(key)
    this.#floor
      .undo(state, native, () => this.#states.get(key)?.ended === null, this.#stop.signal)
      .finally(() => this.#undecided.delete(key))
      .then((refused) => {
        if (refused === undefined || this.#released) return
        this.#feed(key, {
          type: 'denied',
          error: refused,
          final: this.#options.onMinimum === 'fail',
        })
        this.#conclude()
      })
      .catch((error: unknown) => {
        if (!this.#released)
          this.#report(toDrainableError(error, this.#options.provider.name, 'undo'), state)
      })
  }

  #readingOf(snapshot: Snapshot, state: DrainState): Reading {
    return (
      readingsOf(snapshot).get(refKey(state.ref)) ?? { ref: state.ref, present: false, scopes: [] }
    )
  }

  #feed(key: string, input: FreeInput): void {
    const changes: { key: string; change: Change }[] = []
    this.#take(key, input, changes)
    this.#send(changes)
  }

  #take(key: string, input: FreeInput, changes: { key: string; change: Change }[]): void {
    const state = this.#states.get(key)
    if (state === undefined) return
    const at = this.#clock.now()
    const stamped = { ...input, at, wall: at + this.#options.wallOffset() } as Input
    const step = transition(state, stamped, this.#options.policy)
    this.#states.set(key, step.state)
    if (wasCarriedOut(state, step.state)) this.#options.ledger?.confirm(key)
    for (const effect of step.effects) this.#effect(key, effect, changes)
  }

  #effect(key: string, effect: Effect, changes: { key: string; change: Change }[]): void {
    switch (effect.type) {
      case 'emit':
        if (!this.#over) this.#options.emit(effect.event)
        emitOn(this.#options.provider, effect.event)
        return
      case 'apply': {
        const reading = this.#states.get(key)?.last?.reading
        const denied =
          effect.first && reading !== undefined && this.#snapshot !== undefined
            ? this.#floor.refuse(reading, this.#snapshot)
            : undefined
        if (denied === undefined) changes.push({ key, change: effect.change })
        else
          this.#take(
            key,
            { type: 'denied', error: denied, final: this.#options.onMinimum === 'fail' },
            changes,
          )
        return
      }
      case 'end':
        return
      default:
        effect satisfies never
    }
  }

  #report(error: DrainableError, state: DrainState): void {
    const event = {
      type: 'fault' as const,
      at: new Date(this.#clock.now() + this.#options.wallOffset()).toISOString(),
      ref: state.ref,
      error,
    }
    if (!this.#over) this.#options.emit(event)
    emitOn(this.#options.provider, event)
  }

  #send(changes: readonly { key: string; change: Change }[]): void {
    if (changes.length === 0) return
    const sent = this.#apply(changes).finally(() => this.#sending.delete(sent))
    this.#sending.add(sent)
  }

  /** Resolves when no change of ours is under way any more, or after `limit`. */
  async settle(limit: number): Promise<void> {
    await settledWithin(Promise.allSettled(this.#sending), this.#clock, limit)
  }

  /** Writes the ticket, sends the changes, writes the ticket again. */
  async #apply(wished: readonly { key: string; change: Change }[]): Promise<void> {
    const { ledger, lane, provider } = this.#options
    const { signal } = this.#stop
    for (const { key, change } of wished) ledger?.intend(key, change)
    try {
      await ledger?.save(this.#states)
    } catch (cause) {
      this.#unsaved(wished, cause)
    }
    if (signal.aborted) return
    // A store may be slow: what was given up in the meantime must not be sent any more.
    const changes = wished.filter(({ key, change }) => {
      const state = this.#states.get(key)
      if (state === undefined || (state.ended !== null && !state.holding)) return false
      return state.pending?.state === 'sent' && state.pending.change === change
    })
    if (changes.length === 0) return
    const answer = lane.send(
      changes.map(({ change }) => change),
      signal,
    )
    answer.catch(() => undefined) // seen below, or by nobody after the release
    let results: readonly ChangeResult[]
    try {
      results = await abortable(answer, signal)
    } catch (error) {
      if (this.#released) {
        this.#noteLate(changes, answer)
        return
      }
      const failed = toDrainableError(error, provider.name, 'apply')
      results = changes.map(({ change }) => ({ ref: change.ref, status: 'unknown', error: failed }))
    }
    const next: { key: string; change: Change }[] = []
    changes.forEach(({ key, change }, i) => {
      const result = results[i]
      if (result === undefined) return
      ledger?.settle(key, change, result)
      this.#take(key, { type: 'result', change, result }, next)
    })
    this.#send(next)
    ledger?.save(this.#states).catch((cause: unknown) => this.#unsaved([], cause))
    this.#conclude()
    this.#seat?.next(0)
  }

  /** The answer to a change that was under way at the release: the ticket still learns of it. */
  #noteLate(
    changes: readonly { key: string; change: Change }[],
    answer: Promise<readonly ChangeResult[]>,
  ): void {
    const { ledger } = this.#options
    if (ledger === undefined) return
    answer
      .then((results) => {
        changes.forEach(({ key, change }, i) => {
          const result = results[i]
          if (result !== undefined) ledger.settle(key, change, result)
        })
        return ledger.save(this.#states)
      })
      .catch(() => undefined) // nobody is left to be told; what was written says that it was intended
  }

  /**
   * The ticket could not be written. Before the first change that ends the drain, because an undo
   * would be impossible; later it is a fault, and the drain goes on.
   */
  #unsaved(changes: readonly { key: string; change: Change }[], cause: unknown): void {
    const words = cause instanceof Error ? cause.message : String(cause)
    const error = new DrainableError('TICKET_INVALID', `the ticket could not be saved: ${words}`, {
      cause,
    })
    for (const { key, change } of changes) {
      const state = this.#states.get(key)
      if (state === undefined || state.confirmed !== 'none') continue
      this.#take(
        key,
        { type: 'result', change, result: { ref: change.ref, status: 'rejected', error } },
        [],
      )
    }
    const [first] = this.#states.values()
    if (first !== undefined) this.#report(error, first)
    this.#conclude()
  }

  #pause(): number {
    const { lane, policy } = this.#options
    if (this.#over) return Math.max(HOLD_PAUSE, lane.floor, lane.cost * 10)
    const now = this.#clock.now()
    for (const { ended, deadline, terminateUntil } of this.#states.values()) {
      if (ended !== null || terminateUntil !== null || deadline === null) continue
      if (now >= deadline) return LAST_PAUSE
    }
    const pauses = [...this.#states.values()].map((state) =>
      nextPause({
        work: workOf(state),
        unchangedFor: unchangedFor(state, now),
        due: dueIn(state, policy, now),
        cost: lane.cost,
        floor: lane.floor,
        failures: this.#failures,
      }),
    )
    return Math.min(...pauses)
  }

  /** Every member has its outcome: say so once. The drain is kept up until it is released. */
  #conclude(): void {
    if (this.#over || this.#released) return
    const states = [...this.#states.values()]
    if (states.some((state) => state.ended === null)) return
    this.#over = true
    this.#cancelDeadline?.()
    for (const key of this.#states.keys()) this.#feed(key, { type: 'settle' })
    const report = this.report()
    const event: DrainEvent = {
      type: 'end',
      at: new Date(this.#clock.now() + this.#options.wallOffset()).toISOString(),
      outcome: report.outcome,
      report,
    }
    this.#options.emit(event)
    emitOn(this.#options.provider, event)
    const held = [...this.#states.values()].some((state) => state.holding)
    const saved = (this.#options.ledger?.save(this.#states) ?? Promise.resolve()).catch(
      (cause: unknown) => this.#unsaved([], cause),
    )
    void settledWithin(saved, this.#clock, STORE_LIMIT).then(() => this.#options.onEnd(report))
    if (held) this.#sit(true)
    else this.release()
  }
}

/** Whether a change whose answer was lost has just turned out to have been carried out. */
function wasCarriedOut(before: DrainState, after: DrainState): boolean {
  const lost = before.pending
  if (lost?.state !== 'lost' || after.pending !== null) return false
  const { change } = lost
  if (change.kind === 'hold') return after.confirmed === change.to
  return change.kind === 'remove' && after.phase === 'removed'
}

type WithoutStamp<T> = T extends unknown ? Omit<T, 'at' | 'wall'> : never
type FreeInput = WithoutStamp<Input>
