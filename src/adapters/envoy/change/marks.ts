import { isDrainableError } from '../../../provider/error.js'
import type { Assignment } from '../codec/assignment.js'
import { NotPublished, Superseded } from '../sources/sink.js'
import type { EdsStatus } from '../codec/status.js'
import type { EndpointStore } from '../session/store.js'

/** Endpoints that we marked UNHEALTHY so that they can leave, with their statuses before. */
export type Marks = Map<string, EdsStatus | undefined>

/** How often the marks are taken away anew because the set was changed in between. */
const ATTEMPTS = 5

/** Remembers the statuses of endpoints in the set before their mark. The first mark is the one to undo. */
export function noteMarks(marks: Marks, before: Assignment, members: ReadonlySet<string>): void {
  for (const { member, status } of before.endpoints) {
    if (member !== undefined && members.has(member) && !marks.has(member)) {
      marks.set(member, status)
    }
  }
}

/**
 * Takes the marks away from the endpoints that still have them.
 *
 * @returns why some are left; undefined where none is
 */
export async function unmark(
  service: string,
  marks: Marks,
  {
    store,
    reload,
    signal,
  }: {
    readonly store: EndpointStore
    readonly reload: () => Promise<void>
    readonly signal: AbortSignal
  },
): Promise<string | undefined> {
  for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
    try {
      await reload()
      const set = store.set(service)
      if (set === undefined) return undefined
      const marked = set.endpoints.flatMap(({ member, status }) =>
        member !== undefined && status === 'UNHEALTHY' && marks.has(member) ? [member] : [],
      )
      const edits = new Map(
        marked.flatMap((member) => {
          const status = marks.get(member)
          return status === undefined ? [] : [[member, status] as const]
        }),
      )
      const next = set.withStatus(edits)
      if (next !== set) await store.publish(next, set, signal)
      return edits.size === marked.length ? undefined : 'its status before is not known'
    } catch (error) {
      signal.throwIfAborted()
      if (error instanceof Superseded) continue
      if (error instanceof NotPublished || isDrainableError(error)) return error.message
      throw error
    }
  }
  return 'the set is changed by another writer again and again'
}
