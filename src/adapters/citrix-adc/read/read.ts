import type { CallContext } from '../../../provider/contract.js'
import { isName, type Row, toCount } from '../codec/nitro.js'
import {
  type Counts,
  countsRequests,
  type Entry,
  StatIndex,
  toCounts,
  toMembers,
  toPhase,
  toService,
  toTraits,
  type Traits,
} from '../codec/rows.js'
import type { DrainableError } from '../../../provider/error.js'
import type { NitroSession } from '../session/session.js'
import { type Abilities, Lists } from './lists.js'
import { isShort, wantedOf, type Wishes } from './match.js'
import type { Found, Listed, PoolState, Wanted } from './pool.js'

/** What seldom changes of a pool. A group and a virtual server can have one name. */
export interface Facts {
  readonly group: Traits | undefined
  /** Undefined: not asked for yet. */
  readonly vserver: Vserver | 'none' | undefined
  /** The virtual servers that the group is bound to, where that was looked at. */
  readonly vservers: readonly string[] | undefined
}

interface Vserver {
  readonly whenNone: 'refuse' | 'spill'
}

/** What changes from moment to moment: who is bound, in which state. */
export interface Bound {
  readonly members: readonly Listed[]
  /** Rows of members that can't be read. */
  readonly odd: readonly DrainableError[]
  readonly services: readonly Listed[]
  /** Those of both that are wanted. */
  readonly wanted: ReadonlySet<Entry>
  /** Of the virtual server: those bound, and those of them that serve. */
  readonly total: number
  readonly serving: number
  readonly seenAt: number
}

/** The same before it is known what of it is wanted. */
type Unsorted = Omit<Bound, 'wanted'>

/** What is older the longer it was not asked for. */
export interface Numbers {
  readonly counts: ReadonlyMap<Entry['identity'], Counts>
  /** Server objects that are disabled. */
  readonly disabled: ReadonlySet<string>
  readonly countedAt: number
}

/** Reads pools from one address. What a name is, a service group or a virtual server, is found out by asking. */
export class Reader {
  readonly #lists: Lists
  readonly #ctx: CallContext

  constructor(session: NitroSession, ctx: CallContext, can: Abilities) {
    this.#lists = new Lists(session, ctx, can)
    this.#ctx = ctx
  }

  /** Every group, and every virtual server: names with what seldom changes. */
  async everything(): Promise<Map<string, Facts>> {
    const [groups, vservers, bound] = await Promise.all([
      this.#lists.all('config', 'servicegroup'),
      this.#lists.all('config', 'lbvserver'),
      this.#lists.boundGroups(),
    ])
    const found = new Map<string, Facts>()
    for (const row of groups) {
      const name = row.at('servicegroupname').neededText()
      const at = bound === undefined ? undefined : (bound.get(name) ?? [])
      found.set(name, { group: toTraits(row), vserver: 'none', vservers: at })
    }
    for (const row of vservers) {
      const name = row.at('name').neededText()
      const known = found.get(name) ?? { group: undefined, vservers: undefined }
      found.set(name, { ...known, vserver: toVserver(row) })
    }
    return found
  }

  /**
   * What the names are, and what seldom changes of them. The group is meant first where both exist.
   *
   * @param before - what was known: to which virtual servers a group is bound is not asked again
   */
  async facts(
    wishes: Wishes,
    before: Pick<ReadonlyMap<string, { readonly facts: Facts }>, 'get'>,
  ): Promise<Map<string, Facts>> {
    const names = [...wishes.keys()].filter(isName)
    const groups = await this.#lists.objects('config', 'servicegroup', 'servicegroupname', names)
    return new Map(
      names.map((name): [string, Facts] => {
        const row = groups.get(name)
        const group = row === undefined ? undefined : toTraits(row)
        const vservers = before.get(name)?.facts.vservers
        return [name, { group, vserver: undefined, vservers }]
      }),
    )
  }

