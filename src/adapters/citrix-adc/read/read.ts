import type { CallContext } from '../../../provider/contract.js'
import type { DrainableError } from '../../../provider/error.js'
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
import type { NitroSession } from '../session/session.js'
import { known, Lists, TYPES } from './lists.js'
import type { Wanted } from './match.js'
import { keyOf } from './memory.js'

/** What is asked for, by the names of pools. */
export type Wishes = ReadonlyMap<string, Wanted>

/** A service group, or the services of a virtual server. */
interface Pool<T> {
  readonly entries: readonly T[]
  /** Rows of members that can't be read: who serves is not known then. */
  readonly odd: readonly DrainableError[]
  readonly serving: number
  readonly total: number
  readonly whenNone: 'refuse' | 'spill' | 'unknown'
}

/** A pool as found. */
export interface PoolState extends Pool<Found> {
  readonly name: string
}

/** What changes from moment to moment: who is bound, in which state. */
export type Bound = Pool<Item>

/** One member of a pool, and its state. Traits of a service are its own, those of a member are its group's. */
interface Item {
  readonly entry: Entry
  readonly traits: Traits
  /** The virtual servers that it is bound to, where that was looked at. */
  readonly vservers?: readonly string[] | undefined
  /** When its state was asked for, by the call's clock. */
  readonly seenAt: number
}

/** One member, with its numbers. */
export interface Found extends Item {
  readonly counts: Counts | undefined
  /** Its server object is disabled. */
  readonly serverDisabled: boolean
  /** When the counts were asked for. */
  readonly countedAt: number
}

/** What seldom changes of a pool. A group and a virtual server can have one name. */
export interface Facts {
  readonly group: Traits | undefined
  /** Undefined: not asked for yet. */
  readonly vserver: Vserver | 'none' | undefined
}

interface Vserver {
  readonly whenNone: 'refuse' | 'spill'
}

/** What is older the longer it was not asked for. */
export interface Numbers {
  /** By their subjects. */
  readonly counts: ReadonlyMap<string, Counts>
  /** Server objects that are disabled. */
  readonly disabled: ReadonlySet<string>
  readonly countedAt: number
}

/** Reads pools from one address. What a name is, a service group or a virtual server, is found out by asking. */
export class Reader {
  readonly #lists: Lists
  /** The virtual servers that groups are bound to, as the last look at everything showed them. */
  #fronts: ReadonlyMap<string, readonly string[]> = new Map()
  /** Whether a member's single form has `totalrequests` where the nested form lacks it. */
  #hasTotals = true

  constructor(session: NitroSession) {
    this.#lists = new Lists(session)
  }

  /** Every group, and every virtual server: names with what seldom changes. */
  async everything(ctx: CallContext): Promise<Map<string, Facts>> {
    const [groups, vservers, fronts] = await Promise.all([
      this.#lists.all(TYPES.groups, ctx),
      this.#lists.all(TYPES.vservers, ctx),
      known(this.#lists.all(TYPES.fronts, ctx), 'REJECTED', 'FORBIDDEN'),
    ])
    const names = [...groups.keys()].map((name) => [name, fronts?.get(name) ?? []] as const)
    const nameOf = (row: Row): string => row.at('name').neededText()
    this.#fronts = new Map(
      fronts === undefined ? [] : names.map(([name, rows]) => [name, rows.map(nameOf)]),
    )
    return new Map(
      [...new Set([...groups.keys(), ...vservers.keys()])].map((name) => [
        name,
        { group: toGroup(groups.get(name)), vserver: toVserver(vservers.get(name)) },
      ]),
    )
  }

  /** What the names are, and what seldom changes of them. The group is meant first where both exist. */
  async facts(wishes: Wishes, ctx: CallContext): Promise<Map<string, Facts>> {
    const names = [...wishes.keys()].filter(isName)
    const groups = await this.#lists.of(TYPES.groups, names, ctx)
    return new Map(
      names.map((name) => [name, { group: toGroup(groups.get(name)), vserver: undefined }]),
    )
  }

