import type { CallContext } from '../../../provider/contract.js'
import { DrainableError, isDrainableError, type ErrorCode } from '../../../provider/error.js'
import { ListCost, tooDear } from '../../../kit/look-cost.js'
import { argsOf, pathOf, type Row, rowsOf, toCount } from '../codec/nitro.js'
import { assertNamed, type Entry } from '../codec/rows.js'
import type { NitroSession } from '../session/session.js'

/** What the lists of an appliance cost, and what it was found not to do. */
export class Abilities {
  readonly #costs = new Map<NitroSession, Map<string, ListCost>>()
  /** `totalrequests` in the single form of a member's statistics, where the nested form lacks it. */
  totals = true
  /** How many of a type there were before its first list. */
  readonly counted = new Map<string, number>()

  /** What the list of one type costs at one address. */
  cost(session: NitroSession, tree: 'config' | 'stat', type: string): ListCost {
    const costs = this.#costs.get(session) ?? new Map<string, ListCost>()
    this.#costs.set(session, costs)
    const cost = costs.get(`${tree} ${type}`) ?? new ListCost(session.spending)
    costs.set(`${tree} ${type}`, cost)
    return cost
  }
}

/**
 * Asks for objects of one type: one by one, or by the whole list where that costs less. That something is
 * not there is believed only from its own answer, never from a list that leaves it out.
 */
export class Lists {
  readonly #session: NitroSession
  readonly #ctx: CallContext
  readonly #can: Abilities

  constructor(session: NitroSession, ctx: CallContext, can: Abilities) {
    this.#session = session
    this.#ctx = ctx
    this.#can = can
  }

  /** All of a type, told in one list. */
  all(tree: 'config' | 'stat', type: string, query = ''): Promise<readonly Row[]> {
    const cost = this.#can.cost(this.#session, tree, type)
    return cost.of(
      () => this.rows(tree, type, undefined, query),
      ({ length }) => length,
    )
  }

  /** All of a type, or one of it. */
  async rows(
    tree: 'config' | 'stat',
    type: string,
    name?: string,
    query = '',
  ): Promise<readonly Row[]> {
    return rowsOf(await this.#session.get(pathOf(tree, type, name, query), this.#ctx), type)
  }

  /** How many of a type there are; undefined where a build does not count them. */
  async #count(type: string): Promise<number | undefined> {
    const known = this.#can.counted.get(type)
    if (known !== undefined) return known
    const [row] = (await this.rows('config', type, undefined, 'count=yes').catch(notListed)) ?? []
    const count = row === undefined ? undefined : toCount(row.at('__count'))
    if (count !== undefined) this.#can.counted.set(type, count)
    return count
  }