  /**
   * Who is bound, in which state. What a group of a name does not answer for is looked for in a virtual
   * server of that name; whether there is one is entered into `facts`.
   *
   * @returns nothing for a name that nothing has
   */
  async bound(wishes: Wishes, facts: Map<string, Facts>): Promise<ReadonlyMap<string, Bound>> {
    const names = [...facts.keys()]
    const members = await this.#members(wishes, facts)
    const open = names.filter((name) => {
      const known = facts.get(name)
      if (known === undefined || known.vserver !== undefined) return false
      const entries = (members.get(name)?.members ?? []).map(({ entry }) => entry)
      return known.group === undefined || isShort(entries, wishOf(wishes, name))
    })
    const found = await this.#lists.objects('config', 'lbvserver', 'name', open)
    for (const name of open) {
      const row = found.get(name)
      const known = facts.get(name)
      const vserver = row === undefined ? 'none' : toVserver(row)
      if (known !== undefined) facts.set(name, { ...known, vserver })
    }
    const vservers = names.filter((name) => typeof facts.get(name)?.vserver === 'object')
    const services = await this.#services(wishes, vservers)
    const both = names.flatMap((name): [string, Bound][] => {
      const [one, other] = [members.get(name), services.get(name)]
      const bound = one && other ? { ...other, members: one.members, odd: one.odd } : (one ?? other)
      if (bound === undefined) return []
      const entries = [...bound.members, ...bound.services].map(({ entry }) => entry)
      return [[name, { ...bound, wanted: wantedOf(entries, wishOf(wishes, name)) }]]
    })
    return new Map(both)
  }

  /** Members of groups. */
  async #members(
    wishes: Wishes,
    facts: ReadonlyMap<string, Facts>,
  ): Promise<ReadonlyMap<string, Unsorted>> {
    const groups = [...facts].flatMap(([name, { group }]) =>
      group === undefined ? [] : [[name, group] as const],
    )
    const seenAt = this.#ctx.clock.now()
    const rows = await this.#lists.bindings(
      'servicegroup_servicegroupmember_binding',
      'servicegroupname',
      groups.map(([name]) => name),
      (name, listed) => !isShort(toMembers(name, listed).entries, wishOf(wishes, name)),
    )
    return new Map(
      groups.map(([name, traits]) => {
        const { entries, odd } = toMembers(name, rows.get(name) ?? [])
        const members = entries.map((entry) => ({ entry, traits }))
        return [name, { members, odd, services: [], total: 0, serving: 0, seenAt }]
      }),
    )
  }

  /** Services of these virtual servers. */
  async #services(
    wishes: Wishes,
    vservers: readonly string[],
  ): Promise<ReadonlyMap<string, Unsorted>> {
    if (vservers.length === 0) return new Map()
    const type = 'lbvserver_service_binding'
    const seenAt = this.#ctx.clock.now()
    const bindings = await this.#lists.bindings(type, 'name', vservers, (name, rows) => {
      const wanted = wishOf(wishes, name)
      const listed = new Set(rows.map((row) => row.at('servicename').word()))
      return wanted === 'all' ? rows.length > 0 : wanted.every((one) => listed.has(one))
    })
    const wanted = new Map(
      vservers.map((name) => {
        const bound = (bindings.get(name) ?? []).map(
          (row) => [row.at('servicename').neededText(), row] as const,
        )
        const asked = wishOf(wishes, name)
        return [name, bound.filter(([one]) => asked === 'all' || asked.includes(one))]
      }),
    )
    const names = new Set([...wanted.values()].flat().map(([service]) => service))
    const rows = await this.#lists.objects('config', 'service', 'name', [...names])
    return new Map(
      vservers.map((name) => {
        const all = bindings.get(name) ?? []
        const services = (wanted.get(name) ?? []).flatMap(([service, binding]) =>
          toBoundService(rows.get(service), binding),
        )
        const serving = all.filter((row) => serves(row.at('curstate').word() ?? '')).length
        return [name, { members: [], odd: [], services, total: all.length, serving, seenAt }]
      }),
    )
  }

  /** Counts of what is wanted, and server objects that are disabled. */
  async numbers(bound: ReadonlyMap<string, Bound>, counts: boolean): Promise<Numbers> {
    const countedAt = this.#ctx.clock.now()
    const wanted = [...bound.values()].flatMap((of) => [...of.wanted])
    const out = wanted.filter(({ phase }) => phase !== 'in').map(({ server }) => server)
    const [members, services, disabled] = await Promise.all([
      counts ? this.#memberCounts(bound) : [],
      counts ? this.#serviceCounts(bound) : [],
      this.#lists.disabledServers(out),
    ])
    return { counts: new Map([...members, ...services]), disabled, countedAt }
  }

  async #memberCounts(
    bound: ReadonlyMap<string, Bound>,
  ): Promise<readonly (readonly [string, Counts])[]> {
    const groups = [...bound].filter(([, { members }]) => members.length > 0)
    const stats = await this.#lists.groupStats(groups.map(([name]) => name))
    const found: (readonly [string, Counts])[] = []
    for (const [name, { members, wanted }] of groups) {
      const index = new StatIndex(stats.get(name) ?? [])
      for (const { entry, traits } of members) {
        const nested = index.of(entry)
        const { servicetype } = traits
        const stat = wanted.has(entry)
          ? await this.#wholeStat(name, entry, nested, servicetype)
          : nested
        const counts = stat === undefined ? undefined : toCounts(stat, servicetype)
        if (counts !== undefined) found.push([countKey(name, entry), counts])
      }
    }
    return found
  }

  /** A member's single form, where the nested one leaves it out, or its requests, which matter once it goes out. */
  async #wholeStat(
    group: string,
    entry: Entry,
    nested: Row | undefined,
    type: string,
  ): Promise<Row | undefined> {
    if (nested === undefined) return this.#lists.memberStat(group, entry)
    const lacks = countsRequests(type) && !nested.at('totalrequests').present
    if (!lacks || entry.phase === 'in') return nested
    return (await this.#lists.memberTotals(group, entry)) ?? nested
  }

  async #serviceCounts(
    bound: ReadonlyMap<string, Bound>,
  ): Promise<readonly (readonly [string, Counts])[]> {
    const services = [...bound].flatMap(([name, of]) =>
      of.services.map((service) => ({ name, ...service })),
    )
    const names = new Set(services.map(({ entry }) => entry.member))
    const stats = await this.#lists.objects('stat', 'service', 'name', [...names])
    return services.flatMap(({ name, entry, traits }) => {
      const stat = stats.get(entry.member)
      const counts = stat === undefined ? undefined : toCounts(stat, traits.servicetype)
      return counts === undefined ? [] : [[countKey(name, entry), counts] as const]
    })
  }
}

