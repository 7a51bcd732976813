import type { AdminState, Advice, MemberRef } from '../../provider/contract.js'
import { refKey } from '../../provider/member-ref.js'

const SETTINGS = 'server-state-file in global, and load-server-state-from-file in defaults'

/** What a reload has shown of a state file. */
const OPENED: Advice = {
  text: 'the last reload opened what was drained until it was put back: no state file is in force, or it was not written before the reload',
  hint: `set ${SETTINGS}, and write the states before each reload`,
}

/** What is known of one before: no command tells of it (2.6, 3.0, 3.2 and 3.4). */
export const STATE_FILE_UNKNOWN = `HAProxy does not tell whether a state file is in force (${SETTINGS}): without one, a reload opens what is drained until the drain is put back`

/** Whether the last reload has opened what was drained: then no state file is in force. */
export class OpenedByReload {
  /** The process in which each server was drained, by its key. */
  readonly #drainedIn = new Map<string, string>()
  #process = ''
  #has = false

  get advice(): Advice | undefined {
    return this.#has ? OPENED : undefined
  }

  /**
   * Takes in a look.
   *
   * @param process - names the one that serves
   */
  note(process: string, members: Iterable<Member>): void {
    if (process !== this.#process) this.#has = false
    this.#process = process
    for (const { ref, own } of members) {
      const key = refKey({ pool: ref.pool, member: ref.member })
      const before = this.#drainedIn.get(key) ?? process
      this.#has ||= before !== process && own === 'ready'
      if (own === 'drain' || own === 'maint') this.#drainedIn.set(key, process)
      else this.#drainedIn.delete(key)
    }
  }
}

interface Member {
  readonly ref: MemberRef
  readonly own: AdminState | 'unknown'
}
