import { doubling, retried } from '../../../kit/retry.js'
import type { CallContext, MaintEffect, MemberRef } from '../../../provider/contract.js'
import { DrainableError, isDrainableError } from '../../../provider/error.js'
import { formatRef } from '../../../provider/member-ref.js'
import { appliesTo, option, type Sections } from './inherited.js'
import { PROVIDER, type DataplaneApi } from './session.js'
import {
  parseConfigServer,
  parseConfigServers,
  parseSections,
  parseConfigVersion,
  type ConfigServer,
  type Versioned,
} from '../codec/configuration.js'
import { isNamed, parseRaw, type RawServers } from '../codec/raw.js'
import { parseTransaction } from '../codec/replies.js'

/** What the configuration says about one server. */
export interface Configured {
  /** What maint does to its established work. */
  readonly maint: MaintEffect
  /** Whether leaving maint cuts the sessions on the backend's backup servers. */
  readonly cutsBackups: boolean | 'unknown'
  /** Whether the API has it in its configuration, and can write it. */
  readonly known: boolean
  /**
   * Where else it stands: in a `listen` section or a `server-template`, which this API can't write; not in
   * the file at all (`run time`); it can't be told (`unknown`), or not just now (`unread`).
   */
  readonly place: 'line' | 'listen' | 'template' | 'run time' | 'unknown' | 'unread'
  /** Whether HAProxy checks its health, by a check or an agent, its own or that of a server that it tracks. */
  readonly checked: boolean | 'unknown'
  /** Whether its address comes from a name: then it can move to another server. */
  readonly named: boolean | 'unknown'
  readonly weight: number | null
  readonly maintenance: string | null
}

const UNKNOWN: Configured = {
  maint: 'unknown',
  cutsBackups: 'unknown',
  known: false,
  place: 'unknown',
  checked: 'unknown',
  named: 'unknown',
  weight: null,
  maintenance: null,
}

const UNREAD: Configured = { ...UNKNOWN, place: 'unread' }

/**
 * How often a write that met another one is tried again, each time from a fresh read. There is no queue for writers, so
 * one that waits between its tries loses against those that don't (24 of 24 beside three of them on 3.4): the first
 * tries come at once, and the others by chance not at the same moment as another's.
 */
const AT_ONCE = 16
const WRITE_ATTEMPTS = 24

/** A configuration write may run HAProxy's own check over a large file. */
const WRITE_TIMEOUT = 30_000

/** So this API says that a section is kept from this user, or that it has no such path. */
export const WITHHELD: ReadonlySet<number> = new Set([403, 404, 405, 501])

/**
 * HAProxy's configuration as the API keeps it. Read once per backend, and again when the version
 * that every reply carries has changed, or HAProxy was reloaded.
 */
export class Configuration {
  readonly #api: DataplaneApi
  readonly #pools = new Map<
    string,
    { readonly stamp: string; readonly servers: Map<string, Configured> }
  >()

  #raw: { readonly stamp: string; readonly servers: RawServers | undefined } | undefined
  #defaults: { readonly stamp: string; readonly sections: Sections } | undefined

  constructor(api: DataplaneApi) {
    this.#api = api
  }

  /**
   * What the configuration says about the servers of a backend.
   *
   * @param members - those of interest: one that the API does not have is looked for in the text
   * @param stamp - changes when the configuration may have changed
   */
  async servers(
    pool: string,
    members: Iterable<string>,
    stamp: string,
    ctx: CallContext,
  ): Promise<(member: string) => Configured> {
    const cached = this.#pools.get(pool)
    const servers = cached?.stamp === stamp ? cached.servers : await this.#read(pool, stamp, ctx)
    if (servers === 'unknown' || servers === 'unread')
      return () => (servers === 'unknown' ? UNKNOWN : UNREAD)
    this.#pools.set(pool, { stamp, servers })
    for (const member of members) {
      if (servers.has(member)) continue
      const found = await this.#elsewhere(pool, member, stamp, ctx)
      if (found !== undefined) servers.set(member, found)
      else this.#pools.delete(pool) // asked for again at the next look
    }
    return (member) => servers.get(member) ?? UNREAD
  }

