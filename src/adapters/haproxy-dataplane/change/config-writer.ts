import { caught } from '../../../kit/errors.js'
import { doubling, retried } from '../../../kit/retry.js'
import type { CallContext, MemberRef } from '../../../provider/contract.js'
import { type DrainableError, isDrainableError } from '../../../provider/error.js'
import { formatRef } from '../../../provider/member-ref.js'
import {
  parseConfigServer,
  parseConfigVersion,
  type ConfigServer,
  type Versioned,
} from '../codec/configuration.js'
import { parseTransaction } from '../codec/replies.js'
import type { Under } from '../codec/paths.js'
import type { Configuration } from '../read/configured.js'
import type { DataplaneApi, Reply, Write } from '../session/session.js'
import { extended, failure } from './tools.js'

/**
 * How often a write that met another one is tried again, each time from a fresh read. There is no queue for writers, so
 * one that waits between its tries loses against those that don't (24 of 24 beside three of them on 3.4): the first
 * tries come at once, and the others by chance not at the same moment as another's.
 */
const AT_ONCE = 16
const WRITE_ATTEMPTS = 24

/** A configuration write may run HAProxy's own check over a large file. */
const WRITE_TIMEOUT = 30_000

/**
 * What became of a server's line: taken out, with the id of the reload that this needs where the API tells it; not
 * there; refused, or not known to be taken out.
 */
export type Removed = { readonly reloadId: string | undefined } | 'absent' | DrainableError

/** Writes HAProxy's configuration, each time under the version that it was read at. */
export class ConfigWriter {
  readonly #api: DataplaneApi
  readonly #configuration: Configuration

  constructor(api: DataplaneApi, configuration: Configuration) {
    this.#api = api
    this.#configuration = configuration
  }

