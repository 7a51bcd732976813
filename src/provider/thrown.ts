import { DrainableError, isDrainableError } from './error.js'

/** Codes that say that the network, or the way to the balancer, failed. */
const NETWORK =
  /^(?:E(?:AI_\w+|CONN\w+|HOST\w+|NET\w+|ADDRNOTAVAIL|NOENT|NOTFOUND|PIPE|TIMEDOUT|PROTO|ACCES|PERM|AGAIN)|ENOENT|ENOTFOUND|UND_ERR_\w+|ERR_(?:TLS|SSL|SOCKET|HTTP2|STREAM)\w*|CERT_\w+|DEPTH_ZERO_\w+|SELF_SIGNED_\w+|UNABLE_TO_\w+)$/

/** What was thrown, in words, whatever it is: also an object without a prototype has some. */
export function wordsOf(error: unknown): string {
  try {
    // Some clients reject with a plain object; an error of another realm is none of this one.
    const { message } = Object(error) as { readonly message?: unknown }
    return typeof message === 'string' ? message : String(error)
  } catch {
    return 'something that can not be said in words'
  }
}

/** What a provider threw, as ours: an error without a code of the network in it or its causes is a failure of the provider. */
export function toDrainableError(error: unknown, provider: string, what: string): DrainableError {
  if (isDrainableError(error)) return error
  const words = wordsOf(error)
  const code = codesOf(error).some((known) => NETWORK.test(known))
    ? 'CONNECTION_LOST'
    : 'PROVIDER_FAILED'
  return new DrainableError(code, `${what}: ${words}`, { provider, cause: error })
}

/** Codes of an error and of its causes. */
export function codesOf(error: unknown): readonly string[] {
  const codes: string[] = []
  const queue: unknown[] = [error]
  for (let depth = 0; depth < 20 && queue.length > 0; depth += 1) {
    const next = queue.shift()
    if (typeof next !== 'object' || next === null) continue
    const { code, cause, errors } = next as { code?: unknown; cause?: unknown; errors?: unknown }
    if (typeof code === 'string') codes.push(code)
    queue.push(cause, ...(Array.isArray(errors) ? (errors as unknown[]) : []))
  }
  return codes
}

/**
 * Whether the provider was closed: it will never answer again. `UNREACHABLE` is no such word, for good or
 * not: a certificate that ran out is renewed, and a run that stopped looking would hold nothing any more.
 */
export function isClosed(error: DrainableError): boolean {
  return !error.retryable && error.code === 'CONNECTION_LOST'
}

/** Whether an error says that the balancer, or the way to it, did not answer: not that it refused. */
export function isUnreachable(error: unknown): error is DrainableError {
  return isDrainableError(error, 'UNREACHABLE', 'CALL_TIMEOUT', 'CONNECTION_LOST')
}
