import type { CallContext, MemberRef } from '../../../provider/contract.js'
import { isDrainableError } from '../../../provider/error.js'
import { refKey } from '../../../provider/member-ref.js'
import { parseItems, parseVirtual, pathOf, type VirtualRow } from '../codec/members.js'
import { partitionOf } from '../codec/names.js'
import type { Device } from '../session/device.js'
import type { Found } from './target.js'
import type { Rights } from './rights.js'
import type { PoolView } from './view.js'

/** Looks at a held member with open connections after which the virtual servers are asked why. */
const STUCK_LOOKS = 5
/** How long the answer is kept, in milliseconds. */
const KEEP = 600_000

const VIRTUALS =
  '/mgmt/tm/ltm/virtual?expandSubcollections=true&$select=name,partition,fullPath,pool,persist,profilesReference'
const ONE_CONNECT = '/mgmt/tm/ltm/profile/one-connect?$select=name,partition,fullPath'

/** What a person who asks why a member is not idle wants to know of this product. */
export class Hints {
  readonly #looks = new Map<string, number>()
  #clients:
    { readonly at: number; readonly byPool: ReadonlyMap<string, readonly string[]> } | undefined
  readonly #notes = new Map<string, Map<string, string>>()
  #plans: ReadonlyMap<string, readonly string[]> = new Map()
  /** What is so of every member, such as a group that is not in sync. */
  general: string | undefined
  readonly #rights: Rights

  constructor(rights: Rights) {
    this.#rights = rights
  }

  /** Keeps a sentence about a member until another one on that topic takes its place. */
  note(ref: MemberRef, topic: string, text: string): void {
    const notes = this.#notes.get(refKey(ref)) ?? new Map<string, string>()
    this.#notes.set(refKey(ref), notes.set(topic, text))
  }

  /** What a target hits and costs, until the next one is found. */
  planned(plans: ReadonlyMap<string, readonly string[]>): void {
    this.#plans = plans
  }

  forget(ref: MemberRef): void {
    this.#looks.delete(refKey(ref))
    this.#notes.delete(refKey(ref))
  }

  /** What is known of a node, or of any other object: what hangs on it, while it is ready, and what was done. */
  ofNode(ref: MemberRef, object: string): readonly string[] {
    const general = this.general === undefined ? [] : [this.general]
    const notes = this.#notes.get(refKey(ref))?.values() ?? []
    const missing = this.#rights.missing(partitionOf(object))
    return [...(this.#plans.get(refKey(ref)) ?? []), ...missing, ...notes, ...general]
  }

  of(ref: MemberRef, { row }: Found, view: PoolView, sessions: number): readonly string[] {
    const { attributes } = view
    const hints: string[] = [...this.ofNode(ref, row.fullPath)]
    if (row.own === 'drain' && sessions > 0) {
      hints.push(
        `${sessions} ${sessions === 1 ? 'session' : 'sessions'} on record: a disabled member still takes new connections of persistent clients; escalateAfter or hold: 'maint' ends that`,
      )
    }
    if (row.own !== 'ready') hints.push(...(this.#clients?.byPool.get(attributes.fullPath) ?? []))
    if (row.declared || /\/[^/]+\.app\//.test(attributes.fullPath)) {
      hints.push(
        `${row.fullPath} is declared by AS3 or an application service, which puts it back with its next deployment`,
      )
    }
    hints.push(...view.odd.map(({ message }) => `not read, and not reported: ${message}`))
    if (attributes.minActiveMembers > 0) {
      hints.push(
        `${attributes.fullPath} has minActiveMembers ${attributes.minActiveMembers}: with fewer, a lower priority group takes over`,
      )
    }
    const action = attributes.serviceDownAction
    if (action !== undefined && action !== 'none') {
      hints.push(
        `${attributes.fullPath} has serviceDownAction ${action}: whether force offline triggers it is not documented`,
      )
    }
    return hints
  }

  /** Counts the looks at members that are held and still busy, and asks once why when they get many. */
  async look(
    device: Device,
    held: readonly { readonly ref: MemberRef; readonly busy: boolean }[],
    ctx: CallContext,
  ): Promise<void> {
    let stuck = false
    for (const { ref, busy } of held) {
      const looks = busy ? (this.#looks.get(refKey(ref)) ?? 0) + 1 : 0
      this.#looks.set(refKey(ref), looks)
      if (looks >= STUCK_LOOKS) stuck = true
    }
    const known = this.#clients
    if (!stuck || (known !== undefined && ctx.clock.now() < known.at + KEEP)) return
    this.#clients = { at: ctx.clock.now(), byPool: new Map() }
    try {
      const virtuals = await device.session.get(VIRTUALS, ctx)
      const profiles = await device.session.get(ONE_CONNECT, ctx)
      if (virtuals === undefined || profiles === undefined) return
      const names = new Set(parseItems(profiles).map(pathOf))
      this.#clients = {
        at: ctx.clock.now(),
        byPool: explain(parseItems(virtuals).map(parseVirtual), names),
      }
    } catch (error) {
      // Only hints: no right to read virtual servers is no reason to fail
      if (ctx.signal.aborted || !isDrainableError(error)) throw error
    }
  }
}

function explain(
  virtuals: readonly VirtualRow[],
  oneConnect: ReadonlySet<string>,
): ReadonlyMap<string, readonly string[]> {
  const byPool = new Map<string, string[]>()
  for (const virtual of virtuals) {
    if (virtual.pool === undefined) continue
    const list = byPool.get(virtual.pool) ?? []
    byPool.set(virtual.pool, list)
    const reuses = virtual.profiles.some((profile) => oneConnect.has(profile))
    list.push(
      reuses
        ? `${virtual.fullPath} has a OneConnect profile: its pooled idle connections count as open until the server or the profile's maxAge closes them`
        : `${virtual.fullPath} has no OneConnect profile: a kept-alive client connection stays on this member until client or server closes it`,
    )
    for (const profile of virtual.persistence) {
      const cookie = /cookie/i.test(profile)
      list.push(
        cookie
          ? `${virtual.fullPath} persists by ${profile}: the device keeps no record of those clients, and while the member is only disabled they can come back`
          : `${virtual.fullPath} persists by ${profile}: while records last, their clients come back to a disabled member`,
      )
    }
  }
  return byPool
}
