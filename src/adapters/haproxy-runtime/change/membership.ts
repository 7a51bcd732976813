import * as z from 'zod'
import { quote } from '../../../provider/quote.js'
import { pause } from '../../../provider/clock.js'
import type { CallContext, ChangeResult } from '../../../provider/contract.js'
import { addServer, delServer, refusal, setState, waitRemovable } from '../codec/commands.js'
import { ownState, type ServerState } from '../codec/state.js'
import { putBack } from './restore.js'
import { leftBehind, rejected, tell, type Of, type Workshop } from './workshop.js'
import { once } from '../../../provider/once.js'

/** How long one call waits for the last connections of a server to remove, in milliseconds. */
const REMOVE_PATIENCE = 3_000
/** Removes a server from its backend; after a refusal, the server is as it was found. */
export async function remove(
  shop: Workshop,
  change: Of<'remove'>,
  found: ServerState,
  ctx: CallContext,
): Promise<ChangeResult> {
  const { ref } = change
  // HAProxy removes a server only from maintenance, and the change to maintenance closes its pooled connections. A
  // member that is in maintenance already is never opened to close them: HAProxy purges them by itself.
  const raised = ownState(found.admin) !== 'maint'
  if (raised) {
    const raise = setState(ref, 'maint')
    const reply = await tell(shop, ref, raise, ctx)
    if (reply !== '') return rejected(ref, refusal(ref, raise, reply))
  }
  const until = ctx.clock.now() + REMOVE_PATIENCE
  const command = delServer(ref)
  for (;;) {
    if (shop.canWait) await shop.send(waitRemovable(ref, 300), ctx)
    const reply = await tell(shop, ref, command, ctx)
    if (reply.startsWith('Server deleted')) return { ref, status: 'applied' }
    const error = refusal(ref, command, reply)
    if (!/still has connections/.test(reply) || ctx.clock.now() >= until) {
      return raised ? putBack(shop, ref, found, error, ctx) : rejected(ref, error)
    }
    await pause(ctx.clock, 100, ctx.signal)
  }
}

const addSchema = once(() => z.looseObject({ keywords: z.string().exactOptional() }))

/** Adds a server to its backend and opens it; after a refusal, the server is not there. */
export async function add(
  shop: Workshop,
  change: Of<'add'>,
  ctx: CallContext,
): Promise<ChangeResult> {
  const { ref, address, port, weight, native } = change
  const options = addSchema().safeParse(native ?? {})
  const keywords = options.success ? options.data.keywords : undefined
  const command = addServer(ref, {
    address,
    port,
    ...(weight === undefined ? {} : { weight }),
    ...(keywords === undefined ? {} : { keywords }),
  })
  const reply = await shop.send(command, ctx)
  if (!reply.startsWith('New server registered')) return rejected(ref, refusal(ref, command, reply))
  // A new server is in maintenance, and its checks are off.
  const checked = keywords?.split(' ').includes('check') === true
  const opening = [
    ...(checked ? [`enable health ${ref.pool}/${ref.member}`] : []),
    setState(ref, 'ready'),
  ].join(';')
  const opened = await tell(shop, ref, opening, ctx)
  if (opened === '') return { ref, status: 'applied' }
  const error = refusal(ref, opening, opened)
  const gone = await tell(shop, ref, delServer(ref), ctx)
  if (/^(Server deleted|No such server)/.test(gone)) return rejected(ref, error)
  return leftBehind(ref, error, `it was added and could not be taken out again: '${quote(gone)}'`)
}
