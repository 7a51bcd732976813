import type {
  CallContext,
  LoadScope,
  MemberRef,
  PoolReading,
  PresentReading,
} from '../../../provider/contract.js'
import { refKey } from '../../../provider/member-ref.js'
import { identityOf, type ServerState } from '../codec/state.js'
import type { ControlPoint, EverySight } from '../session/session.js'
import { toHealth } from './health.js'
import type { Settings } from '../options.js'
import type { Process } from '../session/process.js'
import { type ProcessSight, type Sight, wouldServe } from './read.js'
import type { ScopeMemory } from './scopes.js'

/** Old workers are told to go only once the new one runs: the margin on top of `within`. */
const WITHIN_MARGIN = 2_000
/** Scope of processes that are not known one by one: the master could not be asked. */
const UNLISTED = 'old processes'
/** Scope of processes that were replaced before the first look and can't be seen. */
const BEFORE = 'processes of before'

/** Makes readings of what was seen. */
export class Readings {
  readonly #settings: Settings
  readonly #point: ControlPoint
  readonly #memory: ScopeMemory
  readonly #identities = new Map<string, string>()

  constructor(settings: Settings, point: ControlPoint, memory: ScopeMemory) {
    this.#settings = settings
    this.#point = point
    this.#memory = memory
  }

  /** Every process that holds work for a member, or may. */
  scopes(
    ref: MemberRef,
    { process, sight, others }: EverySight,
    keep: boolean,
    ctx: CallContext,
  ): readonly LoadScope[] {
    const key = keyOf(ref)
    const seen: LoadScope[] = []
    const own = sight.members.get(key)
    if (own !== undefined || this.#memory.knows(ref, process.scope)) {
      seen.push(toScope(process, own, sight.sampledAt))
    }
    for (const other of others.read) {
      const there = other.sight.members.get(key)
      if (there === undefined && !this.#memory.knows(ref, other.process.scope)) continue
      seen.push({
        ...toScope(other.process, there, other.sight.sampledAt),
        // A worker that takes no changes over this socket yet is none to be proved idle.
        ...(other.old ? {} : { state: 'unread' as const }),
        inForce: there === undefined || there.own === 'drain' || there.own === 'maint',
        old: other.old,
        note: other.old
          ? 'a process of before a reload'
          : 'a worker that does not serve the socket yet',
      })
    }
    const { oldWorkers } = this.#settings
    const now = ctx.clock.now()
    const over =
      typeof oldWorkers === 'object' &&
      now - this.#point.bornAt >= oldWorkers.within + WITHIN_MARGIN
    const unread = (scope: string, incarnation: string, note: string, ended: boolean): void => {
      seen.push({
        scope,
        incarnation,
        state: ended ? 'ended' : 'unread',
        sampledAt: sight.sampledAt,
        active: 0,
        queued: 0,
        inForce: false,
        old: true,
        note,
      })
    }
    for (const { process: old, note, listed } of others.unread) {
      if (!listed && !this.#memory.knows(ref, old.scope)) continue
      const passed =
        typeof oldWorkers === 'object' &&
        now - process.startedAt >= oldWorkers.within + WITHIN_MARGIN
      unread(old.scope, old.incarnation ?? '', note, !listed && (oldWorkers === 'accept' || passed))
    }
    if (others.blind !== undefined) unread(UNLISTED, '', others.blind, oldWorkers === 'accept')
    else if (this.#memory.knows(ref, UNLISTED)) unread(UNLISTED, '', '', true)
    const unseen = this.#point.unseenAtStart()
    if (unseen !== undefined && oldWorkers !== 'accept') {
      unread(BEFORE, '', unseen, over)
    }
    return this.#memory.complete(ref, seen, (scope) => this.#point.others.hasEnded(scope), keep)
  }

  /** A member that is there. */
  present(
    ref: MemberRef,
    sight: Sight,
    scopes: readonly LoadScope[],
    followers: readonly MemberRef[],
  ): PresentReading {
    const { state, own, inherited } = sight
    const unverified = this.#unverified(scopes)
    const hints = toHints(sight, followers)
    const known = state.address !== '-'
    return {
      ref,
      present: true,
      identity: this.#identity(ref, state),
      ...(known ? { address: state.address, port: state.port } : {}),
      weight: state.weight,
      own,
      ...(inherited === undefined ? {} : { inherited }),
      serves: wouldServe(sight),
      health: toHealth(sight),
      scopes,
      native: {
        admin: state.admin,
        weight: state.weight,
        ...(followers.length === 0
          ? {}
          : { followers: followers.map(({ pool, member }) => ({ pool, member })) }),
      },
      ...(unverified === undefined ? {} : { unverified }),
      ...(hints.length === 0 ? {} : { hints }),
    }
  }

  /** A server from a name that lost its address is still the one it was. */
  #identity(ref: MemberRef, state: ServerState): string {
    const key = keyOf(ref)
    const before = this.#identities.get(key)
    if (state.address === '-' && state.resolved && before !== undefined) return before
    const identity = identityOf(state)
    this.#identities.set(key, identity)
    return identity
  }

  #unverified(scopes: readonly LoadScope[]): string | undefined {
    if (this.#settings.oldWorkers === 'accept') {
      const unseen = this.#point.unseenAtStart()
      if (unseen !== undefined) return unseen
      const given = scopes.find(
        ({ state, note }) => state === 'ended' && note?.startsWith('not readable'),
      )
      if (given !== undefined)
        return `${given.scope} is ${given.note ?? ''}, and oldWorkers is 'accept'`
    }
    return this.#point.doubt(scopes.map(({ scope }) => scope))
  }
}

/** A member's key, whatever it is called behind a combined provider. */
export function keyOf(ref: MemberRef): string {
  return refKey({ pool: ref.pool, member: ref.member })
}

function toScope(process: Process, sight: Sight | undefined, sampledAt: number): LoadScope {
  const base = {
    scope: process.scope,
    incarnation: process.incarnation ?? '',
    state: 'read' as const,
    sampledAt,
    inForce: true,
  }
  // A server is deleted only once nothing is attached to it.
  if (sight === undefined) return { ...base, active: 0, queued: 0, released: true }
  const { active, queued, pooled, arrivals } = sight.row
  return { ...base, active, queued, pooled, arrivals }
}

/** How many of each backend would get work. */
export function toPools(sight: ProcessSight, balancer: string | undefined): PoolReading[] {
  return [...sight.pools].map(([pool, { serving, total }]) => ({
    pool,
    ...(balancer === undefined ? {} : { balancer }),
    serving,
    total,
    whenNone: 'refuse',
  }))
}

function toHints({ row, inherited }: Sight, followers: readonly MemberRef[]): string[] {
  const hints: string[] = []
  if (followers.length > 0) {
    const names = followers.map(({ pool, member }) => `${pool}/${member}`).join(', ')
    hints.push(
      `${names} ${followers.length === 1 ? 'tracks it and takes' : 'track it and take'} its state too`,
    )
  }
  if (row.tracked !== '') {
    hints.push(
      `it tracks ${row.tracked}${inherited === undefined ? '' : ` and inherits '${inherited}' from it: only making ${row.tracked} ready opens it`}`,
    )
  }
  return hints
}
