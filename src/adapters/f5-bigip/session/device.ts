import { pause } from '../../../provider/clock.js'
import type { CallContext } from '../../../provider/contract.js'
import { DrainableError } from '../../../provider/error.js'
import type { JsonValue } from '../../../kit/json.js'
import {
  parseFailoverStatus,
  parseFailoverText,
  parseReady,
  type Role,
  type RoleReading,
} from '../codec/device.js'
import {
  MEMBER_SELECT,
  parseExpanded,
  parseItems,
  parseNode,
  parsePool,
  pathOf,
  POOL_SELECT,
  toMembers,
  type MemberRow,
  type NodeRow,
  type PoolAttributes,
} from '../codec/members.js'
import { membersPath, nodePath, poolPath } from '../codec/names.js'
import { parseStats, type MemberStats, type StatsTable } from '../codec/stats.js'
import type { Settings } from '../options.js'
import { PROVIDER, type Session } from './session.js'

/** How long a pool's own properties are taken as unchanged, in milliseconds. */
const ATTRIBUTES_FOR = 30_000
/** Wait before a list is read again where the device cannot say whether it is ready. */
const SETTLE_BLIND = 3_000
/** Of a link to the next page, in characters. */
const LONGEST_LINK = 8_192
/** Start of a role is told in steps this wide, so that two processes that look name it alike. */
const BUCKET = 600_000

/** One unit: reads of its configuration and counters, its role, and what tells one life of it from the next. */
export class Device {
  readonly session: Session
  readonly #settings: Settings
  readonly #attributes = new Map<string, { readonly at: number; readonly value: PoolAttributes }>()
  readonly #totals = new Map<string, number>()
  /** Whether it was ever seen active: only then can it hold work. */
  everActive = false
  #role: Role = 'unknown'
  /** Bounds of the moment the role began, by `performance.now()`. */
  #since: { readonly from: number; readonly to: number } | undefined
  #life = ''
  #lives = 0
  #resets = 0

  constructor(session: Session, settings: Settings) {
    this.session = session
    this.#settings = settings
  }

  get host(): string {
    return this.session.host
  }

  /** Changes when counters may have been lost, or connections with the role. */
  get incarnation(): string {
    const resets = this.#resets === 0 ? '' : `, counters reset ${this.#resets} times`
    return `${this.#role} ${this.#life}${resets}`
  }

  /** How many lives of it were seen: a reboot or a change of role begins another. */
  get lives(): number {
    return this.#lives
  }

  /** Role and groups, as the unit says now. */
  async readRole(ctx: CallContext): Promise<RoleReading> {
    const meaning = await this.session.ask(
      { method: 'GET', path: '/mgmt/tm/cm/failover-status' },
      ctx,
    )
    if (meaning.kind === 'absent' || meaning.kind === 'forbidden') {
      return { role: 'unknown', groups: [], text: this.session.clean(meaning.message) }
    }
    if (meaning.kind !== 'ok')
      throw this.session.toError(meaning, 'GET /mgmt/tm/cm/failover-status')
    return parseFailoverStatus(this.session.value(meaning, 'GET /mgmt/tm/cm/failover-status'))
  }

  /** Whether a unit of that role passes traffic; a device that doesn't tell is taken for one of its own. */
  isActive(reading: RoleReading): boolean {
    const { trafficGroup } = this.#settings
    const active = reading.role === 'active' || reading.role === 'unknown'
    if (!active || trafficGroup === undefined || reading.groups.length === 0) return active
    return reading.groups.includes(trafficGroup)
  }

  /**
   * Reads how long the role has lasted, after counters were read: a role that began after they were
   * asked for makes them worthless.
   *
   * @throws `CONFLICT` where the role changed since `before`
   */
  async confirmRole(before: RoleReading, ctx: CallContext): Promise<void> {
    const asked = performance.now()
    const meaning = await this.session.ask(
      { method: 'GET', path: '/mgmt/tm/sys/failover', patient: false },
      ctx,
    )
    const told =
      meaning.kind === 'ok'
        ? parseFailoverText(this.session.value(meaning, 'GET /mgmt/tm/sys/failover'))
        : undefined
    const role = told?.role ?? (await this.readRole(ctx)).role
    if (role !== before.role && role !== 'unknown' && before.role !== 'unknown') {
      throw new DrainableError(
        'CONFLICT',
        `${this.host} changed from ${before.role} to ${role} while it was read`,
        { provider: PROVIDER },
      )
    }
    this.#noteRole(before.role, told?.seconds, asked)
    if (this.isActive(before)) this.everActive = true
  }

