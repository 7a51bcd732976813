import { RecentMap } from '../../../kit/recent-map.js'
import type { AdminState } from '../../../provider/contract.js'
import type { Counts, Entry } from '../codec/rows.js'
import type { Subject } from '../codec/nitro.js'

/** What we did to a member, as long as no other client did something else since. */
export interface OwnDisable {
  /** What OUT OF SERVICE means here: reached out of our drain, or set. */
  readonly as: Exclude<AdminState, 'ready'>
  /** Whether a disable was sent for it: else it was only seen in that state, which a parent can have made. */
  readonly sent: boolean
  /**
   * A graceful disable of ours, with delay 0, of a member that was in service: when such a one goes
   * OUT OF SERVICE, it does so by itself, and nothing is left on it.
   */
  readonly graceful: boolean
  /** Counts readings: an older one knows nothing of this. */
  readonly since: number
  /** How the appliance showed it first; undefined until it was read back. */
  readonly fingerprint: string | undefined
  /** Which node, since when, showed it. */
  readonly incarnation: string | undefined
}

/**
 * The appliance says TROFS and OUT OF SERVICE, not why, and builds before 13.0 don't even say
 * whether a disable was graceful. So it is remembered here what we did, and dropped as soon as a
 * reading shows that another client did something else.
 */
export class Memory {
  readonly #disables = new Map<string, OwnDisable>()
  /** When each was last seen with work, by the clock of the calls; forgotten, it has not rested yet. */
  readonly #busy = new RecentMap<string, { at: number; arrivals: number | undefined }>()
  #readings = 0

  /** Taken before a reading is asked for. */
  stamp(): number {
    return ++this.#readings
  }

  did(subject: Subject, as: OwnDisable['as'], graceful: boolean): void {
    const unread = { fingerprint: undefined, incarnation: undefined }
    this.#keep(keyOf(subject), { as, sent: true, graceful, since: this.stamp(), ...unread })
  }

  /** Another name for the same state: nothing was sent for it. */
  rename(subject: Subject, as: OwnDisable['as'], entry: Entry): void {
    const key = keyOf(subject)
    const { sent = false, graceful = false, incarnation } = this.#disables.get(key) ?? {}
    const { fingerprint } = entry
    this.#keep(key, { as, sent, graceful, since: this.stamp(), fingerprint, incarnation })
  }

  forget(subject: Subject): void {
    this.#disables.delete(keyOf(subject))
  }

  /**
   * What holds of our disables, as far as this reading shows. A disable that outlived a reboot or a
   * failover may look different then and is ours still, but nothing is left of how it came about. A member that
   * is seen in TROFS goes OUT OF SERVICE as drained, whoever drained it.
   */
  recall(entry: Entry, stamp: number, incarnation: string): OwnDisable | undefined {
    const key = keyOf(entry.subject)
    const { fingerprint, phase } = entry
    const ours = this.#disables.get(key)
    if (ours === undefined) {
      if (phase !== 'trofs' || entry.byMonitor) return undefined
      const seen = { sent: false, graceful: false, since: stamp, fingerprint, incarnation }
      return this.#keep(key, { as: 'drain', ...seen })
    }
    if (stamp < ours.since) return ours
    const moved = ours.incarnation !== undefined && ours.incarnation !== incarnation
    const other = ours.fingerprint !== undefined && ours.fingerprint !== fingerprint
    if (phase === 'in' || (other && !moved)) {
      this.#disables.delete(key)
      return undefined
    }
    return this.#keep(key, { ...ours, graceful: ours.graceful && !moved, fingerprint, incarnation })
  }

  #keep(key: string, disable: OwnDisable): OwnDisable {
    this.#disables.set(key, disable)
    return disable
  }

  /** Takes a count in. Undefined: it could not be read, which is no rest. */
  counted(
    subject: Subject,
    counts: Pick<Counts, 'active' | 'queued' | 'arrivals'> | undefined,
    at: number,
  ): void {
    const key = keyOf(subject)
    const known = this.#busy.get(key)
    const rests =
      known !== undefined &&
      counts !== undefined &&
      counts.active + counts.queued === 0 &&
      counts.arrivals === known.arrivals
    if (!rests) this.#busy.set(key, { at, arrivals: counts?.arrivals })
  }

  /** For how long it was seen without work, in milliseconds. */
  restedFor(subject: Subject, now: number): number {
    return now - (this.#busy.get(keyOf(subject))?.at ?? now)
  }
}

/** One text per object. No name contains a NUL. */
export function keyOf(subject: Subject): string {
  return subject.kind === 'service'
    ? `service\0${subject.name}`
    : `member\0${subject.group}\0${subject.server}\0${subject.port}\0${subject.address ?? ''}`
}
