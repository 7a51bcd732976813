import type { Later, SeenMember } from '../../../kit/change.js'
import { refusal } from '../../../kit/errors.js'
import type { Followers } from '../../../kit/haproxy/followers.js'
import type { HeldMembers } from '../../../kit/haproxy/held.js'
import type {
  AdminState,
  CallContext,
  ChangeResult,
  MemberRef,
} from '../../../provider/contract.js'
import { DrainableError, type ErrorCode, isDrainableError } from '../../../provider/error.js'
import { atLeast, formatRef } from '../../../provider/member-ref.js'
import type { Marks } from '../codec/raw.js'
import { nameOf, parseRuntimeServer, saysNotFound } from '../codec/replies.js'
import type { Settings } from '../options.js'
import type { Configuration } from '../read/configured.js'
import type { ProcessMemory } from '../read/doubts.js'
import { type Found, type Reader, readProcess, type RuntimeView } from '../read/read.js'
import { type DataplaneApi, isLost } from '../session/session.js'
import { PROVIDER } from '../name.js'
import type { ConfigWriter } from './config-writer.js'
import type { DurableMarks } from './durable.js'

/** What changes are made with. */
export interface Tools {
  readonly api: DataplaneApi
  readonly settings: Settings
  readonly reader: Reader
  readonly memory: ProcessMemory
  readonly followers: Followers
  readonly configuration: Configuration
  readonly writer: ConfigWriter
  readonly marks: DurableMarks
  readonly held: HeldMembers
  /** Weights that we set to 0 at run time, as they were, by server. */
  readonly weights: Map<string, number>
}

/** A server as found before a change, and what the change has written since. */
export interface Seen extends SeenMember {
  readonly ref: MemberRef
  readonly found: Found
  /** The look that showed it so. */
  readonly view: RuntimeView
  /** What the file makes of it at the next reload: looked for where a ready server is to be made ready. */
  readonly stored: 'drain' | 'maint' | undefined
  /** What a change has written besides the state: it is taken back, should the change be refused. */
  readonly undo: Undo
}

interface Undo {
  /** The marks of its line, before the first write. */
  marks?: Marks
  /** Whether its weight at run time was set to 0. */
  isWeighed?: boolean
}

/** Whether a change has written anything besides the state. */
export function hasWritten({ undo }: Pick<Seen, 'undo'>): boolean {
  return undo.marks !== undefined || undo.isWeighed === true
}

/** A change that was sent: what the next look at the server must show. */
export interface Sent extends Seen {
  readonly wished: AdminState
  /** `exactly` for a restore, `at least` for a hold. */
  readonly exactly: boolean
  /** The answer was lost: it may have been executed, or may still be. */
  readonly lost?: DrainableError
  /** The answer was a refusal that may be none: see `askServer`. */
  readonly refused?: DrainableError
  /** What is left to be done once it is seen to be carried out. */
  readonly after?: ((view: RuntimeView) => Promise<unknown>) | undefined
  /** Takes its marks back once more, after a reload that failed and put them back. */
  readonly again?: (() => Promise<unknown>) | undefined
  /** How many it has cut by now. */
  readonly terminated?: number
}

/** What became of one change so far. */
export type Step = ChangeResult | Later<Sent>

/** An error about a server. @param retryable - default: by the code */
export function failure(
  ref: MemberRef,
  code: ErrorCode,
  message: string,
  retryable?: boolean,
): DrainableError {
  return refusal(code, message, { provider: PROVIDER, ref }, retryable)
}

/** An error about a server that says more than the one before it. */
export function extended(
  ref: MemberRef,
  cause: DrainableError,
  message: string,
  retryable = cause.retryable,
): DrainableError {
  const { retryAfter } = cause
  const asked = retryAfter === undefined ? {} : { retryAfter }
  const data = { provider: PROVIDER, ref, retryable, cause, ...asked }
  return new DrainableError(cause.code, message, data)
}

/** The same error, with the member it is about. */
export function about(ref: MemberRef, error: DrainableError): DrainableError {
  return error.ref === undefined
    ? extended(ref, error, `${formatRef(ref)}: ${error.message}`)
    : error
}

