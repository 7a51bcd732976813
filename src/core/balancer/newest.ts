import type { Claim } from '../member/record.js'
import { isUndo, sideOf } from '../member/wanted.js'

/** A claim, and the number of its call. */
interface Spoken {
  readonly seq: number
  readonly claim: Claim
}

/**
 * The newest call that has spoken for a member, by what it wants, while any call is open: of two opposite ones the later
 * wins, also where it was prepared first. An undo speaks for its own call alone.
 */
export class Newest {
  readonly #claims = { down: new Map<string, Spoken>(), open: new Map<string, Spoken>() }

  /** The claim of a later call that wants the opposite. */
  against(key: string, { seq, claim: { goal } }: Spoken): Claim | undefined {
    const side = sideOf(goal)
    if (side === 'none') return undefined
    const opposite = this.#claims[side === 'down' ? 'open' : 'down'].get(key)
    return opposite !== undefined && opposite.seq > seq ? opposite.claim : undefined
  }

  note(key: string, spoken: Spoken): void {
    const { goal } = spoken.claim
    const side = sideOf(goal)
    if (side !== 'none' && !isUndo(goal)) this.#claims[side].set(key, spoken)
  }

  clear(): void {
    this.#claims.down.clear()
    this.#claims.open.clear()
  }
}
