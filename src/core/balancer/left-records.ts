import { wallOf, type Clock } from '../../provider/clock.js'
import type { DrainableProvider, MemberRef, Reading } from '../../provider/contract.js'
import { refKey } from '../../provider/member-ref.js'
import type { Left } from '../member/input.js'
import { owes, type MemberRecord } from '../member/record.js'
import type { Sight } from '../member/sight.js'
import { step } from '../member/step.js'
import type { SeenLook } from './look/look.js'
import { readingsOf } from './look/readings.js'

/** How many are listened for. */
const MOST_LEFT = 1_000
/** The view of every other provider object than that of the call. */
const ELSEWHERE = -1

/** A member, as a call has let go of it and as looks of others have shown it since. */
export class LeftRecord {
  readonly #provider: DrainableProvider
  readonly #view: number
  #record: MemberRecord

  constructor(provider: DrainableProvider, { ref, facts, ledger, claim }: Sight) {
    this.#provider = provider
    this.#view = claim.view
    const ended = claim.ending.ended ?? { outcome: 'aborted' as const, at: 0, error: null }
    // Its claim wants nothing any more.
    const over = { ...claim, goal: { kind: 'watch' as const }, ending: { ...claim.ending, ended } }
    this.#record = { ref, ledger, claims: [over], views: new Map([[claim.view, facts]]) }
  }

  get left(): Left {
    return { ledger: this.#record.ledger }
  }

  see(
    by: DrainableProvider,
    reading: Reading,
    { snapshot: { ended }, askedAt, took }: SeenLook,
    time: { readonly at: number; readonly wall: number },
  ): void {
    const view = this.#provider === by ? this.#view : ELSEWHERE
    const last = this.#record.views.get(view)?.last ?? null
    if (last !== null && (last.askedAt > askedAt || last.reading === reading)) return
    const input = { type: 'look', view, reading, askedAt, took, ended, random: 0, ...time } as const
    this.#record = step(this.#record, input).record
  }
}

/**
 * Members that a call has let go of with something of ours on them. Its handle can still undo that, so what others see of
 * the member in the meantime counts: what is set after a look has shown it open is not ours. A later claim ends this.
 */
export class LeftRecords {
  /** Held weakly: a handle may never be asked to undo anything. */
  readonly #records = new Map<string, WeakRef<LeftRecord>>()
  readonly #clock: Clock
  /** The newest look: all calls on a provider share it, and each tells of it. */
  #told: SeenLook | undefined

  constructor(clock: Clock) {
    this.#clock = clock
  }

  keep(provider: DrainableProvider, sight: Sight): LeftRecord {
    const key = refKey(sight.ref)
    const left = new LeftRecord(provider, sight)
    this.#records.delete(key)
    if (sight.ledger.pending !== null || !owes(sight.ledger)) return left
    this.#records.set(key, new WeakRef(left))
    const [oldest] = this.#records.keys()
    if (this.#records.size > MOST_LEFT && oldest !== undefined) this.#records.delete(oldest)
    return left
  }

  forget(ref: MemberRef): void {
    this.#records.delete(refKey(ref))
  }

  see(by: DrainableProvider, look: SeenLook): void {
    if (this.#records.size === 0 || look === this.#told) return
    this.#told = look
    const time = { at: this.#clock.now(), wall: wallOf(this.#clock) }
    const readings = readingsOf(look.snapshot)
    for (const [key, record] of this.#records) {
      const reading = readings.get(key)
      if (reading !== undefined) record.deref()?.see(by, reading, look, time)
    }
  }
}