  /** A server that the API does not list in its configuration; undefined where that can't be told just now. */
  async #elsewhere(
    pool: string,
    member: string,
    stamp: string,
    ctx: CallContext,
  ): Promise<Configured | undefined> {
    if (this.#raw?.stamp !== stamp) {
      const { paths } = await this.#api.served(ctx)
      const reply = await this.#api.get(paths.configRaw, ctx)
      if (reply.status !== 200 && !WITHHELD.has(reply.status)) return undefined
      this.#raw = { stamp, servers: reply.status === 200 ? parseRaw(reply.text) : undefined }
    }
    const { servers } = this.#raw
    if (servers === undefined) return UNKNOWN
    const found = servers(pool, member)
    if (found === undefined) return { ...UNKNOWN, place: 'run time', named: false }
    const { cuts, place, ...said } = found
    // The file has its line: the list was cut short, or is not of the file.
    if (place === 'line') return undefined
    return { ...UNKNOWN, ...said, place, maint: cuts ? 'cuts' : 'gentle' }
  }

  /** Forgets what was read of a backend. */
  forget(pool: string): void {
    this.#pools.delete(pool)
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
    this.forget(ref.pool)
    let lost: ConfigServer | undefined
    return this.#retried(ref, ctx, async () => {
      const line = await this.line(ref, ctx)
      const next = line && change(line.data)
      if (line === undefined || next === undefined) return lost // as the lost try has left it
      const { paths } = await this.#api.served(ctx)
      const path = paths.configServer(ref.pool, ref.member, line.version)
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
      const words = `${lost.message}; tried again: ${error.message}`
      return new DrainableError('CONNECTION_LOST', words, { provider: PROVIDER, ref, cause: error })
    }
    if (error.code !== 'CONFLICT' || !error.retryable) return error
    const words = `${formatRef(ref)}: the configuration could not be written in ${attempts} tries: ${error.message}`
    return new DrainableError('CONFLICT', words, { provider: PROVIDER, ref, cause: error })
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
    this.forget(ref.pool)
    return this.#retried(ref, ctx, async () => {
      const version = await this.#version(ref.pool, ctx)
      const found = await this.line(ref, ctx)
      if (found !== undefined) {
        const same =
          found.data['address'] === line['address'] && found.data['port'] === line['port']
        if (same) return 'there' // also where the answer to our own write was lost
        throw exists(ref)
      }
      const { paths } = await this.#api.served(ctx)
      const reply = await this.#api.send(
        {
          method: 'POST',
          path: paths.configServers(ref.pool, version),
          body: line,
          timeout: WRITE_TIMEOUT,
        },
        ctx,
      )
      if (reply.status === 201 || reply.status === 202) return { reloadId: reply.reloadId }
      throw this.#api.toError(`POST configuration of ${formatRef(ref)}`, reply)
    })
  }

  /** Takes a server out of the configuration. Returns the reload that this needs; undefined where it was not there. */
  async remove(
    ref: MemberRef,
    ctx: CallContext,
  ): Promise<{ readonly reloadId: string | undefined } | undefined> {
    this.forget(ref.pool)
    let sent = false
    return this.#retried(ref, ctx, async () => {
      const line = await this.line(ref, ctx)
      // gone after a try of ours: its answer was lost, and its reload is still to come
      if (line === undefined) return sent ? { reloadId: undefined } : undefined
      const { paths } = await this.#api.served(ctx)
      const path = paths.configServer(ref.pool, ref.member, line.version)
      sent = true
      const reply = await this.#api.send({ method: 'DELETE', path, timeout: WRITE_TIMEOUT }, ctx)
      if (reply.status === 202 || reply.status === 204) return { reloadId: reply.reloadId }
      if (reply.status === 404) return undefined
      throw this.#api.toError(`DELETE configuration of ${formatRef(ref)}`, reply)
    })
  }

  /**
   * Asks for a reload: the API reloads HAProxy at each commit of a transaction, also of one that changes nothing
   * (seen with 3.4.2; read in 2.9 and 3.2).
   *
   * @returns its id, where the API tells it
   */
  async reload(ref: MemberRef, ctx: CallContext): Promise<string | undefined> {
    const { paths } = await this.#api.served(ctx)
    return this.#retried(ref, ctx, async () => {
      const path = paths.transactions(await this.#askVersion(ctx))
      const begun = await this.#api.send({ method: 'POST', path }, ctx)
      if (begun.status !== 201) throw this.#api.toError('POST transactions', begun)
      const own = paths.transaction(this.#api.parse(begun, parseTransaction))
      const ended = await this.#api.send({ method: 'PUT', path: own, timeout: WRITE_TIMEOUT }, ctx)
      if (ended.status === 200 || ended.status === 202) return ended.reloadId
      await this.#api.send({ method: 'DELETE', path: own }, ctx) // the number of open ones is bounded
      throw this.#api.toError('PUT transactions', ended)
    })
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

  async #version(pool: string, ctx: CallContext): Promise<number> {
    const { paths, tree } = await this.#api.served(ctx)
    const reply = await this.#api.read(paths.configServers(pool), ctx)
    const { version } = this.#api.parse(reply, (text) =>
      parseConfigServers(tree, text, reply.configVersion),
    )
    return version ?? this.#askVersion(ctx)
  }

  /** A reply other than a good one means "not known", and "not known" is never read as gentle. */
  async #read(
    pool: string,
    stamp: string,
    ctx: CallContext,
  ): Promise<Map<string, Configured> | 'unknown' | 'unread'> {
    const { paths, tree } = await this.#api.served(ctx)
    const lines = await this.#api.get(paths.configServers(pool), ctx)
    // 3.2 and later say so of a `listen` section, earlier ones list nothing
    if (lines.status === 404) return new Map()
    if (lines.status !== 200) return WITHHELD.has(lines.status) ? 'unknown' : 'unread'
    const { data } = this.#api.parse(lines, (text) =>
      parseConfigServers(tree, text, lines.configVersion),
    )
    const backend = await this.#sections([paths.configBackend(pool)], ctx)
    if (this.#defaults?.stamp !== stamp) {
      const sections = await this.#sections(paths.configDefaults, ctx)
      this.#defaults = { stamp, sections }
    }
    const defaults = appliesTo(backend, this.#defaults.sections)
    return new Map(data.map((line) => [line.name, configured(line, backend, defaults)]))
  }

  async #sections(paths: readonly string[], ctx: CallContext): Promise<Sections> {
    const { tree } = await this.#api.served(ctx)
    for (const path of paths) {
      const reply = await this.#api.get(path, ctx)
      if (reply.status === 200) {
        return this.#api.parse(reply, (text) => parseSections(tree, text))
      }
    }
    return 'unknown'
  }
}

function configured(line: ConfigServer, backend: Sections, defaults: Sections): Configured {
  const down = option('on-marked-down', 'shutdown-sessions', line, backend, defaults)
  const up = option('on-marked-up', 'shutdown-backup-sessions', line, backend, defaults)
  const kinds = ['check', 'agent-check'].map((key) =>
    option(key, 'enabled', line, backend, defaults),
  )
  const weight = line['weight']
  const maintenance = line['maintenance']
  return {
    maint: down === true ? 'cuts' : down === false ? 'gentle' : 'unknown',
    cutsBackups: up,
    known: true,
    place: 'line',
    checked:
      line['track'] !== undefined || kinds.includes(true)
        ? true
        : kinds.every((kind) => kind === false)
          ? false
          : 'unknown',
    named: isNamed(line['address']),
    weight: typeof weight === 'number' ? weight : null,
    maintenance: typeof maintenance === 'string' ? maintenance : null,
  }
}

function exists(ref: MemberRef): DrainableError {
  return new DrainableError(
    'CONFLICT',
    `${formatRef(ref)} is in the configuration already, at another address`,
    { provider: PROVIDER, ref, retryable: false },
  )
}