  /**
   * Who is bound, in which state. What a group of a name does not answer for is looked for in a virtual
   * server of that name; whether there is one is entered into `facts`.
   *
   * @returns nothing for a name that nothing has
   */
  async bound(
    wishes: Wishes,
    facts: Map<string, Facts>,
    ctx: CallContext,
  ): Promise<ReadonlyMap<string, Bound>> {
    const members = await this.#members(wishes, facts, ctx)
    const open = [...facts].flatMap(([name, { vserver }]) => {
      const entries = (members.get(name)?.entries ?? []).map(({ entry }) => entry)
      const isShort = wishes.get(name)?.isMissing(entries) !== false
      return vserver === undefined && (!members.has(name) || isShort) ? [name] : []
    })
    for (const [name, rows] of await this.#lists.of(TYPES.vservers, open, ctx)) {
      facts.set(name, { group: facts.get(name)?.group, vserver: toVserver(rows) })
    }
    const services = await this.#services(wishes, facts, ctx)
    return new Map(
      [...facts.keys()].flatMap((name): [string, Bound][] => {
        const [group, vserver] = [members.get(name), services.get(name)]
        const only = group ?? vserver
        if (only === undefined) return []
        if (group === undefined || vserver === undefined) return [[name, only]]
        // Of a group and a virtual server of one name the one with less left to serve is told.
        const isGroup = vserver.entries.length === 0 || group.serving <= vserver.serving
        const entries = [...group.entries, ...vserver.entries]
        return [[name, { ...(isGroup ? group : vserver), entries, odd: group.odd }]]
      }),
    )
  }

  async #members(
    wishes: Wishes,
    facts: ReadonlyMap<string, Facts>,
    ctx: CallContext,
  ): Promise<ReadonlyMap<string, Bound>> {
    const groups = new Map(
      [...facts].flatMap(([name, { group }]) => (group === undefined ? [] : [[name, group]])),
    )
    const seenAt = ctx.clock.now()
    const rows = await this.#lists.of(TYPES.members, [...groups.keys()], ctx, (name, listed) => {
      return wishes.get(name)?.isMissing(toMembers(name, listed).entries) === false
    })
    return new Map(
      [...groups].map(([name, traits]) => {
        const { entries: members, odd } = toMembers(name, rows.get(name) ?? [])
        const vservers = this.#fronts.get(name)
        const entries = members.map((entry) => ({ entry, traits, vservers, seenAt }))
        const serving = members.filter(
          ({ phase, health }) => phase === 'in' && health === 'up',
        ).length
        return [name, { entries, odd, serving, total: members.length, whenNone: 'unknown' }]
      }),
    )
  }

  async #services(
    wishes: Wishes,
    facts: ReadonlyMap<string, Facts>,
    ctx: CallContext,
  ): Promise<ReadonlyMap<string, Bound>> {
    const vservers = new Map(
      [...facts].flatMap(([name, { vserver }]) =>
        typeof vserver === 'object' ? [[name, vserver]] : [],
      ),
    )
    const seenAt = ctx.clock.now()
    const bindings = await this.#lists.of(TYPES.bound, [...vservers.keys()], ctx, (name, rows) => {
      const wanted = wishes.get(name)?.names ?? []
      const listed = new Set(rows.map((row) => row.at('servicename').word()))
      return wanted === 'all' ? rows.length > 0 : wanted.every((one) => listed.has(one))
    })
    const wanted = [...bindings].map(([name, rows]) => {
      const asked = wishes.get(name)?.names ?? []
      const named = rows.map((row) => [row.at('servicename').neededText(), row] as const)
      return [name, named.filter(([one]) => asked === 'all' || asked.includes(one))] as const
    })
    const names = new Set(wanted.flatMap(([, of]) => of.map(([one]) => one)))
    const services = await this.#lists.of(TYPES.services, [...names], ctx)
    return new Map(
      wanted.map(([name, of]) => {
        const all = bindings.get(name) ?? []
        const serving = all.filter((row) => serves(row.at('curstate').word() ?? '')).length
        const entries = of.flatMap(([one, binding]) =>
          (services.get(one) ?? [])
            .slice(0, 1)
            .map((row) => ({ ...toBoundService(row, binding), vservers: [name], seenAt })),
        )
        const { whenNone = 'refuse' } = vservers.get(name) ?? {}
        return [name, { entries, odd: [], serving, total: all.length, whenNone }]
      }),
    )
  }

  /** Counts of what is wanted, and server objects that are disabled. */
  async numbers(
    wishes: Wishes,
    bound: ReadonlyMap<string, Bound>,
    counts: boolean,
    ctx: CallContext,
  ): Promise<Numbers> {
    const countedAt = ctx.clock.now()
    const out = [...bound].flatMap(([name, { entries }]) =>
      entries.filter(({ entry }) => entry.phase !== 'in' && wishes.get(name)?.has(entry) === true),
    )
    const servers = [...new Set(out.map(({ entry }) => entry.server))]
    const [members, services, disabled] = await Promise.all([
      counts ? this.#memberCounts(wishes, bound, ctx) : [],
      counts ? this.#serviceCounts(bound, ctx) : [],
      // Not every user may look at servers; the member's own state says that it is out all the same.
      known(this.#lists.of(TYPES.servers, servers, ctx), 'REJECTED', 'FORBIDDEN'),
    ])
    const isDisabled = (name: string): boolean =>
      disabled?.get(name)?.[0]?.at('state').text()?.toUpperCase() === 'DISABLED'
    return {
      counts: new Map([...members, ...services]),
      disabled: new Set(servers.filter(isDisabled)),
      countedAt,
    }
  }

  async #memberCounts(
    wishes: Wishes,
    bound: ReadonlyMap<string, Bound>,
    ctx: CallContext,
  ): Promise<readonly (readonly [string, Counts])[]> {
    const groups = [...bound].flatMap(([name, { entries }]) => {
      const members = entries.filter(({ entry }) => entry.subject.kind === 'member')
      return members.length === 0 ? [] : [[name, members] as const]
    })
    const stats = await this.#lists.of(
      TYPES.memberStats,
      groups.map(([name]) => name),
      ctx,
    )
    const found: (readonly [string, Counts])[] = []
    for (const [name, members] of groups) {
      const index = new StatIndex(stats.get(name) ?? [])
      for (const {
        entry,
        traits: { servicetype },
      } of members) {
        const nested = index.of(entry)
        const isWanted = wishes.get(name)?.has(entry) === true
        const stat = isWanted
          ? await this.#wholeStat(name, entry, nested, servicetype, ctx)
          : nested
        const counts = stat === undefined ? undefined : toCounts(stat, servicetype)
        if (counts !== undefined) found.push([keyOf(entry.subject), counts])
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
    ctx: CallContext,
  ): Promise<Row | undefined> {
    if (nested === undefined) return this.#lists.memberStat(group, entry, ctx)
    const lacks = countsRequests(type) && !nested.at('totalrequests').present
    if (!lacks || entry.phase === 'in' || !this.#hasTotals) return nested
    const row = await this.#lists.memberStat(group, entry, ctx)
    if (row?.at('totalrequests').present === true) return row
    if (row !== undefined) this.#hasTotals = false
    return nested
  }

  async #serviceCounts(
    bound: ReadonlyMap<string, Bound>,
    ctx: CallContext,
  ): Promise<readonly (readonly [string, Counts])[]> {
    const all = [...bound.values()].flatMap(({ entries }) => entries)
    const services = all.filter(({ entry }) => entry.subject.kind === 'service')
    const byName = new Map(services.map((service) => [service.entry.member, service]))
    const stats = await this.#lists.of(TYPES.serviceStats, [...byName.keys()], ctx)
    return [...byName].flatMap(([name, { entry, traits }]) => {
      const [stat] = stats.get(name) ?? []
      const counts = stat === undefined ? undefined : toCounts(stat, traits.servicetype)
      return counts === undefined ? [] : [[keyOf(entry.subject), counts] as const]
    })
  }
}

