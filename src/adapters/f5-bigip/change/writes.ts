import { pause } from '../../../provider/clock.js'
import type { CallContext } from '../../../provider/contract.js'
import { caught } from '../../../kit/errors.js'
import { DrainableError, isDrainableError } from '../../../provider/error.js'
import { isObject, type JsonValue } from '../../../kit/json.js'
import { stateOf, toAdmin, type Words } from '../codec/members.js'
import { memberPath } from '../codec/names.js'
import type { Device } from '../session/device.js'
import { LEFT_OPEN, type Meaning } from '../codec/errors.js'
import { PROVIDER } from '../session/session.js'
import type { Place } from './places.js'

/** From so many writes on, a transaction makes them one change of the configuration. */
const WORTH_A_TRANSACTION = 3
/** The device gives a transaction 30 s or more; so many requests fit in. */
const TRANSACTION_SIZE = 50
/** Wait before a write that may not have happened is sent again. */
const AGAIN = 1_000
/** Wait before refused writes are read back once more: a device can carry out what it has answered with an error. */
const AFTER_ALL = 2_000

/** One PATCH of a member or node. */
export interface Write {
  readonly place: Place
  readonly path: string
  readonly words: Words
  /** Told before it is sent; a transaction is sent with its end. */
  readonly onSend?: () => void
}

/** How a write went. */
export type Written =
  | { readonly status: 'applied' }
  | {
      readonly status: 'rejected' | 'unknown'
      readonly error: DrainableError
      /** `rejected` in words that can be those of a layer that did not wait for the end. */
      readonly mayStillCome?: true
    }

const APPLIED: Written = { status: 'applied' }

/**
 * Sends writes, several of one unit as one transaction; tells the outcome of each as it comes. Refused ones come
 * last: they are read back once more before that.
 */
export async function* writeAll(
  writes: readonly Write[],
  ctx: CallContext,
): AsyncGenerator<readonly [Write, Written]> {
  const refused = new Map<Write, Written>()
  for await (const [write, written] of sendAll(writes, ctx)) {
    if (written.status === 'rejected' && written.mayStillCome === true) refused.set(write, written)
    else yield [write, written]
  }
  if (refused.size === 0) return
  await pause(ctx.clock, AFTER_ALL, ctx.signal)
  for (const [write, written] of refused) {
    yield [write, (await readBack(write, ctx)) === 'shown' ? APPLIED : written]
  }
}

async function* sendAll(
  writes: readonly Write[],
  ctx: CallContext,
): AsyncGenerator<readonly [Write, Written]> {
  for (const [device, own] of Map.groupBy(writes, ({ place }) => place.device)) {
    for (let i = 0; i < own.length; i += TRANSACTION_SIZE) {
      const some = own.slice(i, i + TRANSACTION_SIZE)
      const worth = some.length >= WORTH_A_TRANSACTION
      const together = worth ? await writeTogether(device, some, ctx) : 'refused'
      const open = typeof together === 'string' ? undefined : together
      const shown = open === undefined ? new Set<Write>() : await shownInLists(device, some, ctx)
      for (const write of some) {
        if (together === 'done' || shown.has(write)) yield [write, APPLIED]
        else if (open !== undefined) yield [write, { status: 'unknown', error: open }]
        else yield [write, await writeOne(write, ctx)]
      }
    }
  }
}

/**
 * One change of the configuration for all of them.
 *
 * @returns `refused` where nothing was changed: each is to be tried by itself, so that one refusal does not stop the others. An
 * error where it may have been carried out, or may still be
 */
