import { isObject } from '../../../kit/json.js'
import { formatSocket } from '../../../provider/address.js'
import type { CallContext, Change, ChangeResult, MemberRef } from '../../../provider/contract.js'
import { type DrainableError, isDrainableError } from '../../../provider/error.js'
import { formatRef } from '../../../provider/member-ref.js'
import { saysNotFound } from '../codec/replies.js'
import type { Found, RuntimeView } from '../read/read.js'
import { placeOf } from '../read/reading.js'
import { followReload } from '../session/reload.js'
import { askServer, extended, failure, find, known, thrown, type Tools } from './tools.js'

const WHERE = {
  listen: 'it is in a listen section',
  template: 'it is a slot of a server-template',
} as const

type Add = Change & { readonly kind: 'add' }

/**
 * Takes servers out of the configuration, with one reload for all of them.
 *
 * @returns of each what became of it; `run time` where it is only there
 */
export async function* takeOut(
  by: Tools,
  refs: readonly MemberRef[],
  view: RuntimeView,
  ctx: CallContext,
): AsyncGenerator<readonly [MemberRef, ChangeResult | 'run time']> {
  const gone: MemberRef[] = []
  let reloadId: string | undefined
  for (const [ref, removed] of await by.writer.remove(refs, ctx)) {
    if (removed === 'absent') yield [ref, await elsewhere(by, ref, view, ctx)]
    else if (isDrainableError(removed)) yield [ref, thrown(ref, removed)]
    else {
      gone.push(ref)
      reloadId = removed.reloadId
    }
  }
  if (gone.length > 0) yield* untilGone(by, gone, reloadId, view, ctx)
}

/** Not in the configuration as this API has it. */
async function elsewhere(
  { configuration }: Tools,
  ref: MemberRef,
  view: RuntimeView,
  ctx: CallContext,
): Promise<ChangeResult | 'run time'> {
  const { place } = await configuration.of(ref, view, ctx)
  if (place !== 'listen' && place !== 'template') return 'run time'
  const words = `${formatRef(ref)} can't be removed from the configuration: ${WHERE[place]}, which this API can't write`
  return { ref, status: 'rejected', error: failure(ref, 'UNSUPPORTED', words) }
}

/**
 * Removes at run time: the API puts the server into maint first, and leaves it there where it refuses. One try. "Still
 * has connections" passes, for 2.6 within 15 s: the caller asks again, others are not kept waiting.
 */
export async function remove(by: Tools, ref: MemberRef, ctx: CallContext): Promise<ChangeResult> {
  const { api } = by
  const { paths } = await api.served(ctx)
  const path = paths.server(ref.pool, ref.member)
  let reply
  try {
    reply = await api.send({ method: 'DELETE', path }, ctx)
  } catch (error) {
    ctx.signal.throwIfAborted()
    if (!isDrainableError(error, 'CONNECTION_LOST', 'CALL_TIMEOUT')) throw error
    // never sent twice without a look: it may have been executed, or may still be
    const found = await look(by, ref, ctx)
    if (found === undefined) return { ref, status: 'applied' }
    throw error
  }
  if (reply.status === 204) return { ref, status: 'applied' }
  if (saysNotFound(reply.status, reply.words)) {
    // also said where the API can't reach HAProxy for a moment
    const found = await look(by, ref, ctx)
    if (found === undefined) return { ref, status: 'unchanged' }
    const words = `${formatRef(ref)}: its removal was answered with '${reply.words}', but it is there; the API may not have reached HAProxy`
    return { ref, status: 'unknown', error: failure(ref, 'CONFLICT', words) }
  }
  if (!/still has connections/.test(reply.words)) throw api.toError(`DELETE ${path}`, reply)
  throw failure(ref, 'CONFLICT', `${formatRef(ref)} can't be removed yet: '${reply.words}'`)
}

async function* untilGone(
  by: Tools,
  refs: readonly MemberRef[],
  reloadId: string | undefined,
  view: RuntimeView,
  ctx: CallContext,
): AsyncGenerator<readonly [MemberRef, ChangeResult]> {
  const { reader, writer } = by
  const refused = await reload(by, reloadId, view, ctx)
  const after = await reader.view(refs, ctx)
  for (const ref of refs) {
    const found = find(after, ref)
    // the API rolls the file back, and what others changed within the same reload too
    const kept = refused !== undefined && (await writer.isInFile(ref, ctx))
    if (found === undefined && !kept) {
      yield [ref, { ref, status: 'applied' }]
      continue
    }
    const words = `${formatRef(ref)} is out of the configuration, but still in HAProxy after its reload`
    const error =
      refused === undefined
        ? failure(ref, 'CONFLICT', words)
        : saying(refused, ref, kept ? rolledBack(found) : WITHOUT_LINE)
    yield [ref, { ref, status: kept ? 'rejected' : 'unknown', error }]
  }
}

/** Follows a reload; returns why HAProxy refused the new configuration. */
async function reload(
  { api, settings }: Tools,
  id: string | undefined,
  view: RuntimeView,
  ctx: CallContext,
): Promise<DrainableError | undefined> {
  try {
    await followReload(api, id, view.info, settings.reloadTimeout, ctx)
    return undefined
  } catch (error) {
    if (!isDrainableError(error, 'REJECTED')) throw error
    return error
  }
}

