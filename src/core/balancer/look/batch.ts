import type { Change, ChangeResult, DrainableProvider } from '../../../provider/contract.js'
import type { Clock } from '../../../provider/clock.js'
import { toDrainableError, type DrainableError } from '../../../provider/error.js'
import type { Permit } from '../owner.js'
import { startChanges } from '../../telemetry.js'
import { bounded, CALL_LIMIT, LINGER } from './call.js'
import { checkResult } from './gate.js'
import { setBackgroundTimer } from './timer.js'

/** Receives one result, by its index among the caller's own changes. */
export type OnResult = (index: number, result: ChangeResult) => void

/** The signals of a caller that waits for results. */
export interface SendSignals {
  /** Fires when the caller has let go: the answer is still useful for a while. */
  readonly leave: AbortSignal
  /** Fires when the caller has waited long enough: the call ends at once, unless another caller waits for it. */
  readonly giveUp: AbortSignal
  /** When the caller gives up for good. Default: with the call. */
  readonly until?: number
}

interface Part {
  readonly from: number
  readonly count: number
  readonly onResult: OnResult
  readonly permit: Permit | undefined
}

/** The changes of all callers in one event-loop turn, sent as one call. */
export class Batch {
  readonly changes: Change[] = []
  /** Resolves when the call has ended in any way: each part has all of its results by then. */
  readonly done: Promise<void>
  readonly #parts: Part[] = []
  readonly #handed = new Map<number, ChangeResult>()
  readonly #stop = new AbortController()
  readonly #clock: Clock
  #heard: ReturnType<typeof startChanges>
  #waiting = 0
  #until: number | undefined

  /** @param closed - called when no more changes can be added */
  constructor(provider: DrainableProvider, clock: Clock, closed: () => void) {
    this.#clock = clock
    this.done = (async () => {
      await Promise.resolve()
      closed()
      await this.#call(provider)
    })()
  }

  /** Adds changes; reports each result once, as soon as it is known. */
  add(
    changes: readonly Change[],
    signals: SendSignals,
    onResult: OnResult,
    permit?: Permit,
  ): Promise<void> {
    this.#parts.push({ from: this.changes.length, count: changes.length, onResult, permit })
    this.changes.push(...changes)
    this.#waiting += 1
    const { until = this.#until } = signals
    if (until !== undefined) this.#until = Math.min(this.#until ?? Infinity, until)
    let waits = true
    const stop = (after: number, reason: unknown): void => {
      if (waits) this.#waiting -= 1
      waits = false
      if (this.#waiting === 0) this.#linger(after, reason)
    }
    const onLeave = (): void => stop(LINGER, signals.leave.reason)
    const onGiveUp = (): void => stop(0, signals.giveUp.reason)
    signals.leave.addEventListener('abort', onLeave, { once: true })
    signals.giveUp.addEventListener('abort', onGiveUp, { once: true })
    return this.done.finally(() => {
      signals.leave.removeEventListener('abort', onLeave)
      signals.giveUp.removeEventListener('abort', onGiveUp)
    })
  }

  /**
   * Called when no caller waits any more: waits a little longer for the answer, because a ticket with the answer can
   * undo the change; then ends the call.
   */
  #linger(after: number, reason: unknown): void {
    if (after === 0) {
      this.#stop.abort(reason)
      return
    }
    try {
      const cancel = setBackgroundTimer(this.#clock, () => this.#stop.abort(reason), after)
      void this.done.finally(cancel)
    } catch {
      this.#stop.abort(reason) // a clock without timers can't end the wait later
    }
  }

  async #call(provider: DrainableProvider): Promise<void> {
    this.#heard = startChanges(provider)
    // Checked last, because a lease can expire while the call waits.
    for (const part of this.#parts) this.#refuse(part, part.permit?.(), provider.name)
    const sent = [...this.changes.keys()].filter((index) => !this.#handed.has(index))
    if (sent.length === 0 && this.changes.length > 0) return
    const changes = sent.flatMap((index) => this.changes[index] ?? [])
    const hand = (at: number, result: ChangeResult | undefined): void => {
      const index = sent[at]
      if (index !== undefined) this.#hand(index, result, provider.name)
    }
    try {
      const results = await bounded(
        {
          provider: provider.name,
          what: 'apply',
          clock: this.#clock,
          signals: [this.#stop.signal],
          limit: CALL_LIMIT,
          until: this.#until,
          result: hand,
          ...this.#permit(),
        },
        (context) => provider.apply(changes, context),
      )
      const list: readonly unknown[] = Array.isArray(results) ? results : []
      changes.forEach((_, i) => hand(i, list[i] as ChangeResult | undefined))
    } catch (thrown) {
      const error: DrainableError = toDrainableError(thrown, provider.name, 'apply')
      // Reported results are known; the other changes may have been carried out, or may still be.
      changes.forEach(({ ref }, i) => hand(i, { ref, status: 'unknown', error }))
    }
  }

  /** The permit of all parts together: if one part may no longer send, the call ends, and the others look again. */
  #permit(): { readonly permit?: Permit } {
    const permits = new Set(this.#parts.flatMap(({ permit }) => permit ?? []))
    if (permits.size === 0) return {}
    const asked = [...permits].filter((permit) => permit() === undefined)
    return { permit: () => asked.map((permit) => permit()).find((error) => error !== undefined) }
  }

  #refuse({ from, count }: Part, error: DrainableError | undefined, provider: string): void {
    if (error === undefined) return
    for (let index = from; index < from + count; index += 1) {
      const ref = this.changes[index]?.ref
      if (ref !== undefined) this.#hand(index, { ref, status: 'rejected', error }, provider)
    }
  }

  #hand(index: number, result: ChangeResult | undefined, provider: string): void {
    const change = this.changes[index]
    if (change === undefined || this.#handed.has(index)) return
    const safe = checkResult(change, result, provider)
    this.#handed.set(index, safe)
    this.#heard?.(change, safe)
    const part = this.#parts.find(({ from, count }) => index >= from && index < from + count)
    part?.onResult(index - part.from, safe)
  }
}