/** All that was read of one name, put together. */
export function toPool(
  name: string,
  { group, vserver, vservers }: Facts,
  bound: Bound,
  { counts, disabled, countedAt }: Numbers,
): PoolState {
  const found = ({ entry, traits }: Listed, at: Found['vservers']): Found => ({
    entry,
    traits,
    counts: counts.get(countKey(name, entry)),
    serverDisabled: disabled.has(entry.server),
    vservers: at,
    countedAt,
    seenAt: bound.seenAt,
  })
  const members = bound.members.map((one) => found(one, vservers))
  const services = bound.services.map((one) => found(one, [name]))
  const serving = bound.members.filter(({ entry }) => isServing(entry)).length
  const ofGroup = { serving, total: bound.members.length, whenNone: 'unknown' } as const
  const whenNone = typeof vserver === 'object' ? vserver.whenNone : 'unknown'
  const ofVserver = { serving: bound.serving, total: bound.total, whenNone } as const
  // Of a group and a virtual server of one name the one with less left to serve is told.
  const group1st = group !== undefined && (services.length === 0 || serving <= bound.serving)
  const { odd } = bound
  return { name, entries: [...members, ...services], odd, ...(group1st ? ofGroup : ofVserver) }
}

/** A group's name and a virtual server's can be one, a member's and a service's too. */
function countKey(pool: string, { subject, member }: Entry): string {
  return `${subject.kind}\0${pool}\0${member}`
}

function wishOf(wishes: Wishes, name: string): Wanted {
  return wishes.get(name) ?? []
}

function toVserver(row: Row): Vserver {
  const backup = row.at('backupvserver').text() ?? ''
  return { whenNone: backup === '' ? 'refuse' : 'spill' }
}

function toBoundService(row: Row | undefined, binding: Row): readonly Listed[] {
  if (row === undefined) return []
  const entry = toService(row)
  const weight = toCount(binding.at('weight'))
  const traits = { ...toTraits(row), disabled: false, autoscale: 'DISABLED' }
  return [{ entry: weight === undefined ? entry : { ...entry, weight }, traits }]
}

function isServing({ phase, health }: Entry): boolean {
  return phase === 'in' && health === 'up'
}

function serves(curstate: string): boolean {
  const [phase, health] = toPhase(curstate)
  return phase === 'in' && health === 'up'
}