/** Adds, and opens. New servers start in maint. */
export async function add(
  by: Tools,
  change: Add,
  view: RuntimeView,
  ctx: CallContext,
): Promise<ChangeResult> {
  const { ref } = change
  const { settings, writer } = by
  checkAdd(change, view, settings.membership)
  const more = isObject(change.native) ? change.native['server'] : undefined
  const line = {
    ...(isObject(more) ? more : {}),
    name: ref.member,
    address: change.address,
    port: change.port,
    ...(change.weight === undefined ? {} : { weight: change.weight }),
  }
  const added = settings.membership === 'configuration' ? await writer.add(ref, line, ctx) : 'there'
  let ours = false
  if (added === 'there') ours = await addAtRuntime(by, change, line, ctx)
  else if (added.reloadId !== undefined) {
    const refused = await reload(by, added.reloadId, view, ctx)
    if (refused !== undefined) {
      const kept = await writer.isInFile(ref, ctx)
      const what = kept ? WITH_LINE : 'the API rolled the file back, it was not added'
      const error = saying(refused, ref, what)
      return { ref, status: kept ? 'unknown' : 'rejected', error }
    }
  }
  return open(by, change, ours, ctx)
}

/** Returns whether it was this call that added it. */
async function addAtRuntime(
  by: Tools,
  change: Add,
  line: Record<string, unknown>,
  ctx: CallContext,
): Promise<boolean> {
  const { api } = by
  const { paths } = await api.served(ctx)
  const path = paths.servers(change.ref.pool)
  try {
    const reply = await api.send({ method: 'POST', path, body: line }, ctx)
    if (reply.status === 201) return true
    throw api.toError(`POST ${path}`, reply)
  } catch (error) {
    ctx.signal.throwIfAborted()
    // a lost answer, or "exists already" after one: what is there decides
    if (!isDrainableError(error, 'CONNECTION_LOST', 'CALL_TIMEOUT', 'CONFLICT')) throw error
    const found = await look(by, change.ref, ctx)
    if (found === undefined) throw error
    if (!isWanted(change, found)) throw isThere(change.ref, found)
    return false
  }
}

/** Opens a server that was added; one that is ours alone is taken out again where that is refused. */
async function open(
  by: Tools,
  change: Add,
  ours: boolean,
  ctx: CallContext,
): Promise<ChangeResult> {
  const { ref } = change
  const { refused } = await askServer(by, ref, 'ready', ctx)
  const found = await look(by, ref, ctx)
  if (found !== undefined && isWanted(change, found) && found.verdict.own === 'ready') {
    return { ref, status: 'applied' }
  }
  if (refused !== undefined) {
    const gone = found === undefined || (ours && (await isTakenOut(by, ref, ctx)))
    if (gone) return { ref, status: 'rejected', error: refused }
    const words = `${refused.message}; it was added, and could not be opened`
    return { ref, status: 'unknown', error: extended(ref, refused, words) }
  }
  const seen = found === undefined ? 'not there' : `'${found.row.status}'`
  const words = `${formatRef(ref)} was added, but it is ${seen} afterwards`
  return { ref, status: 'unknown', error: failure(ref, 'CONFLICT', words) }
}

async function isTakenOut(by: Tools, ref: MemberRef, ctx: CallContext): Promise<boolean> {
  try {
    const { status } = await remove(by, ref, ctx)
    return status === 'applied' || status === 'unchanged'
  } catch (error) {
    known(error, ctx)
    return false
  }
}

async function look(
  { reader }: Tools,
  ref: MemberRef,
  ctx: CallContext,
): Promise<Found | undefined> {
  return find(await reader.view([ref], ctx), ref)
}
const WITH_LINE = 'the file has it anyway, the next reload adds it'
const WITHOUT_LINE = 'the file no longer has it, the next reload removes it'

function rolledBack(found: Found | undefined): string {
  const now = found === undefined ? 'HAProxy no longer has it' : `it is '${found.row.status}'`
  return `the API rolled the file back, which still has it; ${now}`
}

/** A failed reload, and what was found after it. */
function saying(error: DrainableError, ref: MemberRef, what: string): DrainableError {
  return extended(ref, error, `${formatRef(ref)}: ${error.message}; ${what}`)
}

/** @throws what stands against an addition that needs no look */
function checkAdd(
  { ref, address, port, weight }: Add,
  view: RuntimeView,
  membership: 'runtime' | 'configuration',
): void {
  const isEarly = view.served.tree === 'v2'
  if (!view.pools.has(ref.pool) && !isEarly)
    throw failure(ref, 'NOT_FOUND', `there is no backend ${ref.pool}`)
  if (!/^[^\s;]+$/.test(address))
    throw failure(ref, 'REJECTED', `${formatRef(ref)}: '${address}' is no address`)
  if (!Number.isInteger(port) || port < 1 || port > 65_535) {
    const words = `expected a port from 1 to 65535, found ${port}`
    throw failure(ref, 'REJECTED', `${formatRef(ref)}: ${words}`)
  }
  if (isEarly && membership === 'runtime' && (weight ?? 1) !== 1) {
    const words = `Data Plane API 2.x drops the weight of a server added at run time; leave it out, or set membership: 'configuration'`
    throw failure(ref, 'UNSUPPORTED', `${formatRef(ref)}: ${words}`)
  }
}

function isThere(ref: MemberRef, found: Found): DrainableError {
  const at = placeOf(found).identity || 'its name does not resolve'
  return failure(ref, 'CONFLICT', `${formatRef(ref)} is there already: ${at}`, false)
}

function isWanted(change: Add, found: Found): boolean {
  return placeOf(found).identity === formatSocket(change.address, change.port)
}