/** All that was read of each name, put together. */
export function toPools(
  bound: ReadonlyMap<string, Bound>,
  { counts, disabled, countedAt }: Numbers,
): readonly PoolState[] {
  return [...bound].map(([name, pool]) => ({
    ...pool,
    name,
    entries: pool.entries.map((item) => ({
      ...item,
      counts: counts.get(keyOf(item.entry.subject)),
      serverDisabled: disabled.has(item.entry.server),
      countedAt,
    })),
  }))
}

function toGroup(rows: readonly Row[] = []): Traits | undefined {
  return rows[0] === undefined ? undefined : toTraits(rows[0])
}

function toVserver([row]: readonly Row[] = []): Vserver | 'none' {
  if (row === undefined) return 'none'
  return { whenNone: (row.at('backupvserver').text() ?? '') === '' ? 'refuse' : 'spill' }
}

function toBoundService(row: Row, binding: Row): Pick<Item, 'entry' | 'traits'> {
  const entry = toService(row)
  const weight = toCount(binding.at('weight')) ?? entry.weight
  const traits = { ...toTraits(row), disabled: false, autoscale: 'DISABLED' }
  return { entry: { ...entry, weight }, traits }
}

function serves(curstate: string): boolean {
  const [phase, health] = toPhase(curstate)
  return phase === 'in' && health === 'up'
}
