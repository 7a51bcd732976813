import type { MemberRef } from '../../../provider/contract.js'
import { refKey } from '../../../provider/member-ref.js'
import type { ProcessInfo, Tracking } from '../codec/replies.js'

/**
 * Which servers track which: a drained server drains those that follow it. Only the follower's row says
 * so, so the rows of all backends are read, once a process and before each drain.
 */
export class Followers {
  #processes = ''
  #byLeader: ReadonlyMap<string, readonly MemberRef[]> = new Map()

  /** Whether the rows of these processes were read. */
  know(infos: readonly ProcessInfo[]): boolean {
    return this.#processes === nameOf(infos)
  }

  /** Takes what the rows of all backends say. */
  learn(infos: readonly ProcessInfo[], all: readonly Tracking[]): void {
    const byLeader = new Map<string, MemberRef[]>()
    for (const { pool, member, tracked } of all) {
      const slash = tracked.lastIndexOf('/')
      if (slash < 1) continue
      const key = refKey({ pool: tracked.slice(0, slash), member: tracked.slice(slash + 1) })
      byLeader.set(key, [...(byLeader.get(key) ?? []), { pool, member }])
    }
    this.#processes = nameOf(infos)
    this.#byLeader = byLeader
  }

  /** Those that follow a server: directly, or one that follows it. */
  of({ pool, member }: MemberRef): readonly MemberRef[] {
    const found = new Map<string, MemberRef>()
    const open = [{ pool, member }]
    for (let ref = open.pop(); ref !== undefined; ref = open.pop()) {
      for (const follower of this.#byLeader.get(refKey(ref)) ?? []) {
        if (found.has(refKey(follower))) continue
        found.set(refKey(follower), follower)
        open.push(follower)
      }
    }
    return [...found.values()]
  }
}

/** Names the processes that answered. */
export function nameOf(infos: readonly ProcessInfo[]): string {
  return infos.map((info) => `${info.node}/${info.pid}`).join()
}
