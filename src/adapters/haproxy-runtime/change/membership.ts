import { isObject } from '../../../kit/json.js'
import { parseVersion } from '../../../kit/version.js'
import { pause } from '../../../provider/clock.js'
import type { CallContext } from '../../../provider/contract.js'
import { quote } from '../../../provider/quote.js'
import { addServer, delServer, refusal, setState, waitRemovable } from '../codec/commands.js'
import { ownState, type ServerState } from '../codec/state.js'
import { putBack } from './restore.js'
import { Half, must, type Of, tell, type Tools } from './tools.js'

/** How long one call waits for the last connections of a server to remove, in milliseconds. */
const REMOVE_PATIENCE = 3_000

/** Removes a server from its backend; after a refusal, the server is as it was found. */
export async function remove(
  tools: Tools,
  { ref }: Of<'remove'>,
  found: ServerState,
  ctx: CallContext,
): Promise<undefined> {
  // HAProxy removes a server only from maintenance, and the change to maintenance closes its pooled connections. A
  // member that is in maintenance already is never opened to close them: HAProxy purges them by itself.
  const raised = ownState(found.admin) !== 'maint'
  if (raised) await must(tools, ref, setState(ref, 'maint'), ctx)
  const canWait = (parseVersion(tools.facts.info.version)?.major ?? 0) >= 3
  const until = ctx.clock.now() + REMOVE_PATIENCE
  const command = delServer(ref)
  for (;;) {
    if (canWait) await tools.point.change(tools.process, waitRemovable(ref, 300), ctx)
    const reply = await tell(tools, ref, command, ctx)
    if (reply.startsWith('Server deleted')) return
    const error = refusal(ref, command, reply)
    if (!/still has connections/.test(reply) || ctx.clock.now() >= until) {
      if (raised) await putBack(tools, ref, found, error, ctx)
      throw error
    }
    await pause(ctx.clock, 100, ctx.signal)
  }
}

/** Adds a server to its backend and opens it; after a refusal, the server is not there. */
export async function add(tools: Tools, change: Of<'add'>, ctx: CallContext): Promise<undefined> {
  const { ref, address, port, weight, native } = change
  const keywords = isObject(native) ? native['keywords'] : undefined
  const command = addServer(ref, {
    address,
    port,
    ...(weight === undefined ? {} : { weight }),
    ...(keywords === undefined ? {} : { keywords }),
  })
  const reply = await tools.point.change(tools.process, command, ctx)
  if (!reply.startsWith('New server registered')) throw refusal(ref, command, reply)
  // A new server is in maintenance, and its check and its agent are off.
  const words = typeof keywords === 'string' ? keywords.split(' ') : []
  const opening = [
    ...(words.includes('check') ? [`enable health ${ref.pool}/${ref.member}`] : []),
    ...(words.includes('agent-check') ? [`enable agent ${ref.pool}/${ref.member}`] : []),
    setState(ref, 'ready'),
  ].join(';')
  const opened = await tell(tools, ref, opening, ctx)
  if (opened === '') return
  const error = refusal(ref, opening, opened)
  const gone = await tell(tools, ref, delServer(ref), ctx)
  if (/^(Server deleted|No such server)/.test(gone)) throw error
  throw new Half(error, `it was added and could not be taken out again: '${quote(gone)}'`)
}
