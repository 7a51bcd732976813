import { doubling, retried } from '../../../kit/retry.js'
import type { CallContext, MemberRef } from '../../../provider/contract.js'
import { isDrainableError, type DrainableError } from '../../../provider/error.js'
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
import type { DataplaneApi } from '../session/session.js'
import { extended, failure, known } from './sent.js'

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
type Removed = { readonly reloadId: string | undefined } | 'absent' | DrainableError

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
   * @returns the line as it was, where something was written
   */
  async edit(
    ref: MemberRef,
    change: (line: ConfigServer) => Record<string, unknown> | undefined,
    ctx: CallContext,
  ): Promise<ConfigServer | undefined> {
    this.#configuration.forget()
    let lost: ConfigServer | undefined
    return this.#retried(ref, ctx, async () => {
      const line = await this.line(ref, ctx)
      const next = line && change(line.data)
      if (line === undefined || next === undefined) return lost // as the lost try has left it
      const { paths } = await this.#api.served(ctx)
      const path = paths.configServer(ref.pool, ref.member, line)
      try {
        const reply = await this.#api.send(
          { method: 'PUT', path, body: next, timeout: WRITE_TIMEOUT },
          ctx,
        )
        if (reply.status === 200 || reply.status === 202) return line.data
        throw this.#api.toError(`PUT configuration of ${formatRef(ref)}`, reply)
      } catch (error) {
        if (isDrainableError(error, 'CONNECTION_LOST')) lost = line.data
        throw error
      }
    })
  }

  /**
   * Runs a versioned write until it meets no other writer.
   *
   * A lost answer is no danger here: the version that the write carried is used up if it was
   * executed, so the next try reads what it did. Only a refusal after one says nothing of it.
   */
  async #retried<T>(ref: MemberRef, ctx: CallContext, write: () => Promise<T>): Promise<T> {
    let lost: DrainableError | undefined
    let attempts = 0
    try {
      return await retried(
        ctx,
        {
          waits: [
            ...Array<number>(AT_ONCE - 1).fill(0),
            ...doubling(100, WRITE_ATTEMPTS - AT_ONCE, 1_000).map((most) => Math.random() * most),
          ],
          again: (error) =>
            isDrainableError(error, 'CONFLICT', 'CONNECTION_LOST') && error.retryable,
        },
        async (attempt) => {
          attempts = attempt
          return write().catch((error: unknown) => {
            if (isDrainableError(error, 'CONNECTION_LOST')) lost = error
            throw error
          })
        },
      )
    } catch (error) {
      ctx.signal.throwIfAborted()
      throw this.#givenUp(ref, error, lost, attempts)
    }
  }

  #givenUp(
    ref: MemberRef,
    error: unknown,
    lost: DrainableError | undefined,
    attempts: number,
  ): unknown {
    if (!isDrainableError(error)) return error
    if (lost !== undefined && lost !== error) {
      return extended(ref, lost, `${lost.message}; tried again: ${error.message}`)
    }
    if (error.code !== 'CONFLICT' || !error.retryable) return error
    const words = `${formatRef(ref)}: the configuration could not be written in ${attempts} tries: ${error.message}`
    return extended(ref, error, words)
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
    this.#configuration.forget()
    return this.#retried(ref, ctx, async () => {
      const version = await this.#askVersion(ctx)
      const found = await this.line(ref, ctx)
      if (found !== undefined) {
        const same =
          found.data['address'] === line['address'] && found.data['port'] === line['port']
        if (same) return 'there' // also where the answer to our own write was lost
        const words = `${formatRef(ref)} is in the configuration already, at another address`
        throw failure(ref, 'CONFLICT', words, false)
      }
      const { paths } = await this.#api.served(ctx)
      const reply = await this.#api.send(
        {
          method: 'POST',
          path: paths.configServers(ref.pool, { version }),
          body: line,
          timeout: WRITE_TIMEOUT,
        },
        ctx,
      )
      if (reply.status === 201 || reply.status === 202) return { reloadId: reply.reloadId }
      throw this.#api.toError(`POST configuration of ${formatRef(ref)}`, reply)
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
    this.#configuration.forget()
    const [first, ...more] = refs
    try {
      if (first !== undefined && more.length > 0) return await this.#removeAll(first, refs, ctx)
    } catch (error) {
      if (!isDrainableError(error, 'REJECTED', 'FORBIDDEN', 'NOT_FOUND')) throw error
    }
    const removed = new Map<MemberRef, Removed>()
    for (const ref of refs) {
      try {
        removed.set(ref, await this.#removeOne(ref, ctx))
      } catch (error) {
        removed.set(ref, known(error, ctx))
      }
    }
    return removed
  }

  async #removeOne(ref: MemberRef, ctx: CallContext): Promise<Removed> {
    let sent = false
    return this.#retried(ref, ctx, async () => {
      const line = await this.line(ref, ctx)
      // gone after a try of ours: its answer was lost, and its reload is still to come
      if (line === undefined) return sent ? { reloadId: undefined } : 'absent'
      sent = true
      return this.#delete(ref, line, ctx)
    })
  }

  async #removeAll(
    first: MemberRef,
    refs: readonly MemberRef[],
    ctx: CallContext,
  ): Promise<ReadonlyMap<MemberRef, Removed>> {
    /** Taken out by a try whose answer may have been lost: its reload is still to come. */
    const sent = new Set<MemberRef>()
    return this.#retried(first, ctx, async () => {
      const removed = new Map<MemberRef, Removed>()
      const reloadId = await this.#inTransaction(ctx, async (transaction) => {
        for (const ref of refs) removed.set(ref, await this.#delete(ref, { transaction }, ctx))
        const taken = refs.filter((ref) => isTaken(removed.get(ref)))
        for (const ref of refs)
          if (removed.get(ref) === 'absent' && sent.has(ref))
            removed.set(ref, { reloadId: undefined })
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
    const reply = await this.#api.send({ method: 'DELETE', path, timeout: WRITE_TIMEOUT }, ctx)
    if (reply.status === 202 || reply.status === 204) return { reloadId: reply.reloadId }
    if (reply.status === 404) return 'absent'
    const error = this.#api.toError(`DELETE configuration of ${formatRef(ref)}`, reply)
    if ('transaction' in under && !error.retryable) return error
    throw error
  }

  /**
   * Asks for a reload: the API reloads HAProxy at each commit of a transaction, also of one that changes nothing
   * (seen with 3.4.2; read in 2.9 and 3.2).
   *
   * @returns its id, where the API tells it
   */
  async reload(ref: MemberRef, ctx: CallContext): Promise<string | undefined> {
    return this.#retried(ref, ctx, () => this.#inTransaction(ctx, () => Promise.resolve(true)))
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
    // The number of open ones is bounded, for all clients together.
    const giveUp = (): Promise<unknown> => this.#api.send({ method: 'DELETE', path: own }, ctx)
    const isWritten = await write(id).catch(async (error: unknown) => {
      await giveUp().catch(() => undefined)
      throw error
    })
    const ended = isWritten
      ? await this.#api.send({ method: 'PUT', path: own, timeout: WRITE_TIMEOUT }, ctx)
      : undefined
    if (ended?.status === 200 || ended?.status === 202) return ended.reloadId
    await giveUp()
    if (ended !== undefined) throw this.#api.toError('PUT transactions', ended)
    return undefined
  }

  /** A server's line with the version it was read at; undefined where it is not in the configuration. */
  async line(ref: MemberRef, ctx: CallContext): Promise<Versioned<ConfigServer> | undefined> {
    const line = await this.#readLine(ref, ctx)
    if (line === undefined || line.version !== undefined) return line
    // the version first, then the line: another writer in between makes our write a conflict
    const version = await this.#askVersion(ctx)
    const again = await this.#readLine(ref, ctx)
    return again === undefined ? undefined : { ...again, version }
  }

  async #readLine(ref: MemberRef, ctx: CallContext): Promise<Versioned<ConfigServer> | undefined> {
    const { paths, tree } = await this.#api.served(ctx)
    const reply = await this.#api.get(paths.configServer(ref.pool, ref.member), ctx)
    if (reply.status === 404) return undefined
    if (reply.status !== 200) {
      throw this.#api.toError(`GET configuration of ${formatRef(ref)}`, reply)
    }
    return this.#api.parse(reply, (text) => parseConfigServer(tree, text, reply.configVersion))
  }

  async #askVersion(ctx: CallContext): Promise<number> {
    const { paths } = await this.#api.served(ctx)
    return this.#api.parse(await this.#api.read(paths.configVersion, ctx), parseConfigVersion)
  }

  /**
   * Whether the file has a server's line. Where the text is kept from this user, what the API has in memory is all
   * there is.
   */
  async isInFile(ref: MemberRef, ctx: CallContext): Promise<boolean> {
    const file = await this.#configuration.file(ctx)
    if (typeof file === 'string') return (await this.line(ref, ctx)) !== undefined
    return file.server(ref.pool, ref.member)?.place === 'line'
  }
}

function isTaken(one: Removed | undefined): one is Exclude<Removed, 'absent' | DrainableError> {
  return one !== undefined && one !== 'absent' && !isDrainableError(one)
}
