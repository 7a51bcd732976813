import type { CallContext } from '../../../provider/contract.js'

/** How long one address is waited for while another one could do, in milliseconds. */
export const HEAD_START = 1_000

/** A call that is given up after a moment: to one of several addresses, or for what nothing depends on. */
export async function within<T>(
  ctx: CallContext,
  call: (ctx: CallContext) => Promise<T>,
  limit = HEAD_START,
): Promise<T> {
  const stop = new AbortController()
  const cancel = ctx.clock.setTimeout(() => stop.abort(), limit)
  try {
    return await call({ ...ctx, signal: AbortSignal.any([ctx.signal, stop.signal]) })
  } finally {
    cancel()
  }
}