  /**
   * Changes a configured server by reading its line, changing it and writing it back under the
   * version it was read at; another writer in between means a fresh read.
   *
   * @param change - the new line, or undefined where nothing is to be changed
   * @returns whether something was written
   */
  async edit(
    ref: MemberRef,
    change: (line: ConfigServer) => Record<string, unknown> | undefined,
    ctx: CallContext,
  ): Promise<boolean> {
    let isLost = false
    return this.#retried(formatRef(ref), ctx, async () => {
      const line = await this.#line(ref, ctx)
      if (line === undefined) {
        const words = `${formatRef(ref)}: the API does not tell the line that the configuration has for it`
        throw failure(ref, 'CONFLICT', words)
      }
      const body = change(line.data)
      if (body === undefined) return isLost // as the lost try has left it
      const { paths } = await this.#api.served(ctx)
      const path = paths.configServer(ref.pool, ref.member, line)
      isLost = true
      await this.#write({ method: 'PUT', path, body }, ctx)
      return true
    })
  }

  /**
   * Adds a server to the configuration.
   *
   * @returns the reload that this needs, if any; `there` where just that server is in the configuration already
   */
  async add(
    ref: MemberRef,
    line: Record<string, unknown>,
    ctx: CallContext,
  ): Promise<{ readonly reloadId: string | undefined } | 'there'> {
    return this.#retried(formatRef(ref), ctx, async () => {
      const version = await this.#askVersion(ctx)
      const found = await this.#line(ref, ctx)
      if (found !== undefined) {
        const same =
          found.data['address'] === line['address'] && found.data['port'] === line['port']
        if (same) return 'there' // also where the answer to our own write was lost
        const words = `${formatRef(ref)} is in the configuration already, at another address`
        throw failure(ref, 'CONFLICT', words, false)
      }
      const { paths } = await this.#api.served(ctx)
      const path = paths.configServers(ref.pool, { version })
      return this.#write({ method: 'POST', path, body: line }, ctx)
    })
  }

  /**
   * Takes servers out of the configuration. Each commit is a reload, so several go in one transaction. Where HAProxy
   * refuses that, or this user may not open one, each goes by itself: the API gathers the reloads of a moment.
   */
  async remove(
    refs: readonly MemberRef[],
    ctx: CallContext,
  ): Promise<ReadonlyMap<MemberRef, Removed>> {
    try {
      if (refs.length > 1) return await this.#removeAll(refs, ctx)
    } catch (error) {
      if (!isDrainableError(error, 'REJECTED', 'FORBIDDEN', 'NOT_FOUND')) throw error
    }
    const removed = new Map<MemberRef, Removed>()
    for (const ref of refs) {
      const one = await caught(
        ctx,
        () => this.#removeOne(ref, ctx),
        (error) => error,
      )
      removed.set(ref, one)
    }
    return removed
  }

  async #removeOne(ref: MemberRef, ctx: CallContext): Promise<Removed> {
    let sent = false
    return this.#retried(formatRef(ref), ctx, async () => {
      const line = await this.#line(ref, ctx)
      // gone after a try of ours: its answer was lost, and its reload is still to come
      if (line === undefined) return sent ? { reloadId: undefined } : 'absent'
      sent = true
      return this.#delete(ref, line, ctx)
    })
  }

  async #removeAll(
    refs: readonly MemberRef[],
    ctx: CallContext,
  ): Promise<ReadonlyMap<MemberRef, Removed>> {
    /** Taken out by a try whose answer may have been lost: its reload is still to come. */
    const sent = new Set<MemberRef>()
    return this.#retried(refs.map(formatRef).join(', '), ctx, async () => {
      const removed = new Map<MemberRef, Removed>()
      const reloadId = await this.#inTransaction(ctx, async (transaction) => {
        for (const ref of refs) removed.set(ref, await this.#delete(ref, { transaction }, ctx))
        const taken = refs.filter((ref) => isTaken(removed.get(ref)))
        for (const ref of sent)
          if (removed.get(ref) === 'absent') removed.set(ref, { reloadId: undefined })
        for (const ref of taken) sent.add(ref)
        return taken.length > 0
      })
      for (const [ref, one] of removed) if (isTaken(one)) removed.set(ref, { reloadId })
      return removed
    })
  }

  /** A refusal is thrown where it is that of the whole write. */
  async #delete(ref: MemberRef, under: Under, ctx: CallContext): Promise<Removed> {
    const { paths } = await this.#api.served(ctx)
    const path = paths.configServer(ref.pool, ref.member, under)
    const refused = (error: DrainableError): Removed => {
      if (error.code === 'NOT_FOUND') return 'absent'
      if ('transaction' in under && !error.retryable) return error
      throw error
    }
    return caught(ctx, () => this.#write({ method: 'DELETE', path }, ctx), refused)
  }

  /**
   * Asks for a reload: the API reloads HAProxy at each commit of a transaction, also of one that changes nothing
   * (seen with 3.4.2; read in 2.9 and 3.2).
   *
   * @returns its id, where the API tells it
   */
  async reload(ctx: CallContext): Promise<string | undefined> {
    const commit = () => this.#inTransaction(ctx, () => Promise.resolve(true))
    return this.#retried('a reload', ctx, commit)
  }

  /**
   * Commits what is written in a transaction.
   *
   * @param write - returns whether there is anything to commit
   * @returns the id of its reload, where the API tells it
   */
  async #inTransaction(
    ctx: CallContext,
    write: (id: string) => Promise<boolean>,
  ): Promise<string | undefined> {
    const { paths } = await this.#api.served(ctx)
    const path = paths.transactions(await this.#askVersion(ctx))
    const begun = await this.#api.send({ method: 'POST', path }, ctx)
    if (begun.status !== 201) throw this.#api.toError('POST transactions', begun)
    const id = this.#api.parse(begun, parseTransaction)
    const own = paths.transaction(id)
    const ended = (await write(id))
      ? await this.#api.send({ method: 'PUT', path: own, timeout: WRITE_TIMEOUT }, ctx)
      : undefined
    if (ended?.status === 200 || ended?.status === 202) return ended.reloadId
    await this.#api.send({ method: 'DELETE', path: own }, ctx) // the number of open ones is bounded
    if (ended !== undefined) throw this.#api.toError('PUT transactions', ended)
    return undefined
  }

  /**
   * Whether the file has a server's line. Right after a failed reload the API's own configuration is not the
   * file: it rolls the file back, and goes on telling what it had in memory (2.9.25, 3.0.21, 3.2.13). Where
   * the text is kept from this user, that is all there is.
   */
  async isInFile(ref: MemberRef, ctx: CallContext): Promise<boolean> {
    const { place } = (await this.#configuration.read(ctx)).server(ref)
    if (place !== 'unknown' && place !== 'unread') return place === 'line'
    return (await this.#line(ref, ctx)) !== undefined
  }

  /**
   * Runs a versioned write until it meets no other writer.
   *
   * A lost answer is no danger here: the version that the write carried is used up if it was
   * executed, so the next try reads what it did. Only a refusal after one says nothing of it.
   */
  async #retried<T>(what: string, ctx: CallContext, write: () => Promise<T>): Promise<T> {
    let lost: DrainableError | undefined
    let attempts = 0
    const waits = [
      ...Array<number>(AT_ONCE - 1).fill(0),
      ...doubling(100, WRITE_ATTEMPTS - AT_ONCE, 1_000).map((most) => Math.random() * most),
    ]
    const again = (error: unknown): boolean =>
      isDrainableError(error, 'CONFLICT', 'CONNECTION_LOST') && error.retryable
    try {
      return await retried(ctx, { waits, again }, async (attempt) => {
        attempts = attempt
        return write().catch((error: unknown) => {
          if (isDrainableError(error, 'CONNECTION_LOST')) lost = error
          throw error
        })
      })
    } catch (error) {
      ctx.signal.throwIfAborted()
      if (!isDrainableError(error)) throw error
      if (lost !== undefined && lost !== error)
        throw extended(lost, `${lost.message}; tried again: ${error.message}`)
      if (error.code !== 'CONFLICT' || !error.retryable) throw error
      const words = `${what}: the configuration could not be written in ${attempts} tries: ${error.message}`
      throw extended(error, words)
    }
  }

  /** A write that runs HAProxy's check. @returns its reload, if it needs one */
  async #write(call: Write, ctx: CallContext): Promise<Pick<Reply, 'reloadId'>> {
    const reply = await this.#api.send({ ...call, timeout: WRITE_TIMEOUT }, ctx)
    if (reply.status >= 200 && reply.status < 300) return { reloadId: reply.reloadId }
    throw this.#api.toError(`${call.method} ${call.path}`, reply)
  }

  /**
   * A server's line with the version it was read at; undefined where the API has none.
   *
   * @param before - the version that was asked for before, where a proxy drops the header that tells it
   */
  async #line(
    ref: MemberRef,
    ctx: CallContext,
    before?: number,
  ): Promise<Versioned<ConfigServer> | undefined> {
    const { paths, tree } = await this.#api.served(ctx)
    const reply = await this.#api.get(paths.configServer(ref.pool, ref.member), ctx)
    if (reply.status === 404) return undefined
    if (reply.status !== 200)
      throw this.#api.toError(`GET configuration of ${formatRef(ref)}`, reply)
    const line = this.#api.parse(reply, (text) =>
      parseConfigServer(tree, text, reply.configVersion),
    )
    const version = line.version ?? before
    // the version first, then the line: another writer in between makes our write a conflict
    return version === undefined
      ? this.#line(ref, ctx, await this.#askVersion(ctx))
      : { ...line, version }
  }

  async #askVersion(ctx: CallContext): Promise<number> {
    const { paths } = await this.#api.served(ctx)
    return this.#api.parse(await this.#api.read(paths.configVersion, ctx), parseConfigVersion)
  }
}

export function isTaken(
  one: Removed | undefined,
): one is Exclude<Removed, 'absent' | DrainableError> {
  return one !== undefined && one !== 'absent' && !isDrainableError(one)
}
