import type { CallContext, MaintEffect, MemberRef } from '../../../provider/contract.js'
import {
  type ConfigServer,
  parseConfigServers,
  parseHardStopAfter,
  parseSections,
  type Section,
} from '../codec/configuration.js'
import { isNamed, parseRaw, type RawServers } from '../codec/raw.js'
import { nameOf } from '../codec/replies.js'
import type { DataplaneApi } from '../session/session.js'
import type { RuntimeView } from './read.js'

/** Changes when the configuration may have: any write through the API, or a reload of a hand-edited file. */
export function configStamp({ configVersion, info }: RuntimeView): string {
  return `${configVersion ?? ''}|${nameOf(info)}`
}

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

/** So this API says that a section is kept from this user, or that it has no such path. */
const WITHHELD: ReadonlySet<number> = new Set([403, 404, 405, 501])

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
  #hardStopAt: string | undefined
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

  /** What it says about one server, at the time of a look. */
  async of(ref: MemberRef, view: RuntimeView, ctx: CallContext): Promise<Configured> {
    return (await this.servers(ref.pool, [ref.member], configStamp(view), ctx))(ref.member)
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

  /**
   * What it says of how long a replaced process lives. It is held against what the operator says, and proves nothing: a
   * process lives by the value that it was started with, which this API does not tell (2.9 with HAProxy 2.6, 3.2 and 3.4).
   *
   * @param stamp - changes when the configuration may have changed
   * @returns undefined where it was told for this stamp already; what could not be read is asked for again
   */
  async hardStop(stamp: string, ctx: CallContext): Promise<HardStop | undefined> {
    if (this.#hardStopAt === stamp) return undefined
    const { paths, tree } = await this.#api.served(ctx)
    const reply = await this.#api.get(paths.configGlobal, ctx)
    const isWithheld = WITHHELD.has(reply.status)
    if (!isWithheld && reply.status !== 200) return 'unread'
    const value = isWithheld
      ? 'unknown'
      : (this.#api.parse(reply, (text) => parseHardStopAfter(tree, text)) ?? 'unset')
    this.#hardStopAt = stamp
    return value
  }

  /** Forgets what was read of a backend. */
  forget(pool: string): void {
    this.#pools.delete(pool)
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

type Line = Readonly<Record<string, unknown>>
/** `unknown`: they could not be read. */
type Sections = readonly Section[] | 'unknown'

/** The defaults sections that may apply to a backend: the one that it names, else every one. */
function appliesTo(backend: Sections, defaults: Sections): Sections {
  if (backend === 'unknown' || defaults === 'unknown') return defaults
  const named = new Set(backend.map(({ from }) => from))
  const own = defaults.filter(({ name }) => name !== undefined && named.has(name))
  if (own.length === 0) return defaults
  return own
}

/** Whether a server has an option: its own line decides, then its backend's, then the defaults section that applies. */
function option(
  key: string,
  value: string,
  line: Line,
  backend: Sections,
  defaults: Sections,
): boolean | 'unknown' {
  if (line[key] !== undefined) return line[key] === value
  if (backend === 'unknown' || defaults === 'unknown') return 'unknown'
  const has = ({ defaultServer }: Section): boolean => defaultServer[key] === value
  if (backend.some(has)) return true
  if (!defaults.some(has)) return false
  return defaults.every(has) ? true : 'unknown'
}

/**
 * HAProxy's `hard-stop-after` in the configuration, in milliseconds. `unset`: a process that a reload has replaced lives
 * as long as its connections. `unknown`: it is kept from this user. `unread`: it could not be read just now.
 */
export type HardStop = number | 'unset' | 'unknown' | 'unread'
