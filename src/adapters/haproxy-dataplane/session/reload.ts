import { until } from '../../../kit/until.js'
import { quote } from '../../../provider/quote.js'
import type { CallContext } from '../../../provider/contract.js'
import { DrainableError, isDrainableError } from '../../../provider/error.js'
import { PROVIDER, type DataplaneApi } from './session.js'
import { parseReload, parseReloads, type ProcessInfo, type Reloads } from '../codec/replies.js'
import { readProcess } from '../read/read.js'

/** Between two looks, in milliseconds: a reload takes from a tenth of a second to some seconds. */
const POLL = 250

/**
 * Follows a reload to its end: until the API says that it succeeded and another HAProxy process
 * answers. `succeeded` alone can mean that a signal was sent.
 *
 * @param before - the process before the change
 * @throws `REJECTED` where HAProxy refused the new configuration, `CALL_TIMEOUT` where no other process came
 */
export async function followReload(
  api: DataplaneApi,
  id: string | undefined,
  before: ProcessInfo,
  limit: number,
  ctx: CallContext,
): Promise<void> {
  let failure = `reload ${id ?? ''} did not end`
  const ended = await until(ctx, { every: POLL, within: limit }, async () => {
    try {
      const reload = id === undefined ? undefined : await readReload(api, id, ctx)
      if (reload?.status === 'failed') {
        throw new DrainableError(
          'REJECTED',
          `reload ${id ?? ''} failed: '${quote(reload.response)}'`,
          { provider: PROVIDER },
        )
      }
      const { pid } = await readProcess(api, ctx)
      if (pid !== before.pid && reload?.status !== 'in_progress') return true
      failure = `reload ${id ?? ''} is '${reload?.status ?? 'unknown'}', no other HAProxy process answers`
    } catch (error) {
      // while HAProxy, or the API itself, starts again
      if (!isDrainableError(error, 'UNREACHABLE', 'CONNECTION_LOST', 'CALL_TIMEOUT')) throw error
      ctx.signal.throwIfAborted()
      failure = error.message
    }
    return undefined
  })
  if (ended === true) return
  throw new DrainableError('CALL_TIMEOUT', `${api.instance}: ${failure} within ${limit} ms`, {
    provider: PROVIDER,
  })
}

/**
 * The reloads that the API tells of.
 *
 * @returns undefined where the API does not say, or not just now
 */
export async function readReloads(
  api: DataplaneApi,
  ctx: CallContext,
): Promise<Reloads | undefined> {
  const { paths } = await api.served(ctx)
  try {
    const reply = await api.get(paths.reloads, ctx)
    return reply.status === 200 ? api.parse(reply, parseReloads) : undefined
  } catch (error) {
    ctx.signal.throwIfAborted()
    if (!isDrainableError(error)) throw error
    return undefined
  }
}

async function readReload(
  api: DataplaneApi,
  id: string,
  ctx: CallContext,
): Promise<ReturnType<typeof parseReload> | undefined> {
  const { paths } = await api.served(ctx)
  const reply = await api.get(paths.reload(id), ctx)
  if (reply.status === 404) return undefined // only the last success and the failures are kept
  if (reply.status !== 200) throw api.toError(`GET reload ${id}`, reply)
  return api.parse(reply, parseReload)
}
