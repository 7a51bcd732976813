import type { ChangeOf, Later } from '../../../kit/change.js'
import { refusal } from '../../../kit/errors.js'
import type { Followers } from '../../../kit/haproxy/followers.js'
import { atLeast, formatRef } from '../../../provider/member-ref.js'
import type {
  AdminState,
  CallContext,
  ChangeResult,
  MemberRef,
} from '../../../provider/contract.js'
import { DrainableError, type ErrorCode, isDrainableError } from '../../../provider/error.js'
import type { Marks } from '../codec/raw.js'
import { nameOf, parseRuntimeServer, saysNotFound } from '../codec/replies.js'
import type { Settings } from '../options.js'
import type { Configuration } from '../read/configured.js'
import type { ProcessMemory } from '../read/doubts.js'
import { type Found, type Reader, readProcess, type RuntimeView } from '../read/read.js'
import { type DataplaneApi, isLost, PROVIDER } from '../session/session.js'
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
}

/** A change of one server that is under way. */
export interface Underway {
  readonly ref: MemberRef
  /** The server before it, and the look that showed it so. */
  readonly before: Found
  readonly view: RuntimeView
  /** What takes back the writes that came with it. */
  readonly undo: Undo
}

/** A change that was sent: what the next look at the server must show. */
export interface Sent extends Underway {
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

/** What a change has written besides the state, as it was before: it is taken back, should the change be refused. */
export class Undo {
  /** The marks of its line, before the first write. */
  marks: Marks | undefined
  /** Whether its weight at run time was set to 0. */
  isWeighed = false

  get isEmpty(): boolean {
    return this.marks === undefined && !this.isWeighed
  }

  note(marks: Marks | undefined): void {
    this.marks ??= marks
  }
}

/** The state that a change asks for. */
export function wishOf(change: ChangeOf<'hold' | 'restore'>): Pick<Sent, 'wished' | 'exactly'> {
  return { wished: change.to, exactly: change.kind === 'restore' }
}

/** Whether a state is the wished one. */
export function isDone(
  { wished, exactly }: Pick<Sent, 'wished' | 'exactly'>,
  own: AdminState | 'unknown' | undefined,
): boolean {
  if (own === undefined || own === 'unknown') return false
  return exactly ? own === wished : atLeast(own, wished)
}

/** Whether a refusal can't hide that HAProxy did it all the same: see `askServer`. */
export function isFinal(refused: DrainableError | undefined): boolean {
  return refused !== undefined && refused.code !== 'NOT_FOUND' && refused.code !== 'REJECTED'
}

/** What became of a change that was sent, by the look after it. */
// eslint-disable-next-line complexity -- every pair of what was answered and what is seen
export function settle(sent: Sent, view: RuntimeView): ChangeResult {
  const reloaded = nameOf(sent.view.info) !== nameOf(view.info)
  const { ref, wished, exactly, lost, refused, terminated } = sent
  const found = view.pools.get(ref.pool)?.get(ref.member)
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

/** The same error, with the member it is about. */
export function about(ref: MemberRef, error: DrainableError): DrainableError {
  return error.ref === undefined
    ? extended(ref, error, `${formatRef(ref)}: ${error.message}`)
    : error
}

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
