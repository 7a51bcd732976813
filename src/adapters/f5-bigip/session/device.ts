import { pause, type Clock } from '../../../provider/clock.js'
import type { CallContext } from '../../../provider/contract.js'
import { DrainableError } from '../../../provider/error.js'
import type { JsonValue } from '../../../kit/json.js'
import { ListCost, tooDear } from '../../../kit/look-cost.js'
import { RecentMap } from '../../../kit/recent-map.js'
import { parsePeers, parseReady, type PeerRow } from '../codec/device.js'
import {
  MEMBER_SELECT,
  NODE_SELECT,
  parseExpanded,
  parseNode,
  parseItems,
  parseListed,
  parsePool,
  POOL_SELECT,
  Rows,
  unknownPool,
  type Members,
  type NodeRow,
  type PoolAttributes,
} from '../codec/members.js'
import { membersPath, nodePath, poolPath } from '../codec/names.js'
import {
  parseAllStats,
  parseNodeStats,
  parseStats,
  type NodeStats,
  type StatsTable,
} from '../codec/stats.js'
import type { Settings } from '../options.js'
import { UnitRole } from './role.js'
import { PROVIDER, type Session } from './session.js'

/** How long a pool's own properties are taken as unchanged, in milliseconds. */
const ATTRIBUTES_FOR = 30_000
/** Wait before a list is read again where the device cannot say whether it is ready. */
const SETTLE_BLIND = 3_000
/** Of a link to the next page, in characters. */
const LONGEST_LINK = 8_192

interface Aged<T> {
  readonly at: number
  readonly value: T
}

/** A pool and its members. */
export interface ListedPool {
  readonly pool: PoolAttributes
  readonly members: Members
}

/** Everything that is in the configuration, in two lists. */
export interface Overview {
  readonly pools: readonly ListedPool[]
  readonly nodes: readonly NodeRow[]
  /** Nodes whose rows can't be read. */
  readonly odd: readonly DrainableError[]
}

/** One unit: reads of its configuration and counters, its role, and what tells one life of it from the next. */
export class Device {
  readonly session: Session
  readonly role: UnitRole
  /** When the pools of a node are read beside its own counters. */
  readonly evidence: Evidence
  /** What the list of all pools costs. */
  readonly #poolList: ListCost
  /** What the answer costs that counts every pool of `/Common`. */
  readonly #statsList: ListCost
  readonly #attributes = new RecentMap<string, Aged<PoolAttributes>>()
  #overview: Aged<Overview> | undefined
  /** How many pools it had before the first list. */
  #size: number | undefined

  constructor(session: Session, settings: Settings) {
    this.session = session
    this.role = new UnitRole(session, settings.trafficGroup)
    this.evidence = new Evidence(settings.freshness)
    this.#poolList = new ListCost(session.spending)
    this.#statsList = new ListCost(session.spending)
  }

  get host(): string {
    return this.session.host
  }

  /** Every device of the trust domain, as this one knows them; undefined where it does not tell. */
  async readPeers(ctx: CallContext): Promise<readonly PeerRow[] | undefined> {
    const list = await this.session.get('/mgmt/tm/cm/device', ctx, 'forbidden', 'refused')
    return list === undefined ? undefined : parsePeers(list)
  }

  /** Whether the list of all pools is the cheaper way to so many of them. */
  poolListPays(wanted: number, ctx: CallContext): Promise<boolean> {
    return this.#poolList.pays(wanted, () => this.#countPools(ctx))
  }

  /** Whether the counters of all pools in one answer are the cheaper way to those of so many. */
  statsListPays(wanted: number, ctx: CallContext): Promise<boolean> {
    return this.#statsList.pays(wanted, () => this.#countPools(ctx))
  }

  /** How many pools there are; undefined where a page of the list does not tell. */
  async #countPools(ctx: CallContext): Promise<number | undefined> {
    if (this.#size !== undefined) return this.#size
    const path = '/mgmt/tm/ltm/pool?$top=1&$select=fullPath'
    const page = await this.session.get(path, ctx).catch(tooDear)
    this.#size = page?.at('totalItems').count()
    return this.#size
  }

  /** Pools of the device, each with its members in the same answer. */
  async listPools(ctx: CallContext): Promise<readonly ListedPool[]> {
    // While it loads, the list is empty.
    const read = (): Promise<readonly ListedPool[]> =>
      this.sure(
        () => this.#readPools(ctx),
        ({ length }) => length > 0,
        ctx,
      )
    return this.#poolList.of(read, ({ length }) => length)
  }

