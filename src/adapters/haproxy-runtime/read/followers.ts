import type { MemberRef } from '../../../provider/contract.js'
import { refKey } from '../../../provider/member-ref.js'
import { AnotherProcess, type Channel } from '../session/channel.js'
import type { Within } from '../session/socket.js'
import { showStat } from '../codec/commands.js'
import { parseStat, type StatRow } from '../codec/stat.js'
import type { ServerState } from '../codec/state.js'

/**
 * Which servers track which: a drained server drains those that follow it. Only the follower's row
 * says so, so all rows are read, once a process, and only where a server with a check is asked for
 * (HAProxy refuses to track any other).
 */
export class Followers {
  #scope = ''
  #byLeader: ReadonlyMap<string, readonly MemberRef[]> = new Map()

  /** The followers by the leader's `refKey`, from rows that were read anyway. */
  learn(scope: string, rows: readonly StatRow[]): ReadonlyMap<string, readonly MemberRef[]> {
    const byLeader = new Map<string, MemberRef[]>()
    for (const { pool, name, tracked } of rows) {
      const slash = tracked.lastIndexOf('/')
      if (slash < 1) continue
      const key = refKey({ pool: tracked.slice(0, slash), member: tracked.slice(slash + 1) })
      byLeader.set(key, [...(byLeader.get(key) ?? []), { pool, member: name }])
    }
    this.#scope = scope
    this.#byLeader = byLeader
    return byLeader
  }

  /** The followers of one server; none where nothing is known yet. */
  of(ref: MemberRef): readonly MemberRef[] {
    return this.#byLeader.get(refKey({ pool: ref.pool, member: ref.member })) ?? []
  }

  async read(
    scope: string,
    sights: readonly { readonly state: ServerState }[],
    channel: Channel,
    ctx: Within,
  ): Promise<ReadonlyMap<string, readonly MemberRef[]>> {
    if (scope === this.#scope) return this.#byLeader
    if (!sights.some(({ state }) => state.checked)) return new Map()
    try {
      const {
        replies: [reply = ''],
      } = await channel.run([showStat('-1', 'servers')], ctx)
      return this.learn(scope, parseStat(reply))
    } catch (error) {
      if (error instanceof AnotherProcess) return new Map() // reloaded since: the next look asks the new one
      throw error
    }
  }
}
