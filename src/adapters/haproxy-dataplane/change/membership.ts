import { isObject } from '../../../kit/json.js'
import type { Begun, ChangeOf, ChangeOutcome } from '../../../kit/change.js'
import { formatSocket } from '../../../provider/address.js'
import type { CallContext, MemberRef } from '../../../provider/contract.js'
import { type DrainableError, type ErrorCode, isDrainableError } from '../../../provider/error.js'
import { formatRef } from '../../../provider/member-ref.js'
import { saysNotFound } from '../codec/replies.js'
import type { Found, RuntimeView } from '../read/read.js'
import { identify } from '../read/reading.js'
import { followReload } from '../session/reload.js'
import { isLost } from '../session/session.js'
import { isTaken } from './config-writer.js'
import { askServer, extended, failure, find, known, type Seen, type Tools } from './tools.js'

const WHERE = {
  listen: 'it is in a listen section',
  template: 'it is a slot of a server-template',
} as const

type Add = ChangeOf<'add'>

/** Takes servers out of a backend and puts them in, at run time or in the configuration. */
export class Membership {
  readonly #tools: Tools

  constructor(tools: Tools) {
    this.#tools = tools
  }

  /**
   * Takes servers out of the configuration, with one reload for all of them.
   *
   * @returns of each what became of it; `run time` where it is only there
   */
  async *takeOut<L>(
    begun: readonly Begun<Seen, L>[],
    view: RuntimeView,
    ctx: CallContext,
  ): AsyncGenerator<readonly [Begun<Seen, L>, ChangeOutcome | 'run time']> {
    const { reader, writer } = this.#tools
    const removed = await writer.remove(
      begun.map(({ change }) => change.ref),
      ctx,
    )
    const gone: Begun<Seen, L>[] = []
    let reloadId: string | undefined
    for (const one of begun) {
      const is = removed.get(one.change.ref)
      if (isTaken(is)) {
        gone.push(one)
        reloadId = is.reloadId
      } else if (isDrainableError(is))
        yield [one, { status: isLost(is) ? 'unknown' : 'rejected', error: is }]
      else yield [one, elsewhere(one.change.ref, one.found)]
    }
    if (gone.length === 0) return
    const refused = await this.#reload(reloadId, view, ctx)
    const now = await reader.view(
      gone.map(({ change }) => change.ref),
      ctx,
    )
    for (const one of gone) {
      const { ref } = one.change
      const found = find(now, ref)
      // the API rolls the file back, and what others changed within the same reload too
      const kept = refused !== undefined && (await writer.isInFile(ref, ctx))
      if (found === undefined && !kept) {
        yield [one, { status: 'applied' }]
        continue
      }
      const words = `${formatRef(ref)} is out of the configuration, but still in HAProxy after its reload`
      const error =
        refused === undefined
          ? failure(ref, 'CONFLICT', words)
          : saying(refused, ref, kept ? rolledBack(found) : WITHOUT_LINE)
      yield [one, { status: kept ? 'rejected' : 'unknown', error }]
    }
  }

