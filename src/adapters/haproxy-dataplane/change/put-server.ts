import type { AdminState, CallContext, MemberRef } from '../../../provider/contract.js'
import { isDrainableError, type DrainableError } from '../../../provider/error.js'
import { isLost, type DataplaneApi } from '../session/session.js'
import { parseRuntimeServer, saysNotFound } from '../codec/replies.js'
import { readProcess } from '../read/read.js'

/** Sends one runtime change. Never a body that was read: 3.4 would take its weight and address for wishes. */
export async function putServer(
  api: DataplaneApi,
  ref: MemberRef,
  body: { readonly admin_state?: AdminState } & Readonly<Record<string, unknown>>,
  ctx: CallContext,
): Promise<void> {
  const { paths } = await api.served(ctx)
  const path = paths.server(ref.pool, ref.member)
  const reply = await api.send({ method: 'PUT', path, body }, ctx)
  if (reply.status === 200) {
    api.parse(reply, parseRuntimeServer)
    if (body.admin_state !== undefined) api.unresolved.told(ref, body.admin_state)
    return
  }
  // the same words are said where HAProxy can't be reached: that is thrown here
  if (saysNotFound(reply.status, reply.words)) await readProcess(api, ctx)
  throw api.toError(`PUT ${path}`, reply)
}

/**
 * Asks for a state. A refusal is a value here, because the next look decides what it was: the API
 * answers 404 also where it can't reach HAProxy for a moment, and 500 also where HAProxy did it and
 * only the read-back failed.
 */
export async function askServer(
  api: DataplaneApi,
  ref: MemberRef,
  to: AdminState,
  ctx: CallContext,
): Promise<{ readonly refused?: DrainableError }> {
  try {
    await putServer(api, ref, { admin_state: to }, ctx)
    return {}
  } catch (error) {
    if (!isDrainableError(error) || ctx.signal.aborted || isLost(error)) throw error
    return { refused: error }
  }
}
