import type { AdminState, Change, Health, LoadScope, Reading } from 'drainable/provider'
import { WEB1 } from '../member-run.js'
import type { World } from './world.js'

/** What is true of one process, whatever is read. */
export interface Process {
  readonly name: string
  readonly life: 'unborn' | 'alive' | 'ended'
  readonly incarnation: number
  /** Work bound to the member: since when. It shows in the counts once it is `blind` old. */
  readonly work: readonly { readonly takenAt: number }[]
  /** Waits for this member: it is served by it, whatever its state. */
  readonly queued: number
  /** Everything that ever arrived in this life, by the moment it shows. */
  readonly arrivals: number
  /** When something was bound to the member last. */
  readonly cameAt: number | null
  /** The state it has taken. */
  readonly taken: AdminState
  /** It takes no changes: an old worker. */
  readonly old: boolean
  readonly readable: boolean
  readonly listed: boolean
  /** How much time it did not live through, in milliseconds. */
  readonly lag: number
}

/** Who set a state. `before`: as it was when the run began, or as the balancer starts. */
export type Setter = 'before' | 'us' | 'operator' | 'reload'

/** A change whose answer was lost and that is still to be carried out, or never. */
export interface Straggler {
  readonly change: Change
  readonly lostAt: number
  /** From when on it can't be carried out any more; null while no look asked for since was answered. */
  readonly until: number | null
  /** Its call was given up by us and goes on. */
  readonly underWay?: boolean
}

/** What is true of the member. */
export interface Truth {
  readonly own: AdminState
  readonly setBy: Setter
  /** States it was in before, and who had set each: a state file may bring one back. */
  readonly had: Readonly<Partial<Record<AdminState, Setter>>>
  readonly identity: 'first' | 'other' | null
  readonly processes: readonly Process[]
  readonly stragglers: readonly Straggler[]
  /** The change under way was carried out before its answer. */
  readonly landed: boolean
  /** Another client has ever changed the member. */
  readonly operator: boolean
  /** When the newest damaged answer was asked for, which left the member out: the next one is not damaged. */
  readonly damagedAt: number | null
  /** The balancer contradicts itself about the state. */
  readonly contradicts: boolean
  /** What it inherits from its node. */
  readonly inherited: AdminState | null
  readonly health: Health
  /** Maint cuts from now on, whatever the capabilities said. */
  readonly rough: boolean
  /** The numbers of an earlier moment, which a look may be answered with. */
  readonly cache: { readonly at: number; readonly numbers: readonly Numbers[] } | null
}

/** What a product counts for one process. */
export type Numbers = Pick<LoadScope, 'scope' | 'incarnation' | 'active' | 'queued'> & {
  readonly arrivals: number
}

/** What one look saw, and what was true in that moment. */
export interface Seen {
  readonly reading: Reading
  readonly askedAt: number
  readonly truth: Truth
}

/** How a look goes wrong. `old`: its numbers are as old as they may be. */
export type Flaw = 'none' | 'damaged' | 'partial' | 'old'

export function process(name: string, life: Process['life'] = 'alive'): Process {
  return {
    name,
    life,
    incarnation: 1,
    work: [],
    queued: 0,
    arrivals: 0,
    cameAt: null,
    taken: 'ready',
    old: false,
    readable: true,
    listed: true,
    lag: 0,
  }
}

/** Bound to the member in that process, or waiting for it. */
export function workOf(truth: Truth, name: string): number {
  const found = truth.processes.find((one) => one.name === name)
  return found?.life === 'alive' ? found.work.length + found.queued : 0
}

/** What a look in this moment shows. */
export function look(truth: Truth, now: number, world: World, flaw: Flaw = 'none'): Reading {
  const scopes = truth.processes.flatMap((one) => scopeOf(one, { truth, now, world, flaw }))
  if (truth.identity === null || flaw === 'damaged') return { ref: WEB1, present: false, scopes }
  return {
    ref: WEB1,
    present: true,
    identity: truth.identity,
    own: truth.contradicts ? 'unknown' : truth.own,
    serves: truth.own === 'ready' && truth.health !== 'down' && truth.inherited === null,
    health: truth.health,
    ...(truth.inherited === null ? {} : { inherited: truth.inherited }),
    ...(world.sealed === 'untold' ? {} : { sealed: doorIsClosed(truth, world) }),
    ...(truth.rough ? { maint: 'cuts' as const } : {}),
    ...(world.unverified ? { unverified: 'an old process is not seen' } : {}),
    scopes,
  }
}