/** What became of a change whose request failed so. */
export function thrown(ref: MemberRef, error: DrainableError): ChangeResult {
  return { ref, status: isLost(error) ? 'unknown' : 'rejected', error: about(ref, error) }
}

/** What was thrown in a call, as ours. @throws it, if it is an abort or no error of ours */
export function known(error: unknown, { signal }: CallContext): DrainableError {
  signal.throwIfAborted()
  if (!isDrainableError(error)) throw error
  return error
}

/** A server in one look. */
export function find({ pools }: RuntimeView, { pool, member }: MemberRef): Found | undefined {
  return pools.get(pool)?.get(member)
}

/** Whether a state is the wished one. */
export function isDone(
  { wished, exactly }: Pick<Sent, 'wished' | 'exactly'>,
  own: AdminState | 'unknown' | undefined,
): boolean {
  if (own === undefined || own === 'unknown') return false
  return exactly ? own === wished : atLeast(own, wished)
}

/** What became of a change that was sent, by the look after it. */
// eslint-disable-next-line complexity -- every pair of what was answered and what is seen
export function settle(sent: Sent, view: RuntimeView): ChangeResult {
  const reloaded = nameOf(sent.view.info) !== nameOf(view.info)
  const { ref, wished, exactly, lost, refused, terminated } = sent
  const found = find(view, ref)
  const own = found?.verdict.own
  if (isDone(sent, own) && !reloaded) {
    const cut = terminated === undefined ? {} : { terminated, atMost: true }
    return { ref, status: 'applied', ...cut }
  }
  const seen = found === undefined ? 'gone' : `'${found.row.status}'`
  const doubt = found?.verdict.doubt === undefined ? '' : `: ${found.verdict.doubt}`
  const absent = found === undefined && refused?.code === 'NOT_FOUND'
  const denied = refused?.code === 'NOT_FOUND' && !absent
  const error =
    lost ??
    (refused === undefined || denied ? undefined : about(ref, refused)) ??
    failure(
      ref,
      'CONFLICT',
      denied
        ? `${formatRef(ref)}: '${wished}' was answered with "not found", but its status is ${seen}; the API may not have reached HAProxy`
        : reloaded
          ? `${formatRef(ref)}: HAProxy was reloaded while '${wished}' was set; it is ${seen} now`
          : `${formatRef(ref)}: '${wished}' was answered with 200, but its status is ${seen}${doubt}`,
      // the API takes it for done, or another client has changed it at once
      denied || reloaded,
    )
  if (absent && !reloaded) return { ref, status: 'rejected', error }
  const hidden = own === undefined || own === 'unknown' || (exactly && found?.verdict.hidden)
  // what was cut can't be put back
  const open =
    lost !== undefined || denied || reloaded || hidden === true || terminated !== undefined
  return { ref, status: open ? 'unknown' : 'rejected', error }
}

/** Sends one runtime change. Never a body that was read: 3.4 would take its weight and address for wishes. */
export async function putServer(
  { api, reader }: Pick<Tools, 'api' | 'reader'>,
  ref: MemberRef,
  body: { readonly admin_state?: AdminState } & Readonly<Record<string, unknown>>,
  ctx: CallContext,
): Promise<void> {
  const { paths } = await api.served(ctx)
  const path = paths.server(ref.pool, ref.member)
  const reply = await api.send({ method: 'PUT', path, body }, ctx)
  if (reply.status === 200) {
    api.parse(reply, parseRuntimeServer)
    if (body.admin_state !== undefined) reader.unresolved.told(ref, body.admin_state)
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
  by: Pick<Tools, 'api' | 'reader'>,
  ref: MemberRef,
  to: AdminState,
  ctx: CallContext,
): Promise<{ readonly refused?: DrainableError }> {
  try {
    await putServer(by, ref, { admin_state: to }, ctx)
    return {}
  } catch (error) {
    if (!isDrainableError(error) || ctx.signal.aborted || isLost(error)) throw error
    return { refused: error }
  }
}
