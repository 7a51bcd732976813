import type { MemberRef } from '../../../provider/contract.js'
import { refKey } from '../../../provider/member-ref.js'
import type { Device } from './device.js'

const NONE: ReadonlySet<Device> = new Set()

/**
 * The units that our holds went to. In a group that does not sync by itself a hold stays on the unit that was
 * active then: after a failover its undo would miss it, and the next failover would take the member out again.
 */
export class Held {
  readonly #units = new Map<string, Set<Device>>()

  of(ref: MemberRef): ReadonlySet<Device> {
    return this.#units.get(refKey(ref)) ?? NONE
  }

  /** Held on these units, or it may be. */
  note(ref: MemberRef, devices: readonly Device[]): void {
    this.#units.set(refKey(ref), new Set([...this.of(ref), ...devices]))
  }

  /** Opened on these units. */
  forget(ref: MemberRef, devices: readonly Device[]): void {
    const left = [...this.of(ref)].filter((device) => !devices.includes(device))
    if (left.length === 0) this.#units.delete(refKey(ref))
    else this.#units.set(refKey(ref), new Set(left))
  }
}
