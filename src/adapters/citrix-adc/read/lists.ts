import { ListCost, tooDear } from '../../../kit/look-cost.js'
import type { CallContext } from '../../../provider/contract.js'
import { isDrainableError } from '../../../provider/error.js'
import { argsOf, pathOf, type Row, rowsOf } from '../codec/nitro.js'
import { assertNamed, type Entry } from '../codec/rows.js'
import type { NitroSession } from '../session/session.js'

/** A type of objects, and how they are asked for: by name, or all in one list. */
interface Type {
  readonly tree: 'config' | 'stat'
  readonly type: string
  /** Under which key a row has the name. */
  readonly key: string
  /** What makes a list of it: rows that belong to several names, or that stand below others. Not every build has it. */
  readonly list?: string
  /** Where the rows of one name stand below it, the key; then `list` is asked for one as well. */
  readonly below?: string
}

const BULK = 'bulkbindings=yes' // since 11.1

/** Everything that is read by name. */
export const TYPES = {
  groups: { tree: 'config', type: 'servicegroup', key: 'servicegroupname' },
  vservers: { tree: 'config', type: 'lbvserver', key: 'name' },
  services: { tree: 'config', type: 'service', key: 'name' },
  servers: { tree: 'config', type: 'server', key: 'name' },
  serviceStats: { tree: 'stat', type: 'service', key: 'name' },
  members: {
    tree: 'config',
    type: 'servicegroup_servicegroupmember_binding',
    key: 'servicegroupname',
    list: BULK,
  },
  bound: { tree: 'config', type: 'lbvserver_service_binding', key: 'name', list: BULK },
  fronts: {
    tree: 'config',
    type: 'lbvserver_servicegroup_binding',
    key: 'servicegroupname',
    list: BULK,
  },
  // Members below each group in the list of all: not documented.
  memberStats: {
    tree: 'stat',
    type: 'servicegroup',
    key: 'servicegroupname',
    list: 'statbindings=yes',
    below: 'servicegroupmember',
  },
} as const satisfies Readonly<Record<string, Type>>

/** Rows by the names that were asked for. */
export type Rows = ReadonlyMap<string, readonly Row[]>

/**
 * Asks one address for objects of one type: one by one, or by the whole list where that costs less. That
 * something is not there is believed only from its own answer, never from a list that leaves it out.
 */
export class Lists {
  readonly #session: NitroSession
  readonly #costs = new Map<Type, ListCost>()
  /** Lists that this build does not have, or that have nothing in them. */
  readonly #useless = new Set<Type>()

  constructor(session: NitroSession) {
    this.#session = session
  }

  /** All of a type, in one list. */
  all(type: Type, ctx: CallContext): Promise<Rows> {
    const { key, list = '', below } = type
    const read = async (): Promise<Rows> => {
      const byName = Map.groupBy(await this.#get(type, undefined, list, ctx), (row) =>
        row.at(key).neededText(),
      )
      return below === undefined
        ? byName
        : new Map([...byName].map(([name, rows]) => [name, rowsBelow(rows, below)]))
    }
    return this.#cost(type).of(read, ({ size }) => size)
  }

  /**
   * Those of these names.
   *
   * @param isWhole - whether nothing that is looked for is missing in a list: else its own answer is asked for
   */
  async of(
    type: Type,
    names: readonly string[],
    ctx: CallContext,
    isWhole: (name: string, rows: readonly Row[]) => boolean = (_, rows) => rows.length > 0,
  ): Promise<Rows> {
    const listed = await this.#listed(type, names, ctx)
    const found = names.map(async (name) => {
      const rows = listed?.get(name)
      const has = rows !== undefined && isWhole(name, rows)
      return [name, has ? rows : await this.#one(type, name, ctx)] as const
    })
    return new Map(await Promise.all(found))
  }

  /** The list, where it is the cheaper way and can be had: one that takes too long is asked for each. */
  async #listed(type: Type, names: readonly string[], ctx: CallContext): Promise<Rows | undefined> {
    if (this.#useless.has(type) || !this.#cost(type).pays(names.length)) return undefined
    try {
      const listed = await this.all(type, ctx)
      const isEmpty = names.every((name) => (listed.get(name) ?? []).length === 0)
      if (isEmpty && type.list !== undefined) this.#useless.add(type)
      return listed
    } catch (error) {
      if (!isDrainableError(error, 'REJECTED')) {
        tooDear(error)
        return
      }
      this.#useless.add(type)
      return undefined
    }
  }

  async #one(type: Type, name: string, ctx: CallContext): Promise<readonly Row[]> {
    const { key, list, below } = type
    if (below === undefined) {
      const rows = await this.#get(type, name, '', ctx)
      if (list === undefined) for (const row of rows) assertNamed(row, key, name)
      return rows
    }
    // A build that does not know this form is asked for each member.
    const rows = await known(this.#get(type, name, list ?? '', ctx), 'REJECTED')
    return rowsBelow(rows ?? [], below)
  }

  /** A member's single form of `stat`. */
  async memberStat(
    group: string,
    { server, address, subject, port }: Entry,
    ctx: CallContext,
  ): Promise<Row | undefined> {
    const isShared = subject.kind === 'member' && subject.address !== undefined
    const args = argsOf('args', {
      servicegroupname: group,
      ...(isShared && address !== undefined ? { ip: address } : { servername: server }),
      port: String(port),
    })
    const type = { tree: 'stat', type: 'servicegroupmember', key: '' } as const
    const rows = await known(this.#get(type, undefined, args, ctx), 'REJECTED', 'FORBIDDEN')
    return rows?.[0]
  }

  #cost(type: Type): ListCost {
    const cost = this.#costs.get(type) ?? new ListCost(this.#session.spending)
    this.#costs.set(type, cost)
    return cost
  }

  async #get(
    { tree, type }: Type,
    name: string | undefined,
    query: string,
    ctx: CallContext,
  ): Promise<readonly Row[]> {
    return rowsOf(await this.#session.get(pathOf(tree, type, name, query), ctx), type)
  }
}

/** An answer that this build may not know, or this user not be allowed: undefined then. */
export async function known<T>(
  answer: Promise<T>,
  ...without: readonly ('REJECTED' | 'FORBIDDEN')[]
): Promise<T | undefined> {
  try {
    return await answer
  } catch (error) {
    if (isDrainableError(error, ...without)) return undefined
    throw error
  }
}

function rowsBelow(rows: readonly Row[], key: string): readonly Row[] {
  return rows.flatMap((row) => rowsOf({ body: row }, key))
}
