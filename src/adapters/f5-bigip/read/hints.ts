import type { CallContext, MemberRef, Reading } from '../../../provider/contract.js'
import { caught } from '../../../kit/errors.js'
import { RecentMap } from '../../../kit/recent-map.js'
import { refKey } from '../../../provider/member-ref.js'
import {
  parseItems,
  parseVirtual,
  pathOf,
  wordsOf,
  type NodeRow,
  type VirtualRow,
} from '../codec/members.js'
import { partitionOf } from '../codec/names.js'
import { statsOf } from '../codec/stats.js'
import type { Device } from '../session/device.js'
import type { Found } from './target.js'
import type { Rights } from './rights.js'
import type { PoolView } from './unit.js'

/** So many looks in a row at held members with open connections, and the virtual servers are asked why. */
const STUCK_LOOKS = 5
/** How long the answer is kept, in milliseconds. */
const KEEP = 600_000

const VIRTUALS =
  '/mgmt/tm/ltm/virtual?expandSubcollections=true&$select=name,partition,fullPath,pool,persist,profilesReference'
const ONE_CONNECT = '/mgmt/tm/ltm/profile/one-connect?$select=name,partition,fullPath'

type ByPool = ReadonlyMap<string, readonly string[]>

/** What a person who asks why a member is not idle wants to know of this product. */
export class Hints {
  readonly #notes = new RecentMap<string, Map<string, string>>()
  readonly #rights: Rights
  /** How many looks in a row have shown a held member with open connections. */
  #busyLooks = 0
  #clients: { readonly at: number; readonly byPool: ByPool } | undefined
  #plans: ByPool = new Map()
  /** What is so of every member, such as a group that is not in sync. */
  general: string | undefined

  constructor(rights: Rights) {
    this.#rights = rights
  }

  /** Keeps a sentence about a member until another one on that topic takes its place. */
  note(ref: MemberRef, topic: string, text: string): void {
    const notes = this.#notes.get(refKey(ref)) ?? new Map<string, string>()
    this.#notes.set(refKey(ref), notes.set(topic, text))
  }

  /** What a target hits and costs, until the next one is found. */
  planned(plans: ByPool): void {
    this.#plans = plans
  }

  forget(ref: MemberRef): void {
    this.#notes.delete(refKey(ref))
  }

  /** What is known of a node, or of any other object: what hangs on it, while it is ready, and what was done. */
  about(ref: MemberRef, object: string): readonly string[] {
    const general = this.general === undefined ? [] : [this.general]
    const notes = this.#notes.get(refKey(ref))?.values() ?? []
    const missing = this.#rights.missing(partitionOf(object))
    return [...(this.#plans.get(refKey(ref)) ?? []), ...missing, ...notes, ...general]
  }

  ofNode(ref: MemberRef, row: NodeRow): readonly string[] {
    return [...strange([row]), ...this.about(ref, row.fullPath)]
  }

  of(ref: MemberRef, { row, ephemerals }: Found, view: PoolView): readonly string[] {
    const { fullPath: pool, minActiveMembers, serviceDownAction: action } = view.attributes
    const sessions = [row, ...ephemerals].reduce(
      (sum, member) => sum + (statsOf(view.stats, member)?.sessions ?? 0),
      0,
    )
    const hints: string[] = [...strange([row, ...ephemerals]), ...this.about(ref, row.fullPath)]
    if (row.own === 'drain' && sessions > 0) {
      hints.push(
        `${sessions} ${sessions === 1 ? 'session' : 'sessions'} on record: a disabled member still takes new connections of persistent clients; escalateAfter or hold: 'maint' ends that`,
      )
    }
    if (row.own !== 'ready') hints.push(...(this.#clients?.byPool.get(pool) ?? []))
    if (row.declared || /\/[^/]+\.app\//.test(pool)) {
      hints.push(
        `${row.fullPath} is declared by AS3 or an application service, which puts it back with its next deployment`,
      )
    }
    hints.push(...view.members.odd.map(({ message }) => `not read, and not reported: ${message}`))
    if (minActiveMembers > 0) {
      hints.push(
        `${pool} has minActiveMembers ${minActiveMembers}: with fewer, a lower priority group takes over`,
      )
    }
    if (action !== undefined && action !== 'none') {
      hints.push(
        `${pool} has serviceDownAction ${action}: whether force offline triggers it is not documented`,
      )
    }
    return hints
  }

  /** Asks once why a member that is held stays busy, where one has been so for some looks. */
  async look(device: Device, readings: readonly Reading[], ctx: CallContext): Promise<void> {
    this.#busyLooks = readings.some(isHeldAndBusy) ? this.#busyLooks + 1 : 0
    const at = ctx.clock.now()
    const isKnown = this.#clients !== undefined && at < this.#clients.at + KEEP
    if (this.#busyLooks < STUCK_LOOKS || isKnown) return
    this.#clients = { at, byPool: new Map() }
    // No right to read virtual servers is no reason to fail.
    const byPool = await caught(
      ctx,
      () => explain(device, ctx),
      () => undefined,
    )
    if (byPool !== undefined) this.#clients = { at, byPool }
  }
}

function isHeldAndBusy(reading: Reading): boolean {
  const isHeld = reading.present && reading.own !== 'ready'
  return isHeld && reading.scopes.some(({ active }) => active > 0)
}

/** The virtual servers by their default pool; content rules can send to others. */
export async function readVirtuals(
  { session }: Device,
  path: string,
  ctx: CallContext,
): Promise<ReadonlyMap<string, readonly VirtualRow[]> | undefined> {
  const found = await session.get(path, ctx)
  if (found === undefined) return undefined
  const rows = parseItems(found).map(parseVirtual)
  return Map.groupBy(rows, ({ pool }) => pool ?? '')
}

/** Why clients stay on members, or come back to them, by pool. */
async function explain(device: Device, ctx: CallContext): Promise<ByPool | undefined> {
  const virtuals = await readVirtuals(device, VIRTUALS, ctx)
  const profiles = await device.session.get(ONE_CONNECT, ctx)
  if (virtuals === undefined || profiles === undefined) return undefined
  const oneConnect = new Set(parseItems(profiles).map(pathOf))
  return new Map(
    [...virtuals].map(([pool, rows]) => [pool, rows.flatMap((row) => explainOne(row, oneConnect))]),
  )
}

function explainOne(
  { fullPath, profiles, persistence }: VirtualRow,
  oneConnect: ReadonlySet<string>,
): readonly string[] {
  const reuses = profiles.some((profile) => oneConnect.has(profile))
  return [
    reuses
      ? `${fullPath} has a OneConnect profile: its pooled idle connections count as open until the server or the profile's maxAge closes them`
      : `${fullPath} has no OneConnect profile: a kept-alive client connection stays on this member until client or server closes it`,
    ...persistence.map((profile) =>
      /cookie/i.test(profile)
        ? `${fullPath} persists by ${profile}: the device keeps no record of those clients, and while the member is only disabled they can come back`
        : `${fullPath} persists by ${profile}: while records last, their clients come back to a disabled member`,
    ),
  ]
}

/** What the device says of a state that is not known: the first thing that whoever asks why is told. */
function strange(rows: readonly Pick<NodeRow, 'fullPath' | 'own' | 'native'>[]): readonly string[] {
  const [one] = rows.filter(({ own }) => own === 'unknown')
  return one === undefined ? [] : [`${one.fullPath}: ${wordsOf(one.native)}`]
}
