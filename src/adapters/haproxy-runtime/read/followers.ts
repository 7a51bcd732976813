import type { Followers } from '../../../kit/haproxy/followers.js'
import { showStat } from '../codec/commands.js'
import { parseStat, type StatRow } from '../codec/stat.js'
import type { ServerState } from '../codec/state.js'
import { AnotherProcess, type Channel } from '../session/channel.js'
import type { Within } from '../session/socket.js'

/**
 * Whether a server can have followers: HAProxy refuses to track a server that has neither a check nor an agent and
 * does not track another one itself.
 *
 * @param tracks - whether it tracks another server; undefined if that is not known
 */
export function mayLead({ checked, agent }: ServerState, tracks: boolean | undefined): boolean {
  return checked || agent !== undefined || tracks !== false
}

/** Learns which servers track which from rows that were read anyway. */
export function learnFollowers(
  followers: Followers,
  scope: string,
  rows: readonly StatRow[],
): void {
  followers.learn(
    scope,
    rows.map(({ pool, name, tracked }) => ({ pool, member: name, tracked })),
  )
}

/**
 * Reads which servers track which, once per process, and only if a requested server can have followers.
 *
 * @param leads - whether any of them can, see {@link mayLead}
 * @returns whether it is known
 */
export async function readFollowers(
  followers: Followers,
  scope: string,
  leads: boolean,
  channel: Channel,
  ctx: Within,
): Promise<boolean> {
  if (followers.know(scope)) return true
  if (!leads) return false
  try {
    const { replies } = await channel.run([showStat('-1', 'servers')], ctx)
    learnFollowers(followers, scope, parseStat(replies[0] ?? ''))
    return true
  } catch (error) {
    if (error instanceof AnotherProcess) return false // reloaded since: the next look asks the new one
    throw error
  }
}
