import type { MemberRef } from '../../../provider/contract.js'
import { refKey } from '../../../provider/member-ref.js'
import { isName, showServersState, showStat } from '../codec/commands.js'
import { malformed } from '../codec/replies.js'
import { parseStat, type StatRow } from '../codec/stat.js'
import { addressOf, parseServersState, type ServerState, statusFitsMask } from '../codec/state.js'
import type { Channel } from '../session/channel.js'
import type { Within } from '../session/socket.js'
import {
  type ShownPool,
  type ShownProcess,
  type ShownServer,
  toShown,
  toShownPool,
} from './shown.js'

/** A member's key, also behind a combined provider. */
export function keyOf({ pool, member }: MemberRef): string {
  return refKey({ pool, member })
}

/** The backends to look at, with some or all servers of each. */
export type Wanted = ReadonlyMap<string, ReadonlySet<string> | 'all'>

/** The position of a backend in this process. Ids change on reload, so this is never kept beyond a process. */
interface Layout {
  /** The id; undefined if this process has no such backend. */
  iid: string | undefined
  servers: Map<string, ServerState>
  /** How `show stat` finds it: a name can be that of a frontend, and a number can be another proxy's name. */
  by: 'iid' | 'name' | 'filter'
}

/**
 * A backend with `disabled` in the configuration: `show servers state` lists its servers, and `show stat` has no row of it
 * (2.6, 3.0, 3.2 and 3.4). It serves nobody, and stays so for as long as the process lives.
 */
const DISABLED: Layout = { iid: undefined, servers: new Map(), by: 'filter' }

/** How one look reads a backend: which servers, and by what. */
interface Plan {
  readonly names: string[]
  readonly commands: string[]
  readonly by: Layout['by']
}

/** The rows of one backend by name: its own, and those of the servers that were asked for. */
type Rows = ReadonlyMap<string, StatRow>
/** The name of a backend's own row: none, because a server may be called BACKEND as well. */
const OWN = ''

/** The memory of a server between two looks, to know when its mask must be read again. */
interface Memory {
  status: string
  tracks: boolean
  address: string
  maskAt: number
  arrivals: number
  load: number
  quietSince: number
}

/**
 * Each single row costs the header and a walk of the list: beyond a hundred rows, or an eleventh of the backend (3.3
 * KB against 0.3 KB on 3.x), one dump is cheaper.
 */
const MAX_SINGLE_READS = 100
const DUMP_SHARE = 11
/**
 * Once a server has been at zero for this long, its mask is read again, because the proof can be complete now; in
 * milliseconds.
 */
const PROOF_NEAR = 900
/** How often to look if readings contradict each other. */
const ATTEMPTS = 4

/** The backends and servers of one process: knows their positions, and the cheapest commands to read some of them. */
export class ProcessView {
  readonly #layouts = new Map<string, Layout>()
  readonly #memory = new Map<string, Memory>()
  /** How often servers of each backend were seen to lose their address. */
  readonly #moves = new Map<string, number>()

