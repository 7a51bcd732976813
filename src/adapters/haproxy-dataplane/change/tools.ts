import { refusal } from '../../../kit/errors.js'
import type { Sight } from '../../../kit/change.js'
import type { Followers } from '../../../kit/haproxy/followers.js'
import type { AdminState, CallContext, MemberRef } from '../../../provider/contract.js'
import { DrainableError, type ErrorCode, isDrainableError } from '../../../provider/error.js'
import { parseRuntimeServer, saysNotFound } from '../codec/replies.js'
import type { Settings } from '../options.js'
import type { Configured } from '../codec/configuration.js'
import type { Configuration } from '../read/configured.js'
import type { ProcessMemory } from '../read/doubts.js'
import { type Found, type Reader, readProcess, type RuntimeView } from '../read/read.js'
import { type DataplaneApi, isLost, PROVIDER } from '../session/session.js'
import type { ConfigWriter } from './config-writer.js'
import type { LastGood } from './durable.js'

/** What changes are made with. */
export interface Tools {
  readonly api: DataplaneApi
  readonly settings: Settings
  readonly reader: Reader
  readonly memory: ProcessMemory
  readonly followers: Followers
  readonly configuration: Configuration
  readonly writer: ConfigWriter
  readonly lastGood: LastGood
}

/** A server as found before a change, as the rules of changes see it. */
export interface Seen extends Sight {
  readonly ref: MemberRef
  readonly found: Found
  readonly view: RuntimeView
  readonly config: Configured
}

/** A change of a state that was sent: what the next look at the server must show. */
export interface Sent {
  readonly before: Seen
  readonly wished: AdminState
  /** `exactly` for a restore, `at least` for a hold. */
  readonly exactly: boolean
  /** The answer was lost: it may have been executed, or may still be. */
  readonly lost?: DrainableError
  /** The answer was a refusal that may be none: see `askServer`. */
  readonly refused?: DrainableError
  /** The weight that it is given back, once it is open: it was set to 0 for that. */
  readonly weight?: number
  /** What belongs to it in the configuration: written last, so that nothing of it is ever to be taken back. */
  readonly file?: (() => Promise<unknown>) | undefined
  /** The same once more, after a reload that failed and put back what was written. */
  readonly again?: (() => Promise<unknown>) | undefined
  /** How many it has cut by now. */
  readonly terminated?: number
}

/** The server of that name in a look. */
export function find({ pools }: RuntimeView, { pool, member }: MemberRef): Found | undefined {
  return pools.get(pool)?.get(member)
}

/** An error about a server. @param retryable - default: by the code */
export function failure(
  ref: MemberRef,
  code: ErrorCode,
  message: string,
  retryable?: boolean,
): DrainableError {
  return refusal(code, message, { provider: PROVIDER, ref }, retryable)
}

/** An error that says more than the one before it. */
export function extended(
  cause: DrainableError,
  message: string,
  retryable = cause.retryable,
): DrainableError {
  return new DrainableError(cause.code, message, { provider: PROVIDER, retryable, cause })
}

/** What was thrown in a call, as ours. @throws it, if it is an abort or no error of ours */
export function known(error: unknown, { signal }: CallContext): DrainableError {
  signal.throwIfAborted()
  if (!isDrainableError(error)) throw error
  return error
}

/** Sends one runtime change. Never a body that was read: 3.4 would take its weight and address for wishes. */
export async function putServer(
  api: DataplaneApi,
  ref: MemberRef,
  body: { readonly admin_state: AdminState } | { readonly weight: number },
  ctx: CallContext,
): Promise<void> {
  const { paths } = await api.served(ctx)
  const path = paths.server(ref.pool, ref.member)
  const reply = await api.send({ method: 'PUT', path, body }, ctx)
  if (reply.status === 200) {
    api.parse(reply, parseRuntimeServer)
    if ('admin_state' in body) api.unresolved.told(ref, body.admin_state)
    return
  }
  // the same words are said where HAProxy can't be reached: that is thrown here
  if (saysNotFound(reply.status, reply.words)) await readProcess(api, ctx)
  throw api.toError(`PUT ${path}`, reply)
}

/**
 * Asks for a state. What came of it is a value here, because the next look decides: an answer can be lost, the API says
 * 404 also where it can't reach HAProxy for a moment, and 500 also where HAProxy did it and only the read-back failed.
 */
export async function askServer(
  api: DataplaneApi,
  ref: MemberRef,
  to: AdminState,
  ctx: CallContext,
): Promise<Pick<Sent, 'lost' | 'refused'>> {
  try {
    await putServer(api, ref, { admin_state: to }, ctx)
    return {}
  } catch (thrown) {
    const error = known(thrown, ctx)
    return isLost(error) ? { lost: error } : { refused: error }
  }
}
