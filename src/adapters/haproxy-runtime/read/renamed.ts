import type { AdminState, MemberRef } from '../../../provider/contract.js'
import { refKey } from '../../../provider/member-ref.js'
import { DrainableError } from '../../../provider/error.js'
import { AnotherProcess, type Channel } from '../session/channel.js'
import type { Within } from '../session/socket.js'
import { showServersState } from '../codec/commands.js'
import { addressOf, parseServersState, type ServerState } from '../codec/state.js'
import type { StatRow } from '../codec/stat.js'
import type { ProcessSight, ProcessView, Sight, Wanted } from './read.js'

/** One process, and the way to it. */
export interface Reachable {
  readonly scope: string
  readonly view: ProcessView
  readonly channel: Channel
}

type Servers = ReadonlyMap<string, ServerState>

/** From the one that has taken least to the one that has taken most. */
const LADDER: readonly (AdminState | 'unknown')[] = ['unknown', 'ready', 'drain', 'maint']

/**
 * A reload may give a server another name, or its name to another one. What an old process holds for it then stands
 * under its name of before, and is found by its address. Both lists of all servers are read once for each
 * successor and address, and only where an old process does not know a server, or knows it by another address.
 */
export class Renamed {
  /** The process that serves, to which the lists belong. */
  #for = ''
  #before: Servers = new Map()
  #now: Servers = new Map()
  /** The addresses that were asked for when the lists were read: one that comes later can have moved meanwhile. */
  readonly #asked = new Set<string>()
  readonly #names = new Map<string, readonly MemberRef[]>()

  /** Under which names a server's work was counted there in the last look; empty if under its own. */
  namesOf(ref: MemberRef): readonly MemberRef[] {
    return this.#names.get(refKey({ pool: ref.pool, member: ref.member })) ?? []
  }

  /** The sight of an old process, in which each server stands as the one that it was there. */
  async follow(
    sight: ProcessSight,
    wanted: Wanted,
    old: Omit<Reachable, 'scope'>,
    serves: Reachable,
    ctx: Within,
  ): Promise<ProcessSight> {
    const moved = refsOf(wanted).filter((ref) => {
      const address = addressOf(serves.view.known(ref))
      const before = addressOf(sight.members.get(refKey(ref))?.state)
      return address !== undefined && address !== before
    })
    for (const ref of refsOf(wanted)) this.#names.delete(refKey(ref))
    if (moved.length === 0) return sight
    await this.#learn(
      moved.flatMap((ref) => addressOf(serves.view.known(ref)) ?? []),
      old,
      serves,
      ctx,
    )
    const names = new Map(
      moved.map((ref) => [ref, this.#namesAt(addressOf(serves.view.known(ref)))]),
    )
    const more = wantedOf([...names.values()].flat())
    if (more.size === 0) return sight
    const there = await old.view.read(more, old.channel, ctx)
    const members = new Map(sight.members)
    for (const [ref, aliases] of names) {
      const sights = aliases.flatMap((alias) => there.members.get(refKey(alias)) ?? [])
      const whole = joined(ref, sights)
      if (whole === undefined) continue
      members.set(refKey(ref), whole)
      this.#names.set(refKey(ref), aliases)
    }
    return { ...sight, info: there.info, members }
  }

  async #learn(
    addresses: readonly string[],
    old: Omit<Reachable, 'scope'>,
    serves: Reachable,
    ctx: Within,
  ): Promise<void> {
    const known = addresses.every((address) => this.#asked.has(address))
    if (this.#for === serves.scope && known) return
    const [before, now] = await Promise.all(
      [old.channel, serves.channel].map(async (channel) => {
        const { replies } = await channel.run([showServersState()], ctx)
        return byName(parseServersState(replies[0] ?? ''))
      }),
    ).catch((error: unknown) => {
      if (!(error instanceof AnotherProcess)) throw error
      const data = { provider: 'haproxy-runtime', cause: error }
      throw new DrainableError(
        'CONFLICT',
        'a reload has just replaced the process that serves',
        data,
      )
    })
    this.#before = before ?? new Map()
    this.#now = now ?? new Map()
    if (this.#for !== serves.scope) this.#asked.clear()
    for (const address of addresses) this.#asked.add(address)
    this.#for = serves.scope
  }

  /** What has that address there, and is not there by the same name now. */
  #namesAt(address: string | undefined): MemberRef[] {
    return [...this.#before].flatMap(([key, state]) => {
      const stays = addressOf(this.#now.get(key)) === address
      return addressOf(state) === address && !stays ? { pool: state.pool, member: state.name } : []
    })
  }
}

function byName(states: readonly ServerState[]): Servers {
  return new Map(states.map((state) => [refKey({ pool: state.pool, member: state.name }), state]))
}

/** The servers that a look names; those of a whole backend are not among them. */
export function refsOf(wanted: Wanted): MemberRef[] {
  return [...wanted].flatMap(([pool, names]) =>
    names === 'all' ? [] : [...names].map((member) => ({ pool, member })),
  )
}

function wantedOf(refs: readonly MemberRef[]): Wanted {
  const wanted = new Map<string, Set<string>>()
  for (const { pool, member } of refs) wanted.set(pool, (wanted.get(pool) ?? new Set()).add(member))
  return wanted
}

/** Several servers of one address as one. */
function joined(ref: MemberRef, sights: readonly Sight[]): Sight | undefined {
  const [first, ...more] = sights
  if (first === undefined) return undefined
  const sum = (of: (row: StatRow) => number): number =>
    sights.reduce((total, { row }) => total + of(row), 0)
  const row = {
    ...first.row,
    active: sum(({ active }) => active),
    queued: sum(({ queued }) => queued),
    pooled: sum(({ pooled }) => pooled),
    arrivals: sum(({ arrivals }) => arrivals),
    mayHide: sights.some((sight) => sight.row.mayHide),
  }
  const own = more.reduce(
    (least, sight) => (LADDER.indexOf(sight.own) < LADDER.indexOf(least) ? sight.own : least),
    first.own,
  )
  return { ...first, ref, row, own }
}
