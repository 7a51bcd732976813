import { abortable } from '../../../provider/abort.js'
import { pause } from '../../../provider/clock.js'
import { toDrainableError, type DrainableError } from '../../../provider/error.js'
import type { DrainReport, Why } from '../../../provider/report.js'
import type { Balancer } from '../../balancer/balancer.js'
import { CALL_LIMIT, LAST_LOOK } from '../../balancer/look/call.js'
import type { Scheduler } from '../../balancer/look/scheduler.js'
import type { Alarm } from '../../balancer/look/timer.js'
import type { Prepared, RunContext, RunSpec } from './run-spec.js'
import {
  canPass,
  patienceFor,
  tooSlow,
  unpreparedReport,
  waitsToTheEnd,
  whyUnprepared,
} from './unprepared.js'

const RETRY_FIRST = 100
const RETRY_MOST = 1_000

/** What the beginning of a call is about. */
interface Beginning {
  readonly spec: RunSpec
  readonly startedAt: number
  readonly balancer: Balancer
  readonly scheduler: Scheduler
  readonly alarm: Alarm
  /** Of the call: it is given up, or its time has passed. */
  readonly stop: AbortController
  /** Tells of a failure that is tried again. */
  readonly fault: (error: DrainableError) => void
  /** What is wrong with its ticket. */
  readonly whyTicket: () => Omit<Why, 'ref'> | undefined
}

/** How a call begins: describe and first look, tried again for as long as a failure can pass. Nothing is changed yet. */
export class Preparation {
  readonly #of: Beginning
  #until: number
  #isTooLate = false
  /** The error of the last try. */
  #failure: DrainableError | undefined

  constructor(beginning: Beginning) {
    const { spec, startedAt } = beginning
    this.#of = beginning
    this.#until = spec.timeout === null ? Infinity : startedAt + spec.timeout
  }

  /** @throws what the last try threw, or why the call was stopped */
  async run(): Promise<Prepared> {
    this.bound(this.#until)
    try {
      return await abortable(this.#try(), this.#of.stop.signal)
    } finally {
      this.#of.alarm.clear()
    }
  }

  /** Stops it if it takes too long: the deadline, or the time of an undo, includes the first look. */
  bound(until: number): void {
    const { spec, startedAt, alarm, stop, whyTicket } = this.#of
    this.#until = until
    if (until === Infinity) return
    const bound = spec.resumed === undefined ? until : Math.max(until, startedAt + LAST_LOOK)
    alarm.set(bound, () => {
      this.#isTooLate = true
      stop.abort(tooSlow(spec, this.#failure, whyTicket()))
    })
  }

  /** Retries failures that can pass: one lost packet must not end a long drain. */
  async #try(): Promise<Prepared> {
    const { spec, balancer, scheduler, startedAt, stop, fault } = this.#of
    const { clock, provider, subject } = spec
    const { signal } = stop
    const limit = (): number => {
      const left = this.#until - clock.now()
      return Math.min(CALL_LIMIT, Math.max(LAST_LOOK, left))
    }
    const context: RunContext = { provider, balancer, scheduler, startedAt, signal, limit }
    for (let wait = RETRY_FIRST; ; wait = Math.min(RETRY_MOST, wait * 2)) {
      try {
        return await spec.prepare(context)
      } catch (thrown) {
        signal.throwIfAborted()
        const error = toDrainableError(thrown, provider.name, subject)
        const left = patienceFor(spec, error, { startedAt, until: this.#until }) - clock.now()
        // One that is waited for to the end is given up by its own alarm.
        if (!canPass(error) || (left <= wait && !waitsToTheEnd(spec))) throw error
        if (this.#failure?.code !== error.code) fault(error)
        this.#failure = error
        await pause(clock, left > 0 ? Math.min(wait, left) : wait, signal)
      }
    }
  }

  /** The report of a call that could not begin. */
  report(thrown: unknown, elapsed: number): DrainReport {
    const { spec, stop } = this.#of
    const isGivenUp = stop.signal.aborted && !this.#isTooLate
    return unpreparedReport({ spec, elapsed, isTooLate: this.#isTooLate, isGivenUp }, thrown)
  }

  /** What it waits for. */
  why(): readonly Why[] {
    return this.#failure === undefined ? [] : whyUnprepared(this.#of.spec, this.#failure)
  }
}
