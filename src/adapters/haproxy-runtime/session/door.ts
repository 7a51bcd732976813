import type { CallContext } from '../../../provider/contract.js'
import { SHOW_STREAMS } from '../codec/commands.js'
import { countTunnels } from '../codec/streams.js'
import type { ProcessSight } from '../read/read.js'
import type { Channel } from './channel.js'
import type { Process } from './process.js'

/** The shortest time between two lists of streams, ms, and the part of the time that lists can take. */
const DOOR_LOOK = 500
const DOOR_SHARE = 20

/**
 * Checks whether a client can still come through an old process. The process takes no changes, so it keeps its state,
 * and a client with an answer in progress at the reload keeps its connection: its next request still goes to the
 * server. No client can come once only connections with a tunnel are left.
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
  // The next look counts connections that were accepted at the moment of the stop.
  if (!door.stopping) {
    door.stopping = true
    return
  }
  if (info.connections === 0) {
    door.closed = true
    return
  }
  const seen = [...members.values()]
  // One at zero waits for the door; another one's work, such as its WebSockets, has nothing to do with that.
  const waits = seen.some(({ own, row }) => own !== 'maint' && row.active + row.queued === 0)
  const due = door.askedAt + Math.max(DOOR_LOOK, door.cost * DOOR_SHARE)
  if (!waits || ctx.clock.now() < due) return
  door.askedAt = ctx.clock.now()
  const { info: then, replies } = await channel.run([SHOW_STREAMS], ctx)
  door.cost = ctx.clock.now() - door.askedAt
  // Counted before the streams were listed: nothing is accepted any more, so the count can only be too high.
  const { alone, shared } = countTunnels(replies[0] ?? '')
  door.left = Math.max(0, then.connections - alone)
  door.shared = shared
  door.closed = door.left === 0
}
