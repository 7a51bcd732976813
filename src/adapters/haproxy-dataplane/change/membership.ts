import { isObject } from '../../../kit/json.js'
import { formatSocket } from '../../../provider/address.js'
import type { CallContext, Change, ChangeResult, MemberRef } from '../../../provider/contract.js'
import { type DrainableError, type ErrorCode, isDrainableError } from '../../../provider/error.js'
import { formatRef } from '../../../provider/member-ref.js'
import { quote } from '../../../provider/quote.js'
import { saysNotFound } from '../codec/replies.js'
import type { Found, RuntimeView } from '../read/read.js'
import { identify } from '../read/reading.js'
import { followReload } from '../session/reload.js'
import { about, askServer, extended, failure, known, thrown, type Tools } from './sent.js'

const WHERE = {
  listen: 'it is in a listen section',
  template: 'it is a slot of a server-template',
} as const

type Add = Change & { readonly kind: 'add' }

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
  async *takeOut(
    refs: readonly MemberRef[],
    view: RuntimeView,
    ctx: CallContext,
  ): AsyncGenerator<readonly [MemberRef, ChangeResult | 'run time']> {
    const gone: MemberRef[] = []
    let reloadId: string | undefined
    for (const [ref, removed] of await this.#tools.writer.remove(refs, ctx)) {
      if (removed === 'absent') yield [ref, await this.#elsewhere(ref, view, ctx)]
      else if (isDrainableError(removed)) yield [ref, thrown(ref, removed)]
      else {
        gone.push(ref)
        reloadId = removed.reloadId
      }
    }
    try {
      if (gone.length > 0) yield* this.#untilGone(gone, reloadId, view, ctx)
    } catch (error) {
      for (const ref of gone) yield [ref, unseen(ref, error, ctx)]
    }
  }

  /** Not in the configuration as this API has it. */
  async #elsewhere(
    ref: MemberRef,
    view: RuntimeView,
    ctx: CallContext,
  ): Promise<ChangeResult | 'run time'> {
    const { place } = await this.#tools.configuration.of(ref, view, ctx)
    if (place !== 'listen' && place !== 'template') return 'run time'
    const words = `${formatRef(ref)} can't be removed from the configuration: ${WHERE[place]}, which this API can't write`
    return { ref, status: 'rejected', error: failure(ref, 'UNSUPPORTED', words) }
  }

  /**
   * Removes at run time: the API puts the server into maint first, and leaves it there where it refuses. One try. "Still
   * has connections" passes, for 2.6 within 15 s: the caller asks again, others are not kept waiting.
   */
  async remove(ref: MemberRef, ctx: CallContext): Promise<ChangeResult> {
    const { api } = this.#tools
    const { paths } = await api.served(ctx)
    const path = paths.server(ref.pool, ref.member)
    let reply
    try {
      reply = await api.send({ method: 'DELETE', path }, ctx)
    } catch (error) {
      ctx.signal.throwIfAborted()
      if (!isDrainableError(error, 'CONNECTION_LOST', 'CALL_TIMEOUT')) throw error
      // never sent twice without a look: it may have been executed, or may still be
      const { found } = await this.#lookAfter(error, ref, ctx)
      if (found === undefined) return { ref, status: 'applied' }
      throw error
    }
    if (reply.status === 204) return { ref, status: 'applied' }
    if (saysNotFound(reply.status, reply.words)) {
      // also said where the API can't reach HAProxy for a moment
      const { found } = await this.#look(ref, ctx)
      if (found === undefined) return { ref, status: 'unchanged' }
      const words = `${formatRef(ref)}: its removal was answered with '${reply.words}', but it is there; the API may not have reached HAProxy`
      return { ref, status: 'unknown', error: failure(ref, 'CONFLICT', words) }
    }
    if (!/still has connections/.test(reply.words)) throw api.toError(`DELETE ${path}`, reply)
    throw failure(ref, 'CONFLICT', `${formatRef(ref)} can't be removed yet: '${reply.words}'`)
  }

  async *#untilGone(
    refs: readonly MemberRef[],
    reloadId: string | undefined,
    view: RuntimeView,
    ctx: CallContext,
  ): AsyncGenerator<readonly [MemberRef, ChangeResult]> {
    const { reader, writer } = this.#tools
    const refused = await this.#reload(reloadId, view, ctx)
    const { pools } = await reader.view(refs, ctx)
    for (const ref of refs) {
      const found = pools.get(ref.pool)?.get(ref.member)
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
  async add(change: Add, view: RuntimeView, ctx: CallContext): Promise<ChangeResult> {
    const { ref } = change
    const problem = checkAdd(change, view, this.#tools.settings.membership)
    if (problem !== undefined) return { ref, status: 'rejected', error: problem }
    const more = isObject(change.native) ? change.native['server'] : undefined
    const line = {
      ...(isObject(more) ? more : {}),
      name: ref.member,
      address: change.address,
      port: change.port,
      ...(change.weight === undefined ? {} : { weight: change.weight }),
    }
    const added =
      this.#tools.settings.membership === 'configuration'
        ? await this.#tools.writer.add(ref, line, ctx)
        : 'there'
    const ours = added === 'there' && (await this.#addAtRuntime(change, line, ctx))
    try {
      const reloadId = added === 'there' ? undefined : added.reloadId
      const refused = reloadId && (await this.#reload(reloadId, view, ctx))
      if (!isDrainableError(refused)) return await this.#open(change, ours, ctx)
      const kept = await this.#tools.writer.isInFile(ref, ctx)
      const what = kept ? WITH_LINE : 'the API rolled the file back, it was not added'
      const error = saying(refused, ref, what)
      return { ref, status: kept ? 'unknown' : 'rejected', error }
    } catch (error) {
      return unseen(ref, error, ctx)
    }
  }

  /** Returns whether it was this call that added it. */
  async #addAtRuntime(
    change: Add,
    line: Record<string, unknown>,
    ctx: CallContext,
  ): Promise<boolean> {
    const { api } = this.#tools
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
      const { found } = await this.#lookAfter(error, change.ref, ctx)
      if (found === undefined) throw error
      if (!isWanted(change, found)) throw isThere(change.ref, found)
      return false
    }
  }

  /** Opens a server that was added; one that is ours alone is taken out again where that is refused. */
  async #open(change: Add, ours: boolean, ctx: CallContext): Promise<ChangeResult> {
    const { ref } = change
    const { refused } = await askServer(this.#tools.api, ref, 'ready', ctx)
    const { found } = await this.#look(ref, ctx)
    if (found !== undefined && isWanted(change, found) && found.verdict.own === 'ready') {
      return { ref, status: 'applied' }
    }
    if (refused !== undefined) {
      const gone = found === undefined || (ours && (await this.#isTakenOut(ref, ctx)))
      if (gone) return { ref, status: 'rejected', error: refused }
      const words = `${refused.message}; it was added, and could not be opened`
      return { ref, status: 'unknown', error: extended(ref, refused, words) }
    }
    const seen = found === undefined ? 'not there' : `'${found.row.status}'`
    const words = `${formatRef(ref)} was added, but it is ${seen} afterwards`
    return { ref, status: 'unknown', error: failure(ref, 'CONFLICT', words) }
  }

  async #isTakenOut(ref: MemberRef, ctx: CallContext): Promise<boolean> {
    try {
      const { status } = await this.remove(ref, ctx)
      return status === 'applied' || status === 'unchanged'
    } catch (error) {
      known(error, ctx)
      return false
    }
  }

  /** What is there after a change without a good answer. @throws that answer, where it can't be seen */
  async #lookAfter(
    answer: DrainableError,
    ref: MemberRef,
    ctx: CallContext,
  ): Promise<{ readonly found: Found | undefined }> {
    try {
      return await this.#look(ref, ctx)
    } catch (error) {
      known(error, ctx)
      throw answer
    }
  }

  async #look(ref: MemberRef, ctx: CallContext): Promise<{ readonly found: Found | undefined }> {
    const view = await this.#tools.reader.view([ref], ctx)
    return { found: view.pools.get(ref.pool)?.get(ref.member) }
  }
}

/** It was sent, and nothing shows what became of it. */
function unseen(ref: MemberRef, error: unknown, ctx: CallContext): ChangeResult {
  return { ref, status: 'unknown', error: about(ref, known(error, ctx)) }
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

/**
 * The API takes an addition without an address, and writes a line that HAProxy can't use (2.9).
 *
 * @throws `INVALID_OPTIONS`
 */
export function assertAddress({ ref, address }: Add): void {
  if (typeof address === 'string' && /^[^\s;]+$/.test(address)) return
  const found = typeof address === 'string' ? `'${quote(address)}'` : 'none'
  const words = `${formatRef(ref)} can't be added: address: expected the IP address or the name of the server, such as 10.0.0.1, found ${found}`
  throw failure(ref, 'INVALID_OPTIONS', words)
}

function checkAdd(
  change: Add,
  view: RuntimeView,
  membership: 'runtime' | 'configuration',
): DrainableError | undefined {
  const { ref, port, weight } = change
  const { tree } = view.served
  const refused = (code: ErrorCode, words: string): DrainableError =>
    failure(ref, code, words, false)
  if (!view.pools.has(ref.pool) && tree === 'v3')
    return refused('NOT_FOUND', `there is no backend ${ref.pool}`)
  if (!Number.isInteger(port) || port < 1 || port > 65_535)
    return refused('REJECTED', `${formatRef(ref)}: expected a port from 1 to 65535, found ${port}`)
  if (tree === 'v2' && membership === 'runtime' && (weight ?? 1) !== 1)
    return refused(
      'UNSUPPORTED',
      `${formatRef(ref)}: Data Plane API 2.x drops the weight of a server added at run time; leave it out, or set membership: 'configuration'`,
    )
  return undefined
}

function isThere(ref: MemberRef, found: Found): DrainableError {
  const at = identify(found).identity || 'its name does not resolve'
  return failure(ref, 'CONFLICT', `${formatRef(ref)} is there already: ${at}`, false)
}

function isWanted(change: Add, found: Found): boolean {
  return identify(found).identity === formatSocket(change.address, change.port)
}
