import type { AdminState, Change, LoadScope, Reading } from 'drainable/provider'
import { WEB1 } from '../member-run.js'

/** What is true of one process, whatever is read. */
export interface Process {
  readonly name: string
  readonly life: 'unborn' | 'alive' | 'ended'
  readonly incarnation: number
  /** Work bound to the member: since when. It shows in the counts once it is `blind` old. */
  readonly work: readonly { readonly takenAt: number }[]
  /** Everything that ever arrived in this life, by the moment it shows. */
  readonly arrivals: number
  /** When something was bound to the member last. */
  readonly cameAt: number | null
  /** The state it has taken. */
  readonly taken: AdminState
  /** It takes no changes: an old worker. */
  readonly old: boolean
  readonly readable: boolean
}

/** A change whose answer was lost and that is still to be carried out, or never. */
export interface Straggler {
  readonly change: Change
  readonly lostAt: number
  /** From when on it can't be carried out any more; null while no look asked for since was answered. */
  readonly until: number | null
}

/** What is true of the member. */
export interface Truth {
  readonly own: AdminState
  /** `before`: as it was when the run began, or as the balancer starts. */
  readonly setBy: 'before' | 'us' | 'operator' | 'reload'
  readonly identity: 'first' | 'other' | null
  readonly processes: readonly Process[]
  readonly stragglers: readonly Straggler[]
  /** The change under way was carried out before its answer. */
  readonly landed: boolean
  /** Another client has ever changed the member. */
  readonly operator: boolean
  /** When the newest damaged answer was asked for, which left the member out: the next one is not damaged. */
  readonly damagedAt: number | null
}

/** What one look saw, and what was true in that moment. */
export interface Seen {
  readonly reading: Reading
  readonly askedAt: number
  readonly truth: Truth
}

export interface World {
  /** For how long work that is bound shows in no count. */
  readonly blind: number
  /** Whether clients with a session come under drain. */
  readonly persistent: boolean
  /** Whether looks list every process there is. */
  readonly listsAll: boolean
}

export function process(name: string, life: Process['life'] = 'alive'): Process {
  return {
    name,
    life,
    incarnation: 1,
    work: [],
    arrivals: 0,
    cameAt: null,
    taken: 'ready',
    old: false,
    readable: true,
  }
}

export function workOf(truth: Truth, name: string): number {
  const found = truth.processes.find((one) => one.name === name)
  return found?.life === 'alive' ? found.work.length : 0
}

/** What a look in this moment shows. */
export function look(truth: Truth, now: number, world: World, damaged = false): Reading {
  const scopes = truth.processes.flatMap((one) => scopeOf(one, now, world))
  if (truth.identity === null || damaged) return { ref: WEB1, present: false, scopes }
  return {
    ref: WEB1,
    present: true,
    identity: truth.identity,
    own: truth.own,
    serves: true,
    health: 'unchecked',
    scopes,
  }
}

function scopeOf(one: Process, now: number, world: World): readonly LoadScope[] {
  if (one.life === 'unborn' || (one.life === 'ended' && world.listsAll)) return []
  const hidden = one.work.filter(({ takenAt }) => takenAt + world.blind > now).length
  return [
    {
      scope: one.name,
      incarnation: `${one.name}.${one.incarnation}`,
      state: one.life === 'ended' ? 'ended' : one.readable ? 'read' : 'unread',
      sampledAt: now,
      active: one.readable ? one.work.length - hidden : 0,
      queued: 0,
      arrivals: one.arrivals - hidden,
      inForce: true,
      admin: one.taken,
      ...(one.old ? { old: true } : {}),
    },
  ]
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
export function setOwn(truth: Truth, own: AdminState, setBy: Truth['setBy']): Truth {
  return {
    ...truth,
    own,
    setBy,
    processes: truth.processes.map((one) => (one.old ? one : { ...one, taken: own })),
  }
}

const RANK = { ready: 0, drain: 1, maint: 2 }

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
