import { pause } from '../../../provider/clock.js'
import type { CallContext } from '../../../provider/contract.js'
import { caught } from '../../../kit/errors.js'
import type { Turnstile } from '../../../kit/turnstile.js'
import { DrainableError } from '../../../provider/error.js'
import type { JsonValue } from '../../../kit/json.js'
import { stateOf, toAdmin, type Words } from '../codec/members.js'
import { LEFT_OPEN, type Meaning } from '../codec/errors.js'
import { PROVIDER } from '../session/session.js'
import type { Device } from '../session/device.js'

/** Wait before a write that may not have happened is sent again. */
const AGAIN = 1_000
/** Wait before refused writes are read back once more: a device can carry out what it has answered with an error. */
const AFTER_ALL = 2_000

/** One PATCH of a member or node. */
export interface Write {
  readonly device: Device
  readonly path: string
  readonly words: Words
  /** Told before it is sent. */
  readonly onSend?: (() => void) | undefined
  /** Of all writes of a call: looks come in between, and one that waits to be read back keeps none waiting. */
  readonly turn: Turnstile
}

/** A write that was refused, or of which it is not known whether it was carried out. */
export interface Failed {
  readonly status: 'rejected' | 'unknown'
  readonly error: DrainableError
}

type Written = { readonly status: 'applied' } | Failed

/** What a write was answered with. */
type Answered = Written & {
  /** `rejected` in words that can be those of a layer that did not wait for the end. */
  readonly mayStillCome?: true
  /** Nothing behind the REST framework has seen it. */
  readonly isUnseen?: true
}

const APPLIED: Written = { status: 'applied' }

/**
 * One write; what may or may not have happened is read back. Where it shows no effect, it is sent once more if the device
 * answered that it was busy, and never if the answer was lost: it may come late.
 */
export async function writeOne(write: Write, ctx: CallContext): Promise<Written> {
  const once = (): Promise<Answered> => write.turn.run(ctx.signal, () => send(write, ctx))
  const first = await once()
  if (first.status === 'applied') return first
  if (first.status === 'rejected') {
    if (first.mayStillCome !== true) return first
    await pause(ctx.clock, AFTER_ALL, ctx.signal)
    return (await readBack(write, ctx)) === 'shown' ? APPLIED : first
  }
  await pause(ctx.clock, AGAIN, ctx.signal)
  const after = await readBack(write, ctx)
  if (after === 'shown') return APPLIED
  if (after === 'unread' || isLost(first.error)) return first
  const again = await once()
  return again.isUnseen === true ? first : again // which says nothing of the first one
}

/** Whether what was sent may still be carried out. */
function isLost({ code }: DrainableError): boolean {
  return code === 'CONNECTION_LOST' || code === 'CALL_TIMEOUT' || code === 'MALFORMED_REPLY'
}

/** What is read back after a write: `shown` is its effect, and `absent` the object itself. */
type Shown = 'shown' | 'lacking' | 'absent' | 'unread'

/** What a write that does not show comes to, by its answer and by what is read back. Any other answer is a refusal. */
const COMES_TO: Readonly<
  Partial<Record<Meaning['kind'], Record<Exclude<Shown, 'shown'>, 'rejected' | 'unknown'>>>
> = {
  ok: { lacking: 'rejected', absent: 'rejected', unread: 'unknown' },
  refused: { lacking: 'rejected', absent: 'rejected', unread: 'rejected' },
  // Said of an object that is there, it was said while the configuration loaded.
  absent: { lacking: 'unknown', absent: 'rejected', unread: 'unknown' },
}

async function send(write: Write, ctx: CallContext): Promise<Answered> {
  const { device, path, words, onSend } = write
  const { session } = device
  const what = `PATCH ${path}`
  const work = async (): Promise<Answered> => {
    onSend?.()
    const meaning = await session.ask({ method: 'PATCH', path, body: words }, ctx)
    const { kind } = meaning
    if (kind === 'ok' && shows(session.value(meaning, what), words)) return APPLIED
    const error = kind === 'ok' ? withoutEffect(what, session.host) : session.toError(meaning, what)
    if (kind === 'unregistered') return { status: 'rejected', error, isUnseen: true } // it still starts
    if (LEFT_OPEN.has(kind)) return { status: 'unknown', error }
    const table = COMES_TO[kind]
    if (table === undefined) return { status: 'rejected', error }
    if (kind === 'absent') await device.confirmReady(ctx)
    const shown = await readBack(write, ctx)
    if (shown === 'shown') return APPLIED
    // Done as far as it is known: sent again it would undo what another client does meanwhile.
    if (kind === 'ok' && shown === 'unread')
      return { status: 'unknown', error: notRead(what, session.host) }
    const mayStillCome = kind === 'refused' ? ({ mayStillCome: true } as const) : {}
    return { status: table[shown], error, ...mayStillCome }
  }
  return caught(ctx, work, (error): Failed => ({ status: 'unknown', error }))
}

function notRead(what: string, host: string): DrainableError {
  const words = `${what} at ${host} was answered with success, and could not be read back`
  return new DrainableError('CONNECTION_LOST', words, { provider: PROVIDER })
}

function withoutEffect(what: string, host: string): DrainableError {
  const words = `${what} at ${host} was answered with success, and shows no effect`
  return new DrainableError('REJECTED', words, { provider: PROVIDER })
}

/** What a template made goes along with it on some releases, whatever the answer to its own change was. */
async function readBack({ device, path, words }: Write, ctx: CallContext): Promise<Shown> {
  const read = async (): Promise<Shown> => {
    const item = await device.session.get(path, ctx)
    if (item === undefined) return 'absent'
    return shows(item, words) ? 'shown' : 'lacking'
  }
  return caught(ctx, read, () => 'unread' as const)
}

/** By rule, not by comparing words: `user-up` never reads back, and `user-enabled` only without a monitor. */
function shows(item: JsonValue, words: Words): boolean {
  const { session, state } = stateOf(item)
  return toAdmin(session, state) === toAdmin(words.session, words.state)
}
