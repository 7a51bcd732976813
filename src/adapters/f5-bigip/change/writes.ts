import { pause } from '../../../provider/clock.js'
import type { CallContext } from '../../../provider/contract.js'
import { caught } from '../../../kit/errors.js'
import { DrainableError, isDrainableError } from '../../../provider/error.js'
import { quote } from '../../../provider/quote.js'
import { isObject, type JsonValue } from '../../../kit/json.js'
import { stateOf, toAdmin, type Words } from '../codec/members.js'
import { memberPath } from '../codec/names.js'
import type { Device } from '../session/device.js'
import type { Meaning } from '../codec/errors.js'
import { PROVIDER, type Session } from '../session/session.js'

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
  readonly device: Device
  readonly path: string
  readonly words: Words
  /** Pool whose list shows the effect; none for a node. */
  readonly pool: string | undefined
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
    yield [write, (await isSo(write, ctx)) ? { status: 'applied' } : written]
  }
}

async function* sendAll(
  writes: readonly Write[],
  ctx: CallContext,
): AsyncGenerator<readonly [Write, Written]> {
  for (const device of new Set(writes.map((write) => write.device))) {
    const own = writes.filter((write) => write.device === device)
    for (let i = 0; i < own.length; i += TRANSACTION_SIZE) {
      const some = own.slice(i, i + TRANSACTION_SIZE)
      const together: Together =
        some.length >= WORTH_A_TRANSACTION
          ? await writeTogether(device, some, ctx)
          : { how: 'refused' }
      const shown =
        together.how === 'done' || together.how === 'refused'
          ? new Set(together.how === 'done' ? some : [])
          : await shownInLists(device, some, ctx)
      for (const write of some) {
        if (shown.has(write)) yield [write, { status: 'applied' }]
        else yield [write, await finish(write, together, ctx)]
      }
    }
  }
}

/**
 * How a transaction went. `refused`: nothing was changed. `said`: it was answered with success, but not
 * that it is completed. `busy`: it was answered, and may or may not have been carried out. `lost`: it
 * may still be.
 */
type Together =
  | { readonly how: 'done' | 'said' | 'refused' | 'busy' }
  | { readonly how: 'lost'; readonly error: DrainableError }

/** What becomes of one write that no list shows after its transaction. */
async function finish(write: Write, together: Together, ctx: CallContext): Promise<Written> {
  if (together.how === 'lost') return { status: 'unknown', error: together.error }
  return together.how === 'said' ? check(write, ctx) : writeOne(write, ctx)
}

/**
 * One change of the configuration for all of them. Where the device refused, each is to be tried by
 * itself, so that one refusal does not stop the others.
 */
async function writeTogether(
  device: Device,
  writes: readonly Write[],
  ctx: CallContext,
): Promise<Together> {
  const { session } = device
  let path: string | undefined
  let committed = false
  let how: Together = { how: 'refused' }
  try {
    const open = { method: 'POST', path: '/mgmt/tm/transaction', body: {} } as const
    const opened = await session.ask(open, ctx)
    if (opened.kind !== 'ok') return how
    const id = session.value(opened, 'POST /mgmt/tm/transaction').at('transId').word()
    if (id === undefined) return how
    path = `/mgmt/tm/transaction/${encodeURIComponent(id)}`
    for (const { path: member, words } of writes) {
      const write = { method: 'PATCH', path: member, body: words, transaction: id } as const
      if (!isTaken(await session.ask(write, ctx))) return how
    }
    committed = true
    for (const { onSend } of writes) onSend?.()
    const done = await session.ask({ method: 'PATCH', path, body: { state: 'VALIDATING' } }, ctx)
    how = outcomeOf(session, done, path)
    return how
  } catch (error) {
    if (ctx.signal.aborted || !isDrainableError(error)) throw error
    how = committed && isLost(error) ? { how: 'lost', error } : how
    return how
  } finally {
    if (path !== undefined && how.how === 'refused' && !ctx.signal.aborted)
      await discard(session, path, ctx)
  }
}

/**
 * Whether a write is in the transaction: the end of it says nothing of one that is not. A success without a
 * word of it is what something in front of the device answered.
 */
function isTaken(meaning: Meaning): boolean {
  return meaning.kind === 'ok' && isObject(meaning.json) && Object.keys(meaning.json).length > 0
}

function outcomeOf(session: Session, done: Meaning, path: string): Together {
  if (done.kind === 'ok') {
    const state = session.value(done, `PATCH ${path}`).at('state').word()
    return { how: state === 'COMPLETED' ? 'done' : 'said' }
  }
  if (done.kind === 'garbage' || done.kind === 'open')
    return { how: 'lost', error: session.toError(done, `PATCH ${path}`) }
  return { how: done.kind === 'later' ? 'busy' : 'refused' }
}

