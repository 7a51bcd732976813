import type { CallContext } from '../../../provider/contract.js'
import { isDrainableError } from '../../../provider/error.js'
import { ListCost, tooDear } from '../../../kit/look-cost.js'
import { argsOf, pathOf, type Row, rowsOf } from '../codec/nitro.js'
import { assertNamed, type Entry } from '../codec/rows.js'
import type { NitroSession } from '../session/session.js'

/** What an appliance was found to do, and what its lists cost. */
export class Abilities {
  readonly #costs = new Map<NitroSession, Map<string, ListCost>>()
  /** `?bulkbindings=yes`, since 11.1. */
  bulk = true
  /** Members below each group in the list of `stat/servicegroup`: not documented. */
  nested = true
  /** `totalrequests` in the single form of a member's statistics, where the nested form lacks it. */
  totals = true

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

  #pays(tree: 'config' | 'stat', type: string, count: number): boolean {
    return this.#can.cost(this.#session, tree, type).pays(count)
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

  /** Objects by their names, which stand under `key`. One that is not there is left out. */
  async objects(
    tree: 'config' | 'stat',
    type: string,
    key: string,
    names: readonly string[],
  ): Promise<ReadonlyMap<string, Row>> {
    const found = new Map<string, Row>()
    if (this.#pays(tree, type, names.length)) {
      const wanted = new Set(names)
      for (const row of (await this.all(tree, type).catch(tooDear)) ?? []) {
        const name = row.at(key).neededText()
        if (wanted.has(name)) found.set(name, row)
      }
    }
    const left = names.filter((name) => !found.has(name))
    const alone = await Promise.all(left.map((name) => this.rows(tree, type, name)))
    for (const [i, [row]] of alone.entries()) {
      const name = left[i]
      if (row === undefined || name === undefined) continue
      assertNamed(row, key, name)
      found.set(name, row)
    }
    return found
  }

  /**
   * Bindings by the name of what they are bound to, which stands under `key`.
   *
   * @param whole - whether nothing that is looked for is missing: else its own answer is asked for
   */
  async bindings(
    type: string,
    key: string,
    names: readonly string[],
    whole: (name: string, rows: readonly Row[]) => boolean = (_, rows) => rows.length > 0,
  ): Promise<ReadonlyMap<string, readonly Row[]>> {
    const bulk = this.#pays('config', type, names.length) ? await this.#bulk(type, key) : undefined
    const found = new Map<string, readonly Row[]>()
    await Promise.all(
      names.map(async (name) => {
        const listed = bulk?.get(name)
        const rows = listed !== undefined && whole(name, listed) ? listed : undefined
        found.set(name, rows ?? (await this.rows('config', type, name)))
      }),
    )
    if (bulk !== undefined && names.every((name) => !bulk.has(name))) this.#can.bulk = false
    return found
  }

  async #bulk(type: string, key: string): Promise<ReadonlyMap<string, readonly Row[]> | undefined> {
    if (!this.#can.bulk) return undefined
    try {
      const read = async (): Promise<ReadonlyMap<string, readonly Row[]>> => {
        const rows = await this.rows('config', type, undefined, 'bulkbindings=yes')
        return Map.groupBy(rows, (row) => row.at(key).neededText())
      }
      return await this.#can.cost(this.#session, 'config', type).of(read, ({ size }) => size)
    } catch (error) {
      // One that takes too long over all of them is asked for each.
      if (isDrainableError(error, 'REJECTED')) this.#can.bulk = false
      else tooDear(error)
      return undefined
    }
  }

  /** The members' rows of `stat` by group, as far as the nested form has them. */
  async groupStats(names: readonly string[]): Promise<ReadonlyMap<string, readonly Row[]>> {
    const pays = this.#can.nested && this.#pays('stat', 'servicegroup', names.length)
    const nested = pays ? await this.#nested() : undefined
    if (nested !== undefined && names.every((name) => !nested.has(name))) this.#can.nested = false
    const found = new Map<string, readonly Row[]>()
    await Promise.all(
      names.map(async (name) => {
        found.set(name, nested?.get(name) ?? (await this.#groupStat(name)))
      }),
    )
    return found
  }

  async #nested(): Promise<ReadonlyMap<string, readonly Row[]> | undefined> {
    try {
      const rows = await this.all('stat', 'servicegroup', 'statbindings=yes')
      const pairs = rows.map((row) => [row, rowsOf({ body: row }, 'servicegroupmember')] as const)
      return new Map(
        pairs.flatMap(([row, members]) =>
          members.length === 0 ? [] : [[row.at('servicegroupname').neededText(), members]],
        ),
      )
    } catch (error) {
      if (!isDrainableError(error, 'REJECTED')) tooDear(error)
      return undefined
    }
  }

  async #groupStat(name: string): Promise<readonly Row[]> {
    try {
      const rows = await this.rows('stat', 'servicegroup', name, 'statbindings=yes')
      return rows.flatMap((row) => rowsOf({ body: row }, 'servicegroupmember'))
    } catch (error) {
      // A build that does not know the nested form is asked for each member.
      if (isDrainableError(error, 'REJECTED')) return []
      throw error
    }
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
    try {
      return (await this.rows('stat', 'servicegroupmember', undefined, args))[0]
    } catch (error) {
      if (isDrainableError(error, 'REJECTED', 'FORBIDDEN')) return undefined
      throw error
    }
  }

  /** Names of those server objects that are disabled. */
  async disabledServers(names: readonly string[]): Promise<ReadonlySet<string>> {
    const unique = [...new Set(names)]
    if (unique.length === 0) return new Set()
    try {
      const rows = this.#pays('config', 'server', unique.length)
        ? await this.all('config', 'server')
        : (await Promise.all(unique.map((name) => this.rows('config', 'server', name)))).flat()
      const disabled = rows.filter((row) => row.at('state').text()?.toUpperCase() === 'DISABLED')
      return new Set(disabled.map((row) => row.at('name').neededText()))
    } catch (error) {
      // Not every user may look at servers; the member's own state says that it is out all the same.
      if (isDrainableError(error, 'FORBIDDEN', 'REJECTED')) return new Set()
      throw error
    }
  }

  /** The virtual servers that each group is bound to; undefined where this user may not know. */
  async boundGroups(): Promise<ReadonlyMap<string, readonly string[]> | undefined> {
    if (!this.#can.bulk) return undefined
    const type = 'lbvserver_servicegroup_binding'
    try {
      const rows = await this.rows('config', type, undefined, 'bulkbindings=yes')
      const groups = Map.groupBy(rows, (row) => row.at('servicegroupname').word() ?? '')
      return new Map(
        [...groups].map(([group, of]) => [group, of.map((row) => row.at('name').neededText())]),
      )
    } catch (error) {
      if (isDrainableError(error, 'REJECTED', 'FORBIDDEN')) return undefined
      throw error
    }
  }
}