  /** What is wanted of a type, by name: of its list where that costs less, and what that leaves out one by one. */
  async #wanted<T>(
    tree: 'config' | 'stat',
    type: string,
    names: readonly string[],
    { of = type, query = '', toMap, one, isWhole = () => true }: Ways<T>,
  ): Promise<Map<string, T>> {
    const cost = this.#can.cost(this.#session, tree, type)
    const list = async (): Promise<ReadonlyMap<string, T>> => {
      const listed = toMap(await this.rows(tree, type, undefined, query))
      if (query === '' || names.some((name) => listed.has(name))) return listed
      // A build that does not know the query: what is wanted is asked for one by one for a long while.
      throw new DrainableError('REJECTED', `the list of ${type} has nothing of what is wanted`)
    }
    const listed = (await cost.pays(names.length, () => this.#count(of)))
      ? await cost.of(list, ({ size }) => size).catch(notListed)
      : undefined
    const found = await Promise.all(
      names.map(async (name): Promise<readonly (readonly [string, T])[]> => {
        const known = listed?.get(name)
        const told = known !== undefined && isWhole(name, known) ? known : await one(name)
        return told === undefined ? [] : [[name, told]]
      }),
    )
    return new Map(found.flat())
  }

  /** Objects by their names, which stand under `key`. One that is not there is left out. */
  objects(
    tree: 'config' | 'stat',
    type: string,
    key: string,
    names: readonly string[],
  ): Promise<ReadonlyMap<string, Row>> {
    return this.#wanted(tree, type, names, {
      toMap: (rows) => new Map(rows.map((row) => [row.at(key).neededText(), row])),
      one: async (name) => {
        const [row] = await this.rows(tree, type, name)
        if (row !== undefined) assertNamed(row, key, name)
        return row
      },
    })
  }

  /**
   * Bindings by the name of what they are bound to, which stands under `key`; in one list since 11.1.
   *
   * @param isWhole - whether nothing that is looked for is missing: else its own answer is asked for
   */
  bindings(
    type: string,
    key: string,
    names: readonly string[],
    isWhole: (name: string, rows: readonly Row[]) => boolean,
  ): Promise<ReadonlyMap<string, readonly Row[]>> {
    return this.#wanted('config', type, names, {
      of: key === 'servicegroupname' ? 'servicegroup' : 'lbvserver',
      query: 'bulkbindings=yes',
      toMap: (rows) => Map.groupBy(rows, (row) => row.at(key).neededText()),
      one: (name) => this.rows('config', type, name),
      isWhole,
    })
  }

  /** The members' rows of `stat` by group. That the list has them below each group is not documented. */
  groupStats(names: readonly string[]): Promise<ReadonlyMap<string, readonly Row[]>> {
    const membersOf = (row: Row): readonly Row[] => rowsOf({ body: row }, 'servicegroupmember')
    return this.#wanted('stat', 'servicegroup', names, {
      query: 'statbindings=yes',
      toMap: (rows) => {
        const pairs = rows.map((row) => [row, membersOf(row)] as const)
        const told = pairs.filter(([, members]) => members.length > 0)
        return new Map(told.map(([row, of]) => [row.at('servicegroupname').neededText(), of]))
      },
      one: async (name) => {
        const rows = this.rows('stat', 'servicegroup', name, 'statbindings=yes')
        // A build that does not know the nested form is asked for each member.
        return (await rows.catch(refused([], 'REJECTED'))).flatMap(membersOf)
      },
    })
  }

  /** A member's single form for its `totalrequests`, which the nested form can lack. */
  async memberTotals(group: string, entry: Entry): Promise<Row | undefined> {
    if (!this.#can.totals) return undefined
    const row = await this.memberStat(group, entry)
    if (row?.at('totalrequests').present === true) return row
    if (row !== undefined) this.#can.totals = false
    return undefined
  }

  /** For builds whose nested form leaves a member out. */
  async memberStat(
    group: string,
    { server, address, subject, port }: Entry,
  ): Promise<Row | undefined> {
    const shared = subject.kind === 'member' && subject.address !== undefined
    const args = argsOf('args', {
      servicegroupname: group,
      ...(shared && address !== undefined ? { ip: address } : { servername: server }),
      port: String(port),
    })
    const rows = this.rows('stat', 'servicegroupmember', undefined, args)
    return (await rows.catch(refused([], 'REJECTED', 'FORBIDDEN')))[0]
  }

  /** Names of those server objects that are disabled. */
  async disabledServers(names: readonly string[]): Promise<ReadonlySet<string>> {
    const found = this.objects('config', 'server', 'name', [...new Set(names)])
    // Not every user may look at servers; the member's own state says that it is out all the same.
    const servers = await found.catch(refused(new Map<string, Row>(), 'REJECTED', 'FORBIDDEN'))
    const isOff = (row: Row): boolean => row.at('state').text()?.toUpperCase() === 'DISABLED'
    return new Set([...servers].flatMap(([name, row]) => (isOff(row) ? name : [])))
  }

  /** The virtual servers that each group is bound to; undefined where this user may not know. */
  async boundGroups(): Promise<ReadonlyMap<string, readonly string[]> | undefined> {
    const type = 'lbvserver_servicegroup_binding'
    const asked = this.rows('config', type, undefined, 'bulkbindings=yes')
    const rows = await asked.catch(refused(undefined, 'REJECTED', 'FORBIDDEN'))
    if (rows === undefined) return undefined
    const groups = Map.groupBy(rows, (row) => row.at('servicegroupname').word() ?? '')
    return new Map(
      [...groups].map(([group, of]) => [group, of.map((row) => row.at('name').neededText())]),
    )
  }
}

/** How a type is asked for. */
interface Ways<T> {
  /** What has one row of it, or several: these are counted before the first list. @default the type itself */
  readonly of?: string
  /** Of its list. */
  readonly query?: string
  readonly toMap: (rows: readonly Row[]) => ReadonlyMap<string, T>
  readonly one: (name: string) => Promise<T | undefined>
  /** Whether the list tells enough of one: else it is asked for alone. */
  readonly isWhole?: (name: string, found: T) => boolean
}

/** A list that is refused, or too dear. */
function notListed(error: unknown): undefined {
  if (!isDrainableError(error, 'REJECTED')) tooDear(error)
}

/** In place of what the appliance, or the user's rights, refuse. */
function refused<T>(instead: T, ...codes: readonly ErrorCode[]): (error: unknown) => T {
  return (error) => {
    if (isDrainableError(error, ...codes)) return instead
    throw error
  }
}