/** A transaction that failed stays until its time is over, and a device has few of them: it is deleted. */
async function discard(session: Session, path: string, ctx: CallContext): Promise<void> {
  await caught(
    ctx,
    () => session.ask({ method: 'DELETE', path }, ctx),
    () => undefined,
  )
}

/** Those of the writes that show in the lists of their pools: a look at each pool in place of one at each member. */
async function shownInLists(
  device: Device,
  writes: readonly Write[],
  ctx: CallContext,
): Promise<ReadonlySet<Write>> {
  const shown = new Set<Write>()
  const look = async (): Promise<void> => {
    for (const pool of new Set(writes.flatMap((write) => write.pool ?? []))) {
      const rows = (await device.listMembers(pool, ctx))?.rows ?? []
      const own = new Map(rows.map((row) => [memberPath(pool, row.fullPath), row.own]))
      for (const write of writes) {
        const { session, state } = write.words
        if (own.get(write.path) === toAdmin(session, state)) shown.add(write)
      }
    }
  }
  await caught(ctx, look, () => undefined)
  return shown
}

/** Whether what was sent may still be carried out. */
function isLost({ code }: DrainableError): boolean {
  return code === 'CONNECTION_LOST' || code === 'CALL_TIMEOUT' || code === 'MALFORMED_REPLY'
}

/** Answers that say nothing of what became of a write. */
const LEFT_OPEN: ReadonlySet<Meaning['kind']> = new Set(['later', 'open', 'garbage'])

/**
 * One write; what may or may not have happened is read back. Where it shows no effect, it is sent once
 * more if the device answered that it was busy, and never if the answer was lost: it may come late.
 */
export async function writeOne(write: Write, ctx: CallContext): Promise<Written> {
  const { device, path, words } = write
  const what = `PATCH ${path}`
  for (let attempt = 0; ; attempt += 1) {
    let error: DrainableError
    try {
      write.onSend?.()
      const meaning = await device.session.ask({ method: 'PATCH', path, body: words }, ctx)
      if (meaning.kind === 'ok') {
        return shows(device.session.value(meaning, what), words)
          ? { status: 'applied' }
          : await check(write, ctx)
      }
      error = device.session.toError(meaning, what)
      if (meaning.kind === 'absent') {
        await device.confirmReady(ctx)
        if ((await device.session.get(path, ctx)) === undefined)
          return { status: 'rejected', error }
      } else if (meaning.kind === 'refused') {
        return (await isSo(write, ctx))
          ? { status: 'applied' }
          : { status: 'rejected', error, mayStillCome: true }
      } else if (!LEFT_OPEN.has(meaning.kind)) return { status: 'rejected', error }
    } catch (thrown) {
      if (ctx.signal.aborted || !isDrainableError(thrown)) throw thrown
      error = thrown
    }
    if (attempt > 0) return { status: 'unknown', error }
    await pause(ctx.clock, AGAIN, ctx.signal)
    const after = await caught(
      ctx,
      () => device.session.get(path, ctx),
      () => 'unread' as const,
    )
    if (after !== 'unread' && shows(after, words)) return { status: 'applied' }
    if (after === 'unread' || isLost(error)) return { status: 'unknown', error }
  }
}

/** Whether it is as a refused write would have made it: what a template made goes along with it on some releases. */
async function isSo({ device, path, words }: Write, ctx: CallContext): Promise<boolean> {
  const read = async (): Promise<boolean> => shows(await device.session.get(path, ctx), words)
  return caught(ctx, read, () => false)
}

/** Whether a write shows on the device. */
async function check({ device, path, words }: Write, ctx: CallContext): Promise<Written> {
  const look = async (): Promise<Written> => {
    const read = await device.session.get(path, ctx)
    if (shows(read, words)) return { status: 'applied' }
    const { session, state } = read === undefined ? {} : stateOf(read)
    const why = `PATCH ${path} at ${device.host} was answered with success, but it reads session '${quote(session ?? '')}', state '${quote(state ?? '')}'`
    return {
      status: 'rejected',
      error: new DrainableError('REJECTED', why, { provider: PROVIDER }),
    }
  }
  return caught(ctx, look, (error) => ({ status: 'unknown', error }))
}

/** By rule, not by comparing words: `user-up` never reads back, and `user-enabled` only without a monitor. */
function shows(item: JsonValue | undefined, words: Words): boolean {
  if (item === undefined) return false
  const { session, state } = stateOf(item)
  return toAdmin(session, state) === toAdmin(words.session, words.state)
}
