import type { CallContext } from '../../../provider/contract.js'
import { isDrainableError } from '../../../provider/error.js'
import { argsOf, isName, pathOf, type Row, rowsOf, toCount } from '../codec/nitro.js'
import {
  type Counts,
  type Entry,
  StatIndex,
  toCounts,
  toMembers,
  toPhase,
  toService,
  toTraits,
  type Traits,
} from '../codec/rows.js'
import type { NitroSession } from '../session/session.js'

/** Up to so many objects are asked for one by one; beyond that the whole list costs less. */
const ONE_BY_ONE = 4

/** A service group, or the services of a virtual server, as found. */
export interface PoolState {
  readonly name: string
  readonly kind: 'group' | 'vserver'
  readonly entries: readonly Found[]
  readonly serving: number
  readonly total: number
  readonly whenNone: 'refuse' | 'spill' | 'unknown'
  /** When the counts were asked for, by the call's clock. */
  readonly sampledAt: number
}

/** One member of it. Traits of a service are its own, those of a member are its group's. */
export interface Found {
  readonly entry: Entry
  readonly traits: Traits
  readonly counts: Counts | undefined
}

/** What is wanted of a pool. */
export interface Wanted {
  /** Members that will be looked at: what costs a request each is asked for these alone. */
  readonly members: (entry: Entry) => boolean
  /** Whether something is wanted that is not among these. */
  readonly missing: (found: readonly Found[]) => boolean
  /** Names of services that are wanted, `all` for each of them. */
  readonly services: readonly string[] | 'all'
  readonly counts: boolean
}

/** A group and a virtual server of one name: of the two, the one with less left to serve is told. */
function together(group: PoolState, services: PoolState): PoolState {
  const { serving, total, whenNone } = group.serving <= services.serving ? group : services
  const entries = [...group.entries, ...services.entries]
  const sampledAt = Math.min(group.sampledAt, services.sampledAt)
  return { ...group, entries, serving, total, whenNone, sampledAt }
}

/**
 * Reads pools from one address. What a name is, a service group or a virtual server, is found out by
 * asking; the group comes first where both exist.
 */
export class Reader {
  readonly #session: NitroSession
  readonly #ctx: CallContext

  constructor(session: NitroSession, ctx: CallContext) {
    this.#session = session
    this.#ctx = ctx
  }