  async #readPools(ctx: CallContext): Promise<readonly ListedPool[]> {
    const query = `?expandSubcollections=true&$select=${POOL_SELECT},membersReference`
    const parse = (item: JsonValue) => ({ pool: parsePool(item), members: parseExpanded(item) })
    const found = await this.#list('/mgmt/tm/ltm/pool', query, parse, ctx)
    const { rows: listed, odd } = found ?? { rows: [], odd: [] }
    if (odd[0] !== undefined) throw odd[0]
    // A pool without members looks like one whose members were not put in: one that was asked for tells.
    const [first] = listed
    const told = listed.some(({ members }) => sizeOf(members) > 0)
    const asked =
      told || first === undefined ? undefined : await this.listMembers(first.pool.fullPath, ctx)
    const expands = sizeOf(asked) === 0
    const pools: ListedPool[] = []
    for (const { pool, members } of listed) {
      const whole = expands ? members : undefined
      const own = whole ?? (await this.listMembers(pool.fullPath, ctx))
      pools.push({ pool, members: own ?? { rows: [], odd: [] } })
    }
    return pools
  }

  /** Members of a pool; undefined where there is no such pool, as far as this one answer goes. */
  async listMembers(pool: string, ctx: CallContext): Promise<Members | undefined> {
    return this.#list(membersPath(pool), `?$select=${MEMBER_SELECT}`, parseListed, ctx)
  }

  /** Nodes of the device. */
  async listNodes(ctx: CallContext): Promise<Pick<Overview, 'nodes' | 'odd'>> {
    const query = `?$select=${NODE_SELECT}`
    const found = await this.#list('/mgmt/tm/ltm/node', query, parseNode, ctx)
    return { nodes: found?.rows ?? [], odd: found?.odd ?? [] }
  }

  /**
   * Pools with their members, and nodes.
   *
   * @param age - how old they may be, in milliseconds
   * @throws `CONFLICT` while the configuration loads
   */
  async overview(age: number, ctx: CallContext): Promise<Overview> {
    const known = this.#overview
    const at = ctx.clock.now()
    if (known !== undefined && at <= known.at + age) return known.value
    const value = { pools: await this.listPools(ctx), ...(await this.listNodes(ctx)) }
    this.#overview = { at, value }
    return value
  }

  /** The configuration was changed: what was listed is old. */
  forget(): void {
    this.#overview = undefined
  }

  /** The counts of a node over all pools, and beside them; undefined where the device does not tell. */
  async readNodeStats(node: string, ctx: CallContext): Promise<NodeStats | undefined> {
    const path = `${nodePath(node)}/stats`
    const json = await this.session.get(path, ctx, 'refused', 'unregistered')
    return json === undefined ? undefined : parseNodeStats(json, node)
  }

  /**
   * The rows of all members that one answer has: those of `/Common`.
   *
   * @throws `MALFORMED_REPLY` where there is no such answer
   */
  async readAllStats(ctx: CallContext): Promise<ReadonlyMap<string, StatsTable>> {
    const path = '/mgmt/tm/ltm/pool/members/stats'
    const read = async (): Promise<ReadonlyMap<string, StatsTable>> => {
      const json = await this.session.get(path, ctx, 'refused', 'unregistered')
      const found = json === undefined ? undefined : parseAllStats(json)
      if (found !== undefined && found.size > 0) return found
      const words = `${this.host}: there are no rows in ${path}`
      throw new DrainableError('MALFORMED_REPLY', words, { provider: PROVIDER })
    }
    return this.#statsList.of(read, ({ size }) => size)
  }

  async readStats(pool: string, ctx: CallContext): Promise<StatsTable> {
    const json = await this.session.get(`${membersPath(pool)}/stats`, ctx)
    return json === undefined ? new Map() : parseStats(json, pool)
  }

  /** @param old - properties of any age do */
  async readPool(pool: string, ctx: CallContext, old = false): Promise<PoolAttributes> {
    const known = this.#attributes.get(pool)
    const age = old ? Infinity : ATTRIBUTES_FOR
    if (known !== undefined && ctx.clock.now() < known.at + age) return known.value
    const json = await this.session.get(`${poolPath(pool)}?$select=${POOL_SELECT}`, ctx)
    const value = json === undefined ? unknownPool(pool) : parsePool(json)
    if (json !== undefined) assertSame(json, value.fullPath, pool)
    this.#attributes.set(pool, { at: ctx.clock.now(), value })
    return value
  }

  async readNode(node: string, ctx: CallContext): Promise<NodeRow | undefined> {
    const json = await this.session.get(nodePath(node), ctx)
    if (json === undefined) return undefined
    const row = parseNode(json)
    assertSame(json, row.fullPath, node)
    return row
  }

  /**
   * Returns once the absence just read can be believed: while the configuration loads, the device
   * says of every object that it is not there. What was absent must be read again after this.
   *
   * @throws `CONFLICT` while the device is not ready
   */
  async confirmReady(ctx: CallContext): Promise<void> {
    const ask = { method: 'GET', path: '/mgmt/tm/sys/ready' } as const
    const meaning = await this.session.ask(ask, ctx)
    // A release that does not have it, or a user who may not ask
    if (meaning.kind === 'forbidden' || meaning.kind === 'unregistered') {
      await pause(ctx.clock, SETTLE_BLIND, ctx.signal)
      return
    }
    const what = `GET ${ask.path}`
    // What calls even this absent says so of everything.
    if (meaning.kind !== 'ok' && meaning.kind !== 'absent')
      throw this.session.toError(meaning, what)
    if (meaning.kind === 'ok' && parseReady(this.session.value(meaning, what))) return
    const words = `${this.host} is not ready: its configuration is still loading`
    throw new DrainableError('CONFLICT', words, { provider: PROVIDER })
  }

  /** What is not there is believed once the device has said that it is ready, and says it again. */
  async sure<T>(
    read: () => Promise<T>,
    isThere: (found: T) => boolean,
    ctx: CallContext,
  ): Promise<T> {
    const found = await read()
    if (isThere(found)) return found
    await this.confirmReady(ctx)
    return read()
  }

  /** A list over all its pages. Of `nextLink` only the query is used: links never lead elsewhere. */
  async #list<T>(
    path: string,
    query: string,
    parse: (item: JsonValue) => T,
    ctx: CallContext,
  ): Promise<Rows<T>['all'] | undefined> {
    const found = new Rows(parse)
    const seen = new Set<string>()
    let next: string | undefined = query
    let last: JsonValue | undefined
    while (next !== undefined && !seen.has(next)) {
      seen.add(next)
      const list = await this.session.get(`${path}${next}`, ctx)
      if (list === undefined) return undefined
      found.take(parseItems(list))
      last = list
      const link = list.at('nextLink').text()?.slice(0, LONGEST_LINK)
      next = link === undefined ? undefined : withWords(/\?[^#]*/.exec(link)?.[0], query)
      if (link !== undefined && next === undefined) throw list.wrong('a link to its next page')
    }
    // What a page has lost would seem not to be there.
    const total = last?.at('totalItems')
    const { count } = found
    if (count < (total?.count() ?? 0)) throw total?.wrong(`as many as were listed: ${count}`)
    return found.all
  }
}

function sizeOf(members: Members | undefined): number {
  return members === undefined ? 0 : members.rows.length + members.odd.length
}

/** What answers for another object than the one that was asked for is no answer; `%0` is the route domain of none. */
function assertSame(json: JsonValue, found: string, asked: string): void {
  const plain = (path: string): string => path.replace(/%0(?!\d)/, '')
  if (plain(found) !== plain(asked)) throw json.at('fullPath').wrong(`'${asked}', as was asked for`)
}

interface Taken {
  readonly key: string
  readonly at: number
  readonly times: number
}

/**
 * When the pools of a node are read beside the node's own counters, that show nothing: twice for one
 * state and one count of arrivals, at least as far apart as statistics can lag. What comes after that
 * moves the count of arrivals, and the pools are read again.
 */
class Evidence {
  readonly #freshness: number
  readonly #taken = new RecentMap<string, Taken>()

  constructor(freshness: number) {
    this.#freshness = freshness
  }

  isDue(node: string, key: string, { clock }: { readonly clock: Clock }): boolean {
    const taken = this.#taken.get(node)
    if (taken?.key !== key) return true
    return taken.times < 2 && clock.now() >= taken.at + this.#freshness
  }

  note(node: string, key: string, { clock }: { readonly clock: Clock }): void {
    const known = this.#taken.get(node)
    const times = known?.key === key ? known.times + 1 : 1
    this.#taken.set(node, { key, at: clock.now(), times })
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