  /** The whole seconds that it tells bound the start; bounds that no longer meet mean another start. */
  #noteRole(role: Role, seconds: number | undefined, asked: number): void {
    const now = performance.now()
    const since =
      seconds === undefined
        ? undefined
        : { from: asked - (seconds + 1) * 1_000, to: now - seconds * 1_000 }
    const known = this.#since
    const moved =
      since !== undefined && known !== undefined && (since.from > known.to || since.to < known.from)
    if (this.#life === '' || role !== this.#role || moved) {
      this.#lives += 1
      this.#role = role
      this.#since = since
      this.#life = toLife(seconds, this.#lives)
      return
    }
    if (since === undefined) return
    this.#since =
      known === undefined
        ? since
        : { from: Math.max(since.from, known.from), to: Math.min(since.to, known.to) }
  }

  /** Pools of the device, each with its members in the same answer. */
  async listPools(
    ctx: CallContext,
  ): Promise<readonly { readonly pool: PoolAttributes; readonly members: readonly MemberRow[] }[]> {
    const found = await this.#list('/mgmt/tm/ltm/pool', '?expandSubcollections=true', ctx)
    return (found ?? []).map((item) => ({ pool: parsePool(item), members: parseExpanded(item) }))
  }

  /** Members of a pool; undefined where there is no such pool, as far as this one answer goes. */
  async listMembers(pool: string, ctx: CallContext): Promise<readonly MemberRow[] | undefined> {
    const found = await this.#list(membersPath(pool), `?$select=${MEMBER_SELECT}`, ctx)
    return found === undefined ? undefined : toMembers(found)
  }

  async readStats(pool: string, ctx: CallContext): Promise<StatsTable> {
    const json = await this.session.get(`${membersPath(pool)}/stats`, ctx)
    const table = json === undefined ? new Map<string, MemberStats>() : parseStats(json, pool)
    this.#noteTotals(pool, table)
    return table
  }

  async readPool(pool: string, ctx: CallContext): Promise<PoolAttributes> {
    const known = this.#attributes.get(pool)
    if (known !== undefined && performance.now() < known.at + ATTRIBUTES_FOR) return known.value
    const json = await this.session.get(`${poolPath(pool)}?$select=${POOL_SELECT}`, ctx)
    const value =
      json === undefined
        ? { fullPath: pool, serviceDownAction: undefined, minActiveMembers: 0, slowRampTime: 0 }
        : parsePool(json)
    this.#attributes.set(pool, { at: performance.now(), value })
    return value
  }

  async readNode(node: string, ctx: CallContext): Promise<NodeRow | undefined> {
    const json = await this.session.get(nodePath(node), ctx)
    return json === undefined ? undefined : parseNode(json)
  }

  /**
   * Returns once the absence just read can be believed: while the configuration loads, the device
   * says of every object that it is not there. What was absent must be read again after this.
   *
   * @throws `CONFLICT` while the device is not ready
   */
  async confirmReady(ctx: CallContext): Promise<void> {
    const ask = { method: 'GET', path: '/mgmt/tm/sys/ready', patient: false } as const
    const meaning = await this.session.ask(ask, ctx)
    if (meaning.kind === 'ok') {
      if (parseReady(this.session.value(meaning, 'GET /mgmt/tm/sys/ready'))) return
      throw new DrainableError(
        'CONFLICT',
        `${this.host} is not ready: its configuration is still loading`,
        { provider: PROVIDER },
      )
    }
    if (meaning.kind === 'later' && !/not registered/i.test(meaning.message)) {
      throw this.session.toError(meaning, 'GET /mgmt/tm/sys/ready')
    }
    await pause(ctx.clock, SETTLE_BLIND, ctx.signal)
  }

  /** A list over all its pages. Of `nextLink` only the query is used: links never lead elsewhere. */
  async #list(
    path: string,
    query: string,
    ctx: CallContext,
  ): Promise<readonly JsonValue[] | undefined> {
    const found = new Map<string, JsonValue>() // by path: a list that changes while it is paged repeats items
    const seen = new Set<string>()
    let next: string | undefined = query
    while (next !== undefined && !seen.has(next)) {
      seen.add(next)
      const list = await this.session.get(`${path}${next}`, ctx)
      if (list === undefined) return undefined
      for (const item of parseItems(list)) found.set(pathOf(item), item)
      const link = list.at('nextLink').text()?.slice(0, LONGEST_LINK)
      next = link === undefined ? undefined : withWords(/\?[^#]*/.exec(link)?.[0], query)
    }
    return [...found.values()]
  }

  /** A cumulative counter that fell: the traffic processes began anew, or somebody reset statistics. */
  #noteTotals(pool: string, table: StatsTable): void {
    let fell = false
    for (const [key, { arrivals }] of table) {
      if (arrivals === undefined) continue
      const name = `${pool}\0${key}`
      if (arrivals < (this.#totals.get(name) ?? 0)) fell = true
      this.#totals.set(name, arrivals)
    }
    if (fell) this.#resets += 1
  }
}

/** The query of a next page; words of the first that it lost are put back. */
function withWords(next: string | undefined, first: string): string | undefined {
  if (next === undefined) return undefined
  const given = new URLSearchParams(next)
  const lost = first
    .slice(1)
    .split('&')
    .filter((word) => !given.has(word.split('=')[0] ?? ''))
  return [next, ...lost].join('&')
}

function toLife(seconds: number | undefined, lives: number): string {
  const again = lives === 1 ? '' : ` #${lives}`
  if (seconds === undefined) return `since an unknown time${again}`
  const start = Math.floor((Date.now() - seconds * 1_000) / BUCKET) * BUCKET
  return `since about ${new Date(start).toISOString().slice(0, 16)}Z${again}`
}