  /** Undefined where the appliance says that there is neither a group nor a virtual server of that name. */
  async pool(name: string, wanted: Wanted): Promise<PoolState | undefined> {
    if (!isName(name)) return undefined
    const group = (await this.#rows('config', 'servicegroup', name))[0]
    if (group !== undefined) {
      const state = await this.#group(name, group, wanted)
      if (!wanted.missing(state.entries)) return state
      const services = await this.#vserver(name, wanted)
      if (services?.entries.some(({ entry }) => wanted.members(entry)) !== true) return state
      return state.entries.some(({ entry }) => wanted.members(entry))
        ? together(state, services)
        : services
    }
    return this.#vserver(name, wanted)
  }

  /** Every group and every virtual server that has services. */
  async everything(): Promise<readonly PoolState[]> {
    const wanted: Wanted = {
      members: () => true,
      missing: () => true,
      services: 'all',
      counts: true,
    }
    const pools: PoolState[] = []
    for (const row of await this.#rows('config', 'servicegroup')) {
      const name = row.at('servicegroupname').neededText()
      pools.push(await this.#group(name, row, wanted))
    }
    for (const row of await this.#rows('config', 'lbvserver')) {
      const name = row.at('name').neededText()
      const pool = await this.#vserver(name, wanted)
      if (pool === undefined || pool.total === 0) continue
      const at = pools.findIndex((group) => group.name === name)
      const group = pools[at]
      if (group === undefined) pools.push(pool)
      else pools[at] = together(group, pool)
    }
    return pools
  }

  /** Names of those server objects that are disabled. */
  async disabledServers(names: readonly string[]): Promise<ReadonlySet<string>> {
    const unique = [...new Set(names)]
    if (unique.length === 0) return new Set()
    try {
      const lists =
        unique.length > ONE_BY_ONE
          ? [await this.#rows('config', 'server')]
          : await Promise.all(unique.map((name) => this.#rows('config', 'server', name)))
      const disabled = lists
        .flat()
        .filter((row) => row.at('state').text()?.toUpperCase() === 'DISABLED')
      return new Set(disabled.map((row) => row.at('name').neededText()))
    } catch (error) {
      // Not every user may look at servers; the member's own state says that it is out all the same.
      if (isDrainableError(error, 'FORBIDDEN', 'REJECTED')) return new Set()
      throw error
    }
  }

  async #group(name: string, row: Row, wanted: Wanted): Promise<PoolState> {
    const traits = toTraits(row)
    const sampledAt = this.#ctx.clock.now()
    const [bindings, stats] = await Promise.all([
      this.#rows('config', 'servicegroup_servicegroupmember_binding', name),
      wanted.counts ? this.#groupStats(name) : [],
    ])
    const entries = toMembers(name, bindings)
    const index = new StatIndex(stats)
    const found: Found[] = []
    for (const entry of entries) {
      let stat = index.of(entry)
      if (stat === undefined && wanted.counts && wanted.members(entry)) {
        stat = await this.#memberStat(name, entry)
      }
      const counts = stat === undefined ? undefined : toCounts(stat, traits.servicetype)
      found.push({ entry, traits, counts })
    }
    const serving = entries.filter(({ phase, health }) => phase === 'in' && health === 'up').length
    const kind = 'group'
    return {
      name,
      kind,
      entries: found,
      serving,
      total: entries.length,
      whenNone: 'unknown',
      sampledAt,
    }
  }

  async #groupStats(name: string): Promise<readonly Row[]> {
    try {
      const path = pathOf('stat', 'servicegroup', name, 'statbindings=yes')
      const rows = rowsOf(await this.#session.get(path, this.#ctx), 'servicegroup')
      return rows.flatMap((row) => rowsOf({ body: row }, 'servicegroupmember'))
    } catch (error) {
      // A build that does not know the nested form is asked for each member.
      if (isDrainableError(error, 'REJECTED')) return []
      throw error
    }
  }

  /** For builds whose nested form leaves a member out. */
  async #memberStat(group: string, { server, port }: Entry): Promise<Row | undefined> {
    const args = argsOf('args', {
      servicegroupname: group,
      servername: server,
      port: String(port),
    })
    try {
      const path = pathOf('stat', 'servicegroupmember', undefined, args)
      return rowsOf(await this.#session.get(path, this.#ctx), 'servicegroupmember')[0]
    } catch (error) {
      if (isDrainableError(error, 'REJECTED', 'FORBIDDEN')) return undefined
      throw error
    }
  }

  async #vserver(name: string, wanted: Wanted): Promise<PoolState | undefined> {
    const vserver = (await this.#rows('config', 'lbvserver', name))[0]
    if (vserver === undefined) return undefined
    const bindings = await this.#rows('config', 'lbvserver_service_binding', name)
    const bound = new Map(bindings.map((row) => [row.at('servicename').neededText(), row] as const))
    const names = [...bound.keys()].filter(
      (each) => wanted.services === 'all' || wanted.services.includes(each),
    )
    const sampledAt = this.#ctx.clock.now()
    const [services, stats] = await Promise.all([
      this.#objects('config', names),
      wanted.counts ? this.#objects('stat', names) : new Map<string, Row>(),
    ])
    const entries = names.flatMap((each): Found[] => {
      const row = services.get(each)
      const binding = bound.get(each)
      if (row === undefined || binding === undefined) return []
      const entry = toService(row)
      const traits = { ...toTraits(row), disabled: false, autoscale: 'DISABLED' }
      const stat = stats.get(each)
      const counts = stat === undefined ? undefined : toCounts(stat, traits.servicetype)
      const weight = toCount(binding.at('weight'))
      return [{ entry: weight === undefined ? entry : { ...entry, weight }, traits, counts }]
    })
    const serving = [...bound.values()].filter((row) => {
      const [phase, health] = toPhase(row.at('curstate').word() ?? '')
      return phase === 'in' && health === 'up'
    }).length
    const backup = vserver.at('backupvserver').text()
    const whenNone = backup === undefined || backup === '' ? 'refuse' : 'spill'
    return { name, kind: 'vserver', entries, serving, total: bound.size, whenNone, sampledAt }
  }

  /** Services by name: one by one, or out of the whole list. */
  async #objects(
    tree: 'config' | 'stat',
    names: readonly string[],
  ): Promise<ReadonlyMap<string, Row>> {
    const lists =
      names.length > ONE_BY_ONE
        ? [await this.#rows(tree, 'service')]
        : await Promise.all(names.map((name) => this.#rows(tree, 'service', name)))
    return new Map(lists.flat().map((row) => [row.at('name').neededText(), row]))
  }

  async #rows(tree: 'config' | 'stat', type: string, name?: string): Promise<readonly Row[]> {
    return rowsOf(await this.#session.get(pathOf(tree, type, name), this.#ctx), type)
  }
}
