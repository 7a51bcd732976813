import type { CallContext } from '../../../provider/contract.js'
import { SHOW_STREAMS } from '../codec/commands.js'
import { countTunnels, isOnlyFrom } from '../codec/streams.js'
import type { ProcessSight } from '../read/read.js'
import type { Channel } from './channel.js'
import type { KeptConnection } from './kept-connection.js'
import type { Process } from './process.js'

/** Streams are asked for at most that often, ms, and for at most one part in that many of the time. */
const DOOR_LOOK = 500
const DOOR_SHARE = 20

/**
 * Finds out whether a client can still come through an old process. It takes no changes, so it stays at
 * the state that it had, and a client whose answer was under way at the reload keeps its connection: its
 * next request goes to the server all the same. No client can come once no connection is left but those
 * that carry a tunnel.
 */
export async function checkDoor(
  process: Process,
  sight: ProcessSight,
  channel: Channel,
  ctx: CallContext,
): Promise<void> {
  const { door } = process
  const { info, members } = sight
  if (door.closed || !info.stopping) return
  door.left = info.connections
  if (door.left < door.shared) door.shared = 0
  // What was accepted in the moment in which it was told to stop is counted by the next look.
  if (!door.stopping) {
    door.stopping = true
    return
  }
  if (info.connections === 0) {
    door.closed = true
    return
  }
  const seen = [...members.values()]
  const matters = seen.some(({ own }) => own !== 'maint')
  const busy = seen.some(({ row }) => row.active + row.queued > 0)
  const due = door.askedAt + Math.max(DOOR_LOOK, door.cost * DOOR_SHARE)
  if (!matters || busy || ctx.clock.now() < due) return
  door.askedAt = ctx.clock.now()
  const { info: then, replies } = await channel.run([SHOW_STREAMS], ctx)
  door.cost = ctx.clock.now() - door.askedAt
  // Counted before its streams were listed: nothing is accepted any more, so it can only be too many.
  const { alone, shared } = countTunnels(replies[0] ?? '')
  door.left = Math.max(0, then.connections - alone)
  door.shared = shared
  door.closed = door.left === 0
}

/**
 * Whether no client but us is connected to an old process. Where a frontend of the same HAProxy stands before
 * the stats socket (for TLS), the connection that we keep is one of its clients, and would keep the process
 * for ever.
 */
export async function isLeftToUs(
  kept: KeptConnection,
  connections: number,
  channel: Channel,
  ctx: CallContext,
): Promise<boolean> {
  if (connections === 0) return true
  const { localPort } = kept
  const now = ctx.clock.now()
  if (connections > 1 || localPort === undefined || now < kept.soughtAt + DOOR_LOOK) return false
  kept.soughtAt = now
  const { info, replies } = await channel.run([SHOW_STREAMS], ctx)
  return info.connections <= 1 && isOnlyFrom(replies[0] ?? '', localPort)
}
