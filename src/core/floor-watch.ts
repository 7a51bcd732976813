import type { Json, PresentReading, Reading, Snapshot } from '../provider/contract.js'
import { pause } from '../provider/clock.js'
import { DrainableError } from '../provider/error.js'
import { formatRef, refKey } from '../provider/member-ref.js'
import { belowMinimum, refuseAtMinimum } from './guard.js'
import type { Lane } from './lane.js'
import type { DrainState } from './machine/state.js'
import { readingsOf } from './target.js'

/** Most of the random wait before a drain that left too few serving is undone, in milliseconds. */
const UNDO_WAIT = 1_000

/**
 * Keeps the floor of serving members around the first hold of each member of one drain: asked before
 * it, and looked at once more after it took effect, because another controller may have taken the
 * last place in the same moment.
 */
export class FloorWatch {
  readonly #lane: Lane
  readonly #keepReady: number
  /** Members whose first hold was let pass and not yet looked at. */
  readonly #passed = new Set<string>()

  constructor(lane: Lane, keepReady: number) {
    this.#lane = lane
    this.#keepReady = keepReady
  }

  /** Why a member must not be taken now; where it may, its place is reserved. */
  refuse(reading: Reading, snapshot: Snapshot): DrainableError | undefined {
    if (!reading.present) return undefined
    const { reservations, clock } = this.#lane
    const refused = refuseAtMinimum(reading, snapshot, reservations, this.#keepReady)
    if (refused === undefined && reading.serves) {
      reservations.take(reading.ref, clock.now())
      this.#passed.add(refKey(reading.ref))
    }
    return refused
  }

  /** The first look after the hold: the place is taken for good. Whether too few are left. */
  confirm(state: DrainState, reading: Reading, snapshot: Snapshot): reading is PresentReading {
    if (!this.#passed.delete(refKey(state.ref))) return false
    this.#lane.reservations.release(state.ref)
    if (!reading.present || state.confirmed === 'none' || this.#keepReady === 0) return false
    return belowMinimum(reading, snapshot, this.#keepReady)
  }

  /**
   * Undoes a hold that left too few, after a random wait and one more look: two controllers that did
   * the same must not both give way.
   *
   * @param wanted - whether the drain still goes on
   * @returns why it was undone; undefined where that was not necessary any more
   * @throws the refusal, where the balancer refused the undo
   */
  async undo(
    state: DrainState,
    native: Json | null,
    wanted: () => boolean,
    signal: AbortSignal,
  ): Promise<DrainableError | undefined> {
    const { ref, found } = state
    await pause(this.#lane.clock, Math.random() * UNDO_WAIT, signal)
    if (!wanted() || found === null || found.own === 'unknown') return undefined
    const { snapshot } = await this.#lane.look([ref], signal)
    const reading = readingsOf(snapshot).get(refKey(ref))
    if (reading?.present !== true || reading.own === 'unknown') return undefined
    if (!wanted() || !belowMinimum(reading, snapshot, this.#keepReady)) return undefined
    if (reading.own !== state.confirmed) return undefined // somebody else has set another state since
    const undo = {
      kind: 'restore' as const,
      ref,
      identity: found.identity,
      expect: reading.own,
      to: found.own,
    }
    const [result] = await this.#lane.apply([native === null ? undo : { ...undo, native }], signal)
    if (result?.status === 'rejected' || result?.status === 'unknown') throw result.error
    return new DrainableError(
      'POOL_AT_MINIMUM',
      `${formatRef(ref)} was made ready again: somebody else took another member of ${ref.pool} at the same moment, and fewer than keepReady ${this.#keepReady} were left serving`,
      { ref },
    )
  }
}
