import type { MemberRef } from '../../../provider/contract.js'
import { refKey } from '../../../provider/member-ref.js'
import { AnotherProcess, type Channel } from '../session/channel.js'
import type { Within } from '../session/socket.js'
import { showStat } from '../codec/commands.js'
import { parseStat, type StatRow } from '../codec/stat.js'
import type { ServerState } from '../codec/state.js'

/**
 * Whether a server can have followers: HAProxy refuses to track a server that has neither a check nor an agent and
 * does not track another one itself.
 *
 * @param tracks - whether it tracks another server; undefined if that is not known
 */
export function mayLead({ checked, agent }: ServerState, tracks: boolean | undefined): boolean {
  return checked || agent !== undefined || tracks !== false
}

/**
 * Learns which servers track which: a drained server also drains its followers, and their followers. Only the
 * follower's row shows this, so all rows are read, once per process, and only if a requested server can have
 * followers (see {@link mayLead}).
 */
export class Followers {
  #scope = ''
  #byLeader: ReadonlyMap<string, readonly MemberRef[]> = new Map()

  /** Learns the followers by the leader's `refKey`, from rows that were read anyway. */
  learn(scope: string, rows: readonly StatRow[]): ReadonlyMap<string, readonly MemberRef[]> {
    const direct = new Map<string, MemberRef[]>()
    for (const { pool, name, tracked } of rows) {
      const slash = tracked.lastIndexOf('/')
      if (slash < 1) continue
      const key = refKey({ pool: tracked.slice(0, slash), member: tracked.slice(slash + 1) })
      direct.set(key, [...(direct.get(key) ?? []), { pool, member: name }])
    }
    this.#scope = scope
    this.#byLeader = new Map([...direct.keys()].map((leader) => [leader, allOf(leader, direct)]))
    return this.#byLeader
  }

  /** Returns the followers of a server, direct or along a chain; none if nothing is known yet. */
  of(ref: MemberRef): readonly MemberRef[] {
    return this.#byLeader.get(refKey({ pool: ref.pool, member: ref.member })) ?? []
  }

  /** @param leads - whether any of the requested servers can have followers */
  async read(
    scope: string,
    leads: boolean,
    channel: Channel,
    ctx: Within,
  ): Promise<ReadonlyMap<string, readonly MemberRef[]>> {
    if (scope === this.#scope) return this.#byLeader
    if (!leads) return new Map()
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

function allOf(
  leader: string,
  direct: ReadonlyMap<string, readonly MemberRef[]>,
): readonly MemberRef[] {
  const found = new Map<string, MemberRef>()
  const open = [leader]
  for (let key = open.pop(); key !== undefined; key = open.pop()) {
    for (const follower of direct.get(key) ?? []) {
      const next = refKey(follower)
      if (!found.has(next)) open.push(next)
      found.set(next, follower)
    }
  }
  return [...found.values()]
}
