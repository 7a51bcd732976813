import type { MemberRef } from '../../../provider/contract.js'
import { refKey } from '../../../provider/member-ref.js'
import { AnotherProcess, type Channel } from '../session/channel.js'
import type { Within } from '../session/socket.js'
import { showStat } from '../codec/commands.js'
import { parseStat, type StatRow } from '../codec/stat.js'
import type { ServerState } from '../codec/state.js'

/**
 * Whether a server may have followers: HAProxy refuses to track one that has neither a check nor an agent, nor
 * tracks another itself.
 *
 * @param tracks - whether it does; undefined where that is not known
 */
export function mayLead({ checked, agent }: ServerState, tracks: boolean | undefined): boolean {
  return checked || agent !== undefined || tracks !== false
}

/**
 * Which servers track which: a drained server drains those that follow it, and those that follow them. Only the
 * follower's row says so, so all rows are read, once a process, and only where one is asked for that may
 * have any (see {@link mayLead}).
 */
export class Followers {
  #scope = ''
  #byLeader: ReadonlyMap<string, readonly MemberRef[]> = new Map()

  /** The followers by the leader's `refKey`, from rows that were read anyway. */
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

  /** Those that follow a server, directly or along a chain; none where nothing is known yet. */
  of(ref: MemberRef): readonly MemberRef[] {
    return this.#byLeader.get(refKey({ pool: ref.pool, member: ref.member })) ?? []
  }

  /** @param leads - whether any of the servers asked for may have followers */
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
