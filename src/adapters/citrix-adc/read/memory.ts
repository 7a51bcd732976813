import type { AdminState } from '../../../provider/contract.js'
import type { Entry } from '../codec/rows.js'
import type { Subject } from '../codec/nitro.js'

/** What we did to a member, as long as no other client did something else since. */
export interface OwnDisable {
  /** What OUT OF SERVICE means here: reached out of our drain, or set. */
  readonly as: Exclude<AdminState, 'ready'>
  /**
   * A graceful disable of ours, with delay 0, of a member that was in service: when such a one goes
   * OUT OF SERVICE, it does so by itself, and nothing is left on it.
   */
  readonly graceful: boolean
  /** Counts readings: an older one knows nothing of this. */
  readonly since: number
  /** How the appliance showed it first; undefined until it was read back. */
  readonly fingerprint?: string
  /** Which node, since when, showed it. */
  readonly incarnation?: string
}

/**
 * The appliance says TROFS and OUT OF SERVICE, not why, and builds before 13.0 don't even say
 * whether a disable was graceful. So it is remembered here what we did, and dropped as soon as a
 * reading shows that another client did something else.
 */
export class Memory {
  readonly #disables = new Map<string, OwnDisable>()
  #readings = 0

  /** Taken before a reading is asked for. */
  stamp(): number {
    return ++this.#readings
  }

  /** @param graceful - left out where nothing was sent: another name for the same state */
  did(subject: Subject, as: OwnDisable['as'], graceful?: boolean): void {
    const key = keyOf(subject)
    const before = this.#disables.get(key)?.graceful ?? false
    this.#disables.set(key, { as, graceful: graceful ?? before, since: this.stamp() })
  }

  forget(subject: Subject): void {
    this.#disables.delete(keyOf(subject))
  }

  /**
   * What holds of our disables, as far as this reading shows. A disable that outlived a reboot or a
   * failover may look different then and is ours still, but nothing is left of how it came about. A member
   * that was seen in TROFS goes OUT OF SERVICE as drained, whoever drained it.
   */
  recall(entry: Entry, stamp: number, incarnation: string): OwnDisable | undefined {
    const key = keyOf(entry.subject)
    const { fingerprint } = entry
    const isDraining = entry.phase === 'trofs' && !entry.byMonitor
    const seen: OwnDisable = { as: 'drain', graceful: false, since: stamp }
    const ours = this.#disables.get(key) ?? (isDraining ? seen : undefined)
    if (ours === undefined || stamp < ours.since) return ours
    const moved = ours.incarnation !== undefined && ours.incarnation !== incarnation
    const other = ours.fingerprint !== undefined && ours.fingerprint !== fingerprint
    if (entry.phase === 'in' || (other && !moved)) {
      this.#disables.delete(key)
      return undefined
    }
    const kept = { ...ours, graceful: ours.graceful && !moved, fingerprint, incarnation }
    this.#disables.set(key, kept)
    return kept
  }
}

/** One text per object. No name contains a NUL. */
export function keyOf(subject: Subject): string {
  return subject.kind === 'service'
    ? `service\0${subject.name}`
    : `member\0${subject.group}\0${subject.server}\0${subject.port}\0${subject.address ?? ''}`
}