  /** The servers of a backend as last seen. */
  servers(pool: string): readonly ServerState[] {
    return [...(this.#layouts.get(pool)?.servers.values() ?? [])]
  }

  /** Whether this process has that backend, and its configuration disables it. */
  isDisabled(pool: string): boolean {
    return this.#layouts.get(pool) === DISABLED
  }

  /** How often servers of a backend were seen to lose their address. */
  moves(pool: string): number {
    return this.#moves.get(pool) ?? 0
  }

  /** Forgets the masks after a change. */
  touch(ref: MemberRef): void {
    this.#memory.delete(refKey(ref))
  }

  /** Reads the states of whole backends now. */
  async states(
    pools: Iterable<string>,
    channel: Channel,
    ctx: Within,
  ): Promise<ReadonlyMap<string, ReadonlyMap<string, ServerState>>> {
    const names = [...pools].filter(isName)
    const { replies } = await channel.run(
      names.map((pool) => showServersState(pool)),
      ctx,
    )
    names.forEach((pool, index) => this.#learn(pool, replies[index] ?? ''))
    return new Map(names.map((pool) => [pool, this.#layouts.get(pool)?.servers ?? new Map()]))
  }

  /** Reads some servers of some backends, or every backend. */
  look(wanted: Wanted | 'all', channel: Channel, ctx: Within): Promise<ShownProcess> {
    return wanted === 'all' ? this.#readAll(channel, ctx) : this.read(wanted, channel, ctx)
  }

  async #readAll(channel: Channel, ctx: Within): Promise<ShownProcess> {
    for (let attempt = 1; ; attempt += 1) {
      const sampledAt = ctx.clock.now()
      const { info, replies } = await channel.run([showStat('-1', 'both'), showServersState()], ctx)
      const [stat, state] = replies
      const rows = parseStat(stat ?? '')
      const states = new Map(
        parseServersState(state ?? '').map((server) => [
          refKey({ pool: server.pool, member: server.name }),
          server,
        ]),
      )
      const members = new Map<string, ShownServer>()
      let contradiction = false
      for (const row of rows.filter(({ kind }) => kind === 'server')) {
        const ref = { pool: row.pool, member: row.name }
        const found = states.get(refKey(ref))
        if (found === undefined) continue // deleted between the two commands
        const fits = statusFitsMask(row.status, found.admin)
        contradiction ||= !fits
        members.set(refKey(ref), toShown(ref, row, found, fits))
      }
      if (contradiction && attempt < ATTEMPTS) continue
      const servers = Map.groupBy(states.values(), ({ pool }) => pool)
      const pools = rows.flatMap((row) =>
        row.kind === 'backend'
          ? [[row.pool, toShownPool(row, servers.get(row.pool)?.length ?? 0)] as const]
          : [],
      )
      return { sampledAt, info, members, pools: new Map(pools) }
    }
  }

  /** Reads some servers of some backends, with as few and as short commands as possible. */
  async read(wanted: Wanted, channel: Channel, ctx: Within): Promise<ShownProcess> {
    const pools = [...wanted.keys()].filter(isName)
    const blank = pools.filter((pool) => !this.#layouts.has(pool))
    if (blank.length > 0) await this.states(blank, channel, ctx)
    const fresh = new Set(blank)
    for (let attempt = 1; ; attempt += 1) {
      const shown = await this.#look(wanted, pools, fresh, attempt, channel, ctx)
      if (shown !== undefined) return shown
      if (attempt >= ATTEMPTS) {
        throw malformed(`rows of ${pools.join(', ')} that stay in their places`, '')
      }
    }
  }

  async #look(
    wanted: Wanted,
    pools: readonly string[],
    fresh: Set<string>,
    attempt: number,
    channel: Channel,
    ctx: Within,
  ): Promise<ShownProcess | undefined> {
    const sampledAt = ctx.clock.now()
    const plans = pools.map((pool) => this.#plan(pool, wanted.get(pool) ?? 'all'))
    const masks = pools.filter((pool, index) => {
      const names = plans[index]?.names ?? []
      return names.some((name) => this.#wantsMask(pool, name, sampledAt, fresh.has(pool)))
    })
    const stat = plans.flatMap((plan) => plan.commands)
    const { info, replies } = await channel.run(
      [...stat, ...masks.map((pool) => showServersState(pool))],
      ctx,
    )
    masks.forEach((pool, index) => this.#learn(pool, replies[stat.length + index] ?? ''))
    const masked = new Set([...masks, ...fresh])
    const rows = new Map<string, Rows>()
    let at = 0
    for (const [index, pool] of pools.entries()) {
      const { names = [], commands = [] } = plans[index] ?? {}
      const only = { pool, names: new Set(names) }
      const own = replies
        .slice(at, at + commands.length)
        .flatMap((reply) => parseStat(reply, only))
        .filter((row) => row.pool === pool && row.kind !== 'frontend')
      at += commands.length
      rows.set(pool, new Map(own.map((row) => [row.kind === 'backend' ? OWN : row.name, row])))
    }
    const lost = pools.filter((pool, index) => !this.#found(pool, rows.get(pool), plans[index]))
    if (lost.length > 0) {
      await this.states(lost, channel, ctx)
      lost.forEach((pool) => fresh.add(pool))
      return undefined
    }
    const late = pools.filter(
      (pool, index) =>
        !masked.has(pool) &&
        (plans[index]?.names ?? []).some((name) => this.#surprises(pool, name, rows.get(pool))),
    )
    if (late.length > 0) {
      await this.states(late, channel, ctx)
      late.forEach((pool) => masked.add(pool))
    }
    const seen = this.#judge(pools, plans, rows, masked, attempt, sampledAt, ctx.clock.now())
    return seen && { ...seen, info }
  }

  /** The commands that read the wanted rows of one backend, and the backend's own. */
  #plan(pool: string, want: ReadonlySet<string> | 'all'): Plan {
    const layout = this.#layouts.get(pool)
    if (layout?.iid === undefined)
      return { names: want === 'all' ? [] : [...want], commands: [], by: 'iid' }
    const { by } = layout
    const names = want === 'all' ? [...layout.servers.keys()] : [...want].filter(isName)
    const known = names.filter((name) => layout.servers.has(name))
    const proxy = by === 'filter' ? '-1' : by === 'name' ? pool : layout.iid
    const single =
      by !== 'filter' &&
      known.length <= MAX_SINGLE_READS &&
      known.length * DUMP_SHARE <= layout.servers.size
    if (known.length > 0 && !single) return { names, commands: [showStat(proxy, 'both')], by }
    if (known.length === 0) return { names, commands: [showStat(proxy, 'backend')], by }
    const commands = known.map((name, index) =>
      showStat(proxy, index === 0 ? 'both' : 'servers', layout.servers.get(name)?.sid),
    )
    return { names, commands, by }
  }

  /** Whether the rows are the requested ones; otherwise their positions are learnt anew. */
  #found(pool: string, rows: Rows | undefined, plan: Plan | undefined): boolean {
    const layout = this.#layouts.get(pool)
    if (layout?.iid === undefined || plan === undefined) return true
    if (rows?.has(OWN) !== true) {
      // Only the list of all proxies shows that it has none; another look may have gone on to that meanwhile.
      if (plan.by === 'filter') {
        this.#layouts.set(pool, DISABLED)
        return true
      }
      if (layout.by === plan.by) layout.by = plan.by === 'iid' ? 'name' : 'filter'
      return false
    }
    return plan.names.every((name) => rows.has(name) || !layout.servers.has(name))
  }

  /** Whether this look needs the mask. */
  #wantsMask(pool: string, name: string, now: number, fresh: boolean): boolean {
    const layout = this.#layouts.get(pool)
    if (fresh) return false
    if (layout?.servers.has(name) !== true) return isName(name) // absence is proved in the same look
    const memory = this.#memory.get(refKey({ pool, member: name }))
    if (memory === undefined || memory.tracks || !tellsOwnState(memory.status)) return true
    const due = memory.quietSince + PROOF_NEAR
    return memory.load === 0 && memory.maskAt < due && now >= due
  }

  /** Whether a row contradicts the last mask. */
  #surprises(pool: string, name: string, rows: Rows | undefined): boolean {
    const memory = this.#memory.get(refKey({ pool, member: name }))
    const row = rows?.get(name)
    if (row === undefined) return false
    return memory?.status !== row.status || memory.address !== row.address
  }

  #judge(
    pools: readonly string[],
    plans: readonly { names: string[] }[],
    rows: ReadonlyMap<string, Rows>,
    masked: ReadonlySet<string>,
    attempt: number,
    sampledAt: number,
    now: number,
  ): Omit<ShownProcess, 'info'> | undefined {
    const members = new Map<string, ShownServer>()
    const sums = new Map<string, ShownPool>()
    for (const [index, pool] of pools.entries()) {
      const own = rows.get(pool)
      const layout = this.#layouts.get(pool)
      const total = layout?.servers.size ?? 0
      const backend = own?.get(OWN)
      if (backend !== undefined) sums.set(pool, toShownPool(backend, total))
      for (const name of plans[index]?.names ?? []) {
        const row = own?.get(name)
        const state = layout?.servers.get(name)
        if (row === undefined || state === undefined) continue
        const fits = statusFitsMask(row.status, state.admin)
        if (!fits && attempt < ATTEMPTS) {
          this.#memory.delete(refKey({ pool, member: name }))
          return undefined
        }
        const ref = { pool, member: name }
        this.#remember(ref, row, masked.has(pool) ? now : undefined, sampledAt)
        members.set(refKey(ref), toShown(ref, row, state, fits))
      }
    }
    return { sampledAt, members, pools: sums }
  }

  #remember(ref: MemberRef, row: StatRow, maskAt: number | undefined, sampledAt: number): void {
    const before = this.#memory.get(refKey(ref))
    const load = row.active + row.queued
    const quiet = before !== undefined && before.arrivals === row.arrivals && before.load === 0
    this.#memory.set(refKey(ref), {
      status: row.status,
      tracks: row.tracked !== '',
      address: row.address,
      maskAt: maskAt ?? before?.maskAt ?? sampledAt,
      arrivals: row.arrivals,
      load,
      quietSince: quiet && load === 0 ? before.quietSince : sampledAt,
    })
  }

  #learn(pool: string, reply: string): void {
    const before = this.#layouts.get(pool)
    if (before === DISABLED) return
    if (/^Can't find backend/.test(reply)) {
      this.#layouts.set(pool, { iid: undefined, servers: new Map(), by: 'iid' })
      return
    }
    const servers = parseServersState(reply).filter((server) => server.pool === pool)
    const iid = servers[0]?.iid ?? before?.iid
    const moved = servers.some((server) => {
      const at = addressOf(before?.servers.get(server.name))
      return at !== undefined && addressOf(server) !== at
    })
    if (moved) this.#moves.set(pool, (this.#moves.get(pool) ?? 0) + 1)
    this.#layouts.set(pool, {
      // A backend without servers has no line: only its name is known.
      iid: iid ?? pool,
      servers: new Map(servers.map((server) => [server.name, server])),
      by: iid === undefined ? 'name' : (before?.by ?? 'iid'),
    })
  }
}

/**
 * Whether the status text alone shows the server's own state, so that not every look needs the mask: DRAIN and plain
 * MAINT do, if the server tracks nothing. DOWN hides a drain; "MAINT (via ...)" hides the own bit.
 */
function tellsOwnState(status: string): boolean {
  return /^DRAIN/.test(status) || status === 'MAINT'
}