async function writeTogether(
  device: Device,
  writes: readonly Write[],
  ctx: CallContext,
): Promise<'done' | 'refused' | DrainableError> {
  const { session } = device
  let path: string | undefined
  let isCommitted = false
  let how: 'done' | 'refused' | DrainableError = 'refused'
  try {
    const open = { method: 'POST', path: '/mgmt/tm/transaction', body: {} } as const
    const opened = await session.ask(open, ctx)
    const what = 'POST /mgmt/tm/transaction'
    const id = opened.kind === 'ok' ? session.value(opened, what).at('transId').word() : undefined
    if (id === undefined) return how
    path = `/mgmt/tm/transaction/${encodeURIComponent(id)}`
    for (const { path: member, words } of writes) {
      const write = { method: 'PATCH', path: member, body: words, transaction: id } as const
      if (!isTaken(await session.ask(write, ctx))) return how
    }
    isCommitted = true
    for (const { onSend } of writes) onSend?.()
    const done = await session.ask({ method: 'PATCH', path, body: { state: 'VALIDATING' } }, ctx)
    if (done.kind === 'ok') {
      const state = session.value(done, `PATCH ${path}`).at('state')
      how = state.word() === 'COMPLETED' ? 'done' : state.wrong("'COMPLETED'")
    } else if (LEFT_OPEN.has(done.kind)) how = session.toError(done, `PATCH ${path}`)
  } catch (error) {
    if (ctx.signal.aborted || !isDrainableError(error)) throw error
    if (isCommitted && isLost(error)) how = error
  } finally {
    // One that failed stays until its time is over, and a device has few of them.
    if (path !== undefined && how === 'refused' && !ctx.signal.aborted) {
      const end = { method: 'DELETE', path } as const
      await caught(
        ctx,
        () => session.ask(end, ctx),
        () => undefined,
      )
    }
  }
  return how
}

/**
 * Whether a write is in the transaction: the end of it says nothing of one that is not. A success without a
 * word of it is what something in front of the device answered.
 */
function isTaken(meaning: Meaning): boolean {
  return meaning.kind === 'ok' && isObject(meaning.json) && Object.keys(meaning.json).length > 0
}

/** Those of the writes that show in the lists of their pools: a look at each pool in place of one at each member. */
async function shownInLists(
  device: Device,
  writes: readonly Write[],
  ctx: CallContext,
): Promise<ReadonlySet<Write>> {
  const shown = new Set<Write>()
  const look = async (): Promise<void> => {
    for (const pool of new Set(writes.flatMap(({ place }) => place.pool ?? []))) {
      const rows = (await device.listMembers(pool, ctx))?.rows ?? []
      const own = new Map(rows.map((row) => [memberPath(pool, row.fullPath), row.own]))
      for (const write of writes) {
        const { session, state } = write.words
        if (own.get(write.path) === toAdmin(session, state)) shown.add(write)
      }
    }
  }
  await caught(ctx, look, () => undefined)
  // No list has a node.
  for (const write of writes) {
    if (write.place.pool === undefined && (await readBack(write, ctx)) === 'shown') shown.add(write)
  }
  return shown
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

/**
 * One write; what may or may not have happened is read back. Where it shows no effect, it is sent once
 * more if the device answered that it was busy, and never if the answer was lost: it may come late.
 */
export async function writeOne(write: Write, ctx: CallContext): Promise<Written> {
  const first = await sendOne(write, ctx)
  if (first.status !== 'unknown') return first
  await pause(ctx.clock, AGAIN, ctx.signal)
  const after = await readBack(write, ctx)
  if (after === 'shown') return APPLIED
  return after === 'unread' || isLost(first.error) ? first : sendOne(write, ctx)
}

async function sendOne(write: Write, ctx: CallContext): Promise<Written> {
  const { place, path, words, onSend } = write
  const { session } = place.device
  const what = `PATCH ${path}`
  const send = async (): Promise<Written> => {
    onSend?.()
    const meaning = await session.ask({ method: 'PATCH', path, body: words }, ctx)
    const { kind } = meaning
    if (kind === 'ok' && shows(session.value(meaning, what), words)) return APPLIED
    const error = kind === 'ok' ? withoutEffect(what, session.host) : session.toError(meaning, what)
    if (LEFT_OPEN.has(kind)) return { status: 'unknown', error }
    const table = COMES_TO[kind]
    if (table === undefined) return { status: 'rejected', error }
    if (kind === 'absent') await place.device.confirmReady(ctx)
    const shown = await readBack(write, ctx)
    if (shown === 'shown') return APPLIED
    // Done as far as it is known: sent again it would undo what another client does meanwhile.
    if (kind === 'ok' && shown === 'unread')
      return { status: 'unknown', error: notRead(what, session.host) }
    const mayStillCome = kind === 'refused' ? ({ mayStillCome: true } as const) : {}
    return { status: table[shown], error, ...mayStillCome }
  }
  return caught(ctx, send, (error): Written => ({ status: 'unknown', error }))
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
async function readBack({ place, path, words }: Write, ctx: CallContext): Promise<Shown> {
  const read = async (): Promise<Shown> => {
    const item = await place.device.session.get(path, ctx)
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
