import { DrainableError, isDrainableError } from './error.js'

/** Codes for a failure of the network, or of the path to the balancer. */
const NETWORK =
  /^(?:E(?:AI_\w+|CONN\w+|HOST\w+|NET\w+|ADDRNOTAVAIL|NOENT|NOTFOUND|PIPE|TIMEDOUT|PROTO|ACCES|PERM|AGAIN)|ENOENT|ENOTFOUND|UND_ERR_\w+|ERR_(?:TLS|SSL|SOCKET|HTTP2|STREAM)\w*|CERT_\w+|DEPTH_ZERO_\w+|SELF_SIGNED_\w+|UNABLE_TO_\w+)$/

/** Describes any thrown value in words, even an object without a prototype. */
export function wordsOf(error: unknown): string {
  try {
    // Some clients reject with a plain object; an error of another realm is none of this one.
    const { message } = Object(error) as { readonly message?: unknown }
    return typeof message === 'string' ? message : String(error)
  } catch {
    return "a value that can't be converted to text"
  }
}

/**
 * Turns a value that a provider threw into our error. Without a network code in the error or its causes, it is a
 * failure of the provider.
 */
export function toDrainableError(error: unknown, provider: string, what: string): DrainableError {
  if (isDrainableError(error)) return error
  const words = wordsOf(error)
  const code = codesOf(error).some((known) => NETWORK.test(known))
    ? 'CONNECTION_LOST'
    : 'PROVIDER_FAILED'
  return new DrainableError(code, `${what}: ${words}`, { provider, cause: error })
}

/** The codes of an error and of its causes. */
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
 * Whether the provider was closed and will never answer again. `UNREACHABLE` does not mean that, even if it is not
 * retryable: an expired certificate gets renewed, and a run that stopped looking would no longer hold anything.
 */
export function isClosed(error: DrainableError): boolean {
  return !error.retryable && error.code === 'CONNECTION_LOST'
}

/** Whether an error means that the balancer, or the path to it, did not answer, rather than that it refused. */
export function isUnreachable(error: unknown): error is DrainableError {
  return isDrainableError(error, 'UNREACHABLE', 'CALL_TIMEOUT', 'CONNECTION_LOST')
}

/**
 * The end of every call on a provider that was closed. Mostly the provider was meant to live longer, and `await using`
 * closed it while a call without an `await` was under way.
 *
 * @param provider - its name
 * @param where - which of several it is: an address, a path
 */
export function closedError(provider: string, where: string, cause?: unknown): DrainableError {
  const words = `${where}: this provider was closed before the call ended: is an \`await\` missing?`
  const data = { provider, retryable: false }
  return new DrainableError(
    'CONNECTION_LOST',
    words,
    cause === undefined ? data : { ...data, cause },
  )
}