  /**
   * Removes at run time: the API puts the server into maint first, and leaves it there where it refuses. One try. "Still
   * has connections" passes, for 2.6 within 15 s: the caller asks again, others are not kept waiting.
   *
   * @throws what stands against it
   */
  async remove(ref: MemberRef, ctx: CallContext): Promise<ChangeOutcome> {
    const { api } = this.#tools
    const { paths } = await api.served(ctx)
    const path = paths.server(ref.pool, ref.member)
    let reply
    try {
      reply = await api.send({ method: 'DELETE', path }, ctx)
    } catch (error) {
      // never sent twice without a look: it may have been executed, or may still be
      if (isLost(known(error, ctx)) && (await this.#look(ref, ctx)) === undefined)
        return { status: 'applied' }
      throw error
    }
    if (reply.status === 204) return { status: 'applied' }
    if (saysNotFound(reply.status, reply.words)) {
      // also said where the API can't reach HAProxy for a moment
      if ((await this.#look(ref, ctx)) === undefined) return { status: 'unchanged' }
      const words = `${formatRef(ref)}: its removal was answered with '${reply.words}', but it is there; the API may not have reached HAProxy`
      return { status: 'unknown', error: failure(ref, 'CONFLICT', words) }
    }
    if (!/still has connections/.test(reply.words)) throw api.toError(`DELETE ${path}`, reply)
    const words = `${formatRef(ref)} can't be removed yet: '${reply.words}'`
    throw failure(ref, 'CONFLICT', words)
  }

  /** Follows a reload; returns why HAProxy refused the new configuration. */
  async #reload(
    id: string | undefined,
    view: RuntimeView,
    ctx: CallContext,
  ): Promise<DrainableError | undefined> {
    try {
      const limit = this.#tools.settings.reloadTimeout
      await followReload(this.#tools.api, id, view.info, limit, ctx)
      return undefined
    } catch (error) {
      if (!isDrainableError(error, 'REJECTED')) throw error
      return error
    }
  }

  /** Adds, and opens. New servers start in maint. */
  async add(change: Add, view: RuntimeView, ctx: CallContext): Promise<ChangeOutcome> {
    const { ref } = change
    const { settings, writer } = this.#tools
    checkAdd(change, view, settings.membership)
    const more = isObject(change.native) ? change.native['server'] : undefined
    const line = {
      ...(isObject(more) ? more : {}),
      name: ref.member,
      address: change.address,
      port: change.port,
      ...(change.weight === undefined ? {} : { weight: change.weight }),
    }
    const added =
      settings.membership === 'configuration' ? await writer.add(ref, line, ctx) : 'there'
    let ours = false
    if (added === 'there') ours = await this.#addAtRuntime(change, line, ctx)
    else if (added.reloadId !== undefined) {
      const refused = await this.#reload(added.reloadId, view, ctx)
      if (refused !== undefined) {
        const kept = await writer.isInFile(ref, ctx)
        const what = kept ? WITH_LINE : 'the API rolled the file back, it was not added'
        return { status: kept ? 'unknown' : 'rejected', error: saying(refused, ref, what) }
      }
    }
    return this.#open(change, ours, ctx)
  }

  /** Returns whether it was this call that added it. */
  async #addAtRuntime(
    change: Add,
    body: Record<string, unknown>,
    ctx: CallContext,
  ): Promise<boolean> {
    const { api } = this.#tools
    const { paths } = await api.served(ctx)
    const path = paths.servers(change.ref.pool)
    try {
      const reply = await api.send({ method: 'POST', path, body }, ctx)
      if (reply.status === 201) return true
      throw api.toError(`POST ${path}`, reply)
    } catch (error) {
      ctx.signal.throwIfAborted()
      // a lost answer, or "exists already" after one: what is there decides
      if (!isDrainableError(error, 'CONNECTION_LOST', 'CALL_TIMEOUT', 'CONFLICT')) throw error
      const found = await this.#look(change.ref, ctx)
      if (found === undefined) throw error
      if (isWanted(change, found)) return false
      const at = identify(found).identity || 'its name does not resolve'
      const words = `${formatRef(change.ref)} is there already: ${at}`
      throw failure(change.ref, 'CONFLICT', words, false)
    }
  }

  /** Opens a server that was added; one that is ours alone is taken out again where that is refused. */
  async #open(change: Add, ours: boolean, ctx: CallContext): Promise<ChangeOutcome> {
    const { ref } = change
    const { refused, lost } = await askServer(this.#tools.api, ref, 'ready', ctx)
    const found = await this.#look(ref, ctx)
    if (found !== undefined && isWanted(change, found) && found.verdict.own === 'ready')
      return { status: 'applied' }
    if (refused !== undefined) {
      const isGone = async (): Promise<boolean> => {
        await this.remove(ref, ctx).catch((error: unknown) => known(error, ctx))
        return (await this.#look(ref, ctx)) === undefined
      }
      if (found === undefined || (ours && (await isGone())))
        return { status: 'rejected', error: refused }
      const words = `${refused.message}; it was added, and could not be opened`
      return { status: 'unknown', error: extended(refused, words) }
    }
    const seen = found === undefined ? 'not there' : `'${found.row.status}'`
    const words = `${formatRef(ref)} was added, but it is ${seen} afterwards`
    return { status: 'unknown', error: lost ?? failure(ref, 'CONFLICT', words) }
  }

  async #look(ref: MemberRef, ctx: CallContext): Promise<Found | undefined> {
    return find(await this.#tools.reader.view([ref], ctx), ref)
  }
}

/** What of a removal from the configuration is due where the API has no line of the server. */
function elsewhere(ref: MemberRef, seen: Seen | undefined): ChangeOutcome | 'run time' {
  const place = seen?.config.place
  if (place !== 'listen' && place !== 'template') return 'run time'
  const words = `${formatRef(ref)} can't be removed from the configuration: ${WHERE[place]}, which this API can't write`
  return { status: 'rejected', error: failure(ref, 'UNSUPPORTED', words) }
}

const WITH_LINE = 'the file has it anyway, the next reload adds it'
const WITHOUT_LINE = 'the file no longer has it, the next reload removes it'

function rolledBack(found: Found | undefined): string {
  const now = found === undefined ? 'HAProxy no longer has it' : `it is '${found.row.status}'`
  return `the API rolled the file back, which still has it; ${now}`
}

/** A failed reload, and what was found after it. */
function saying(error: DrainableError, ref: MemberRef, what: string): DrainableError {
  return extended(error, `${formatRef(ref)}: ${error.message}; ${what}`)
}

/** @throws what stands against it, before anything is sent */
function checkAdd(
  { ref, address, port, weight }: Add,
  { pools, served: { tree } }: RuntimeView,
  membership: 'runtime' | 'configuration',
): void {
  const refuse = (code: ErrorCode, words: string): never => {
    throw failure(ref, code, `${formatRef(ref)}: ${words}`, false)
  }
  if (!pools.has(ref.pool) && tree === 'v3') refuse('NOT_FOUND', `there is no backend ${ref.pool}`)
  if (!/^[^\s;]+$/.test(address)) refuse('REJECTED', `'${address}' is no address`)
  if (!Number.isInteger(port) || port < 1 || port > 65_535)
    refuse('REJECTED', `expected a port from 1 to 65535, found ${port}`)
  if (tree === 'v2' && membership === 'runtime' && (weight ?? 1) !== 1)
    refuse(
      'UNSUPPORTED',
      "Data Plane API 2.x drops the weight of a server added at run time; leave it out, or set membership: 'configuration'",
    )
}

function isWanted(change: Add, found: Found): boolean {
  return identify(found).identity === formatSocket(change.address, change.port)
}
