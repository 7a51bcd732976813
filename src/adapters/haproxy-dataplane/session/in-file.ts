import type { CallContext, MemberRef } from '../../../provider/contract.js'
import { parseRawLines } from '../codec/raw.js'
import type { Configuration } from './config.js'
import type { DataplaneApi } from './session.js'

/**
 * Whether the file has a server's line. Right after a failed reload the API's own configuration is not the
 * file: it rolls the file back, and goes on telling what it had in memory (2.9.25, 3.0.21, 3.2.13). Where
 * the text is kept from this user, that is all there is.
 */
export async function isInFile(
  api: DataplaneApi,
  configuration: Configuration,
  ref: MemberRef,
  ctx: CallContext,
): Promise<boolean> {
  const { paths } = await api.served(ctx)
  const reply = await api.get(paths.configRaw, ctx)
  const lines = reply.status === 200 ? parseRawLines(reply.text) : undefined
  return lines?.(ref.pool, ref.member) ?? (await configuration.line(ref, ctx)) !== undefined
}