/** Whether no client, persistent or not, can come to the member through any process. */
export function doorIsClosed({ processes }: Truth, world: World): boolean {
  return processes.every((one) => one.life !== 'alive' || !isOpen(one, world))
}

/** Whether a client with a session can still come through a process. */
export function isOpen({ taken }: Process, world: World): boolean {
  return taken === 'ready' || (world.persistent && taken === 'drain')
}

interface ScopeView {
  readonly truth: Truth
  readonly now: number
  readonly world: World
  readonly flaw: Flaw
}

function scopeOf(one: Process, { truth, now, world, flaw }: ScopeView): readonly LoadScope[] {
  if (one.life === 'unborn' || !one.listed) return []
  if (one.life === 'ended' && world.listsAll) return []
  const numbers = numbersOf(one, now, world)
  const old = flaw === 'old' ? truth.cache?.numbers.find(({ scope }) => scope === one.name) : null
  const read = one.readable && !(flaw === 'partial' && one.name === 'a')
  const { active, queued, arrivals } = old?.incarnation === numbers.incarnation ? old : numbers
  return [
    {
      scope: one.name,
      incarnation: numbers.incarnation,
      state: one.life === 'ended' ? 'ended' : read ? 'read' : 'unread',
      sampledAt: now - world.freshness,
      active: read ? active : 0,
      queued: read ? queued : 0,
      ...(world.counts === 'arrivals' ? { arrivals } : {}),
      ...(world.counts === 'none' ? { released: isReleased(one, truth) } : {}),
      ...(world.tellsClock ? { lived: now - one.lag } : {}),
      inForce: true,
      // A process that does not know the member any more has no state for it.
      ...(truth.identity === null && !one.old ? {} : { admin: one.taken }),
      ...(one.old ? { old: true } : {}),
    },
  ]
}

function isReleased({ taken, work, queued, old }: Process, { identity }: Truth): boolean {
  const isOut = taken !== 'ready' || (identity === null && !old)
  return isOut && work.length + queued === 0
}

function numbersOf(one: Process, now: number, world: World): Numbers {
  const hidden = one.work.filter(({ takenAt }) => takenAt + world.blind > now).length
  const counts = world.counts !== 'none'
  return {
    scope: one.name,
    incarnation: `${one.name}.${one.incarnation}`,
    active: counts ? one.work.length - hidden : 0,
    queued: counts ? one.queued : 0,
    arrivals: one.arrivals - hidden,
  }
}

/** The truth with the numbers of this moment kept, so that a later look can be answered with them. */
export function cached(truth: Truth, now: number, world: World): Truth {
  if (world.freshness === 0) return truth
  const { cache } = truth
  if (cache !== null && now - cache.at <= world.freshness) return truth
  return {
    ...truth,
    cache: { at: now, numbers: truth.processes.map((one) => numbersOf(one, now, world)) },
  }
}

export function change(
  truth: Truth,
  name: string,
  news: (one: Process) => Partial<Process>,
): Truth {
  return {
    ...truth,
    processes: truth.processes.map((one) => (one.name === name ? { ...one, ...news(one) } : one)),
  }
}

/** Sets the own state; every process but an old one takes it. */
export function setOwn(truth: Truth, own: AdminState, setBy: Setter): Truth {
  return {
    ...truth,
    own,
    setBy,
    had: { ...truth.had, [truth.own]: truth.setBy },
    processes: truth.processes.map((one) => (one.old ? one : { ...one, taken: own })),
  }
}

const RANK = { ready: 0, drain: 1, maint: 2 }

/** Whether one state is above another. */
export function isAbove(one: AdminState, other: AdminState): boolean {
  return RANK[one] > RANK[other]
}

/** The balancer carries a change of ours out; null where it has to refuse it. */
export function carryOut(truth: Truth, wanted: Change): Truth | null {
  if (truth.identity === null) return null
  if (wanted.identity !== undefined && wanted.identity !== truth.identity) return null
  switch (wanted.kind) {
    case 'hold':
      return RANK[truth.own] >= RANK[wanted.to] ? truth : setOwn(truth, wanted.to, 'us')
    case 'restore':
      return truth.own === wanted.expect ? setOwn(truth, wanted.to, 'us') : null
    case 'terminate':
      return { ...truth, processes: truth.processes.map((one) => ({ ...one, work: [] })) }
    case 'remove':
      return { ...truth, identity: null }
    default:
      return null
  }
}
