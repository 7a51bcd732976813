import type {
  AdminState,
  Change,
  DrainableProvider,
  MemberRef,
} from '../../../provider/contract.js'
import { systemClock, type Clock } from '../../../provider/clock.js'
import { refKey } from '../../../provider/member-ref.js'
import type { LateChange, Owned } from '../../machine/state.js'
import {
  comingHolds,
  noteComing,
  stillComing,
  takeComing,
  type Coming,
  type ComingHolds,
} from './coming.js'
import { setBackgroundTimer } from '../look/timer.js'

/** What a run of this process wants of a member. */
export type Side = 'drain' | 'open'

/** A change without an answer that another run has sent. */
export interface LeftChange extends LateChange {
  /** The ticket that it is in as well, by id. */
  readonly ticket?: string
  /** The clock of its moments: to whoever has another one they say nothing. */
  readonly clock: Clock
}

/** One run of this process, as others see it. Copies of this module meet here: plain data and functions only. */
export interface Stake {
  /** When its call was made: of two with opposite goals the later wins. */
  seq: number
  /** What it wants of the member now, or will once it knows its members; null: nothing. */
  readonly side: (ref: MemberRef) => Side | null
  /** Members it wishes down, by their key. */
  readonly down: ReadonlyMap<string, MemberRef>
  /**
   * Another call speaks for the member from now on; what a run that ends by this has not undone is handed over. A drain
   * goes on where an undo leads no lower than it holds the member.
   *
   * @param to - where an undo leads; null: elsewhere, or not known
   * @param ticket - that the other call writes, by id
   */
  readonly overrule: (
    ref: MemberRef,
    by: Side,
    to: AdminState | null,
    ticket?: string,
  ) => Owned | null
  /** The ticket that it writes, by id; undefined before it knows. */
  readonly ticket: () => string | undefined
  /** Another run has nothing left to do with this ticket; returns whether this one has, and goes on writing it. */
  readonly takeUp: (ticket: string) => boolean
  /** What it has changed of the member and not undone, whoever speaks for the member now. */
  readonly owned: (ref: MemberRef) => Owned | null
  /** Changes of the member whose answer it never got. */
  readonly late: (ref: MemberRef) => readonly LeftChange[]
  /** Another run leaves, and what it never got an answer to may still be carried out. */
  readonly inherit: (left: readonly LeftChange[]) => void
  /** Another run sends a change of the member: what shows up then may be its doing. */
  readonly touched: (ref: MemberRef) => void
}

/** All runs of this process on one balancer, whichever provider objects they use. */
export interface Balancer {
  seq: number
  readonly stakes: Set<Stake>
  /** Who has an undo without an answer, by member: most often nobody, so that no look asks all runs. */
  readonly restoring: Map<string, Set<Stake>>
}

/** ESM and CJS copies of this module are one process: they share these maps. */
const BALANCERS = Symbol.for('drainable.balancers.1')
/** Changes without an answer that ended runs have left, by balancer and member. */
const LEFT = Symbol.for('drainable.left.1')

/** Calls that change something and have not ended, by balancer and member. */
const CALLS = Symbol.for('drainable.calls.1')

/** A map that all copies of this module share. */
function shared<T>(name: symbol): Map<string, T> {
  const holder = globalThis as unknown as Record<symbol, Map<string, T> | undefined>
  const map = holder[name] ?? new Map<string, T>()
  holder[name] = map
  return map
}

const balancers = (): Map<string, Balancer> => shared(BALANCERS)
const leftChanges = (): Map<string, readonly LeftChange[]> => shared(LEFT)
const openCalls = (): Map<string, Set<Promise<void>>> => shared(CALLS)

function keyOf({ name, instance }: DrainableProvider): string {
  return `${name}\0${instance}`
}

/** A run's membership of its balancer. */
export interface Membership {
  readonly stake: Stake
  /** Every other run. */
  readonly others: () => readonly Stake[]
  /** A number later than every call before. */
  readonly nextSeq: () => number
  /** A call that changes a member goes out; it is forgotten when it has ended. */
  readonly calling: (ref: MemberRef, done: Promise<void>) => void
  /** Calls that change a member and have not ended, whoever made them. */
  readonly callsOf: (ref: MemberRef) => readonly Promise<void>[]
  /** Whether a call that changes something is under way, whoever made it and for whatever member. */
  readonly busy: () => boolean
  /** Notes whether this run has an undo of the member without an answer. */
  readonly restoring: (ref: MemberRef, is: boolean) => void
  /** Whether another run has an undo of the member under way, or one without an answer. */
  readonly mayOpen: (ref: MemberRef) => boolean
  /** Takes what ended runs have left of a member. */
  readonly takeLeft: (ref: MemberRef) => readonly LeftChange[]
  /** A hold without an answer may still take the member: until then, or for as long as calls are under way. */
  readonly mayCome: (ref: MemberRef, coming: Coming) => void
  /** Members that a hold of an ended run may still take. */
  readonly coming: () => readonly MemberRef[]
  /** Leaves; `late` are the changes whose answer never came, for whoever comes next. */
  readonly leave: (late: ReadonlyMap<string, readonly LeftChange[]>, lateBound: number) => void
}

/**
 * Joins the runs of a balancer. An entry exists only while a run lives.
 *
 * @param counts - false for a run that wants nothing: no other run sees it
 */
export function joinBalancer(
  provider: DrainableProvider,
  counts: boolean,
  make: (seq: number) => Stake,
): Membership {
  const map = counts ? balancers() : new Map<string, Balancer>()
  const key = keyOf(provider)
  const balancer = map.get(key) ?? {
    seq: 0,
    stakes: new Set<Stake>(),
    restoring: new Map<string, Set<Stake>>(),
  }
  map.set(key, balancer)
  const nextSeq = (): number => (balancer.seq += 1)
  const stake = make(nextSeq())
  balancer.stakes.add(stake)
  const open = counts ? openCalls() : new Map<string, Set<Promise<void>>>()
  const left = counts ? leftChanges() : new Map<string, readonly LeftChange[]>()
  const coming = counts ? comingHolds() : (new Map() as ComingHolds)
  const callsOf = (ref: MemberRef): readonly Promise<void>[] => [
    ...(open.get(`${key}\0${refKey(ref)}`) ?? []),
  ]
  return {
    stake,
    nextSeq,
    others: () => [...balancer.stakes].filter((other) => other !== stake),
    calling: (ref, done) => {
      for (const other of balancer.stakes) if (other !== stake) other.touched(ref)
      const of = `${key}\0${refKey(ref)}`
      const calls = open.get(of) ?? new Set()
      open.set(of, calls.add(done))
      void done.finally(() => {
        calls.delete(done)
        if (calls.size === 0 && open.get(of) === calls) open.delete(of)
      })
    },
    callsOf,
    restoring: (ref, is) => noteRestoring(balancer, stake, refKey(ref), is),
    mayOpen: (ref) =>
      (callsOf(ref).length > 0 || balancer.restoring.has(refKey(ref))) &&
      [...balancer.stakes].some((other) => other !== stake && other.late(ref).some(isRestore)),
    busy: () => [...open.keys()].some((of) => of.startsWith(`${key}\0`)),
    takeLeft: (ref) => {
      const of = `${key}\0${refKey(ref)}`
      const changes = left.get(of) ?? []
      left.delete(of)
      takeComing(coming, key, ref)
      return changes
    },
    mayCome: (ref, one) => noteComing(coming, key, ref, one, callsOf(ref)),
    coming: () => stillComing(coming, key),
    leave: (late, lateBound) => {
      balancer.stakes.delete(stake)
      for (const member of [...balancer.restoring.keys()])
        noteRestoring(balancer, stake, member, false)
      if (balancer.stakes.size === 0 && map.get(key) === balancer) map.delete(key)
      for (const [member, changes] of late) {
        const of = `${key}\0${member}`
        for (const other of balancer.stakes) other.inherit(changes)
        // Several runs may end before another run comes: each of their changes may still be carried out.
        left.set(of, oneEach([...(left.get(of) ?? []), ...changes]))
        const forget = (): void => {
          const rest = (left.get(of) ?? []).filter((entry) => !changes.includes(entry))
          if (rest.length > 0) left.set(of, rest)
          else left.delete(of)
        }
        // By the real clock: no test may be left that moves another one on.
        setBackgroundTimer(systemClock, forget, lateBound + LEFT_FOR)
      }
    },
  }
}

function noteRestoring({ restoring }: Balancer, stake: Stake, member: string, is: boolean): void {
  const known = restoring.get(member)
  if (is) restoring.set(member, (known ?? new Set()).add(stake))
  else if (known?.delete(stake) === true && known.size === 0) restoring.delete(member)
}

function isRestore({ change }: LateChange): boolean {
  return change.kind === 'restore'
}

/** All runs of this process on a balancer, as seen by who is none of them. */
export function othersOn(provider: DrainableProvider): readonly Stake[] {
  return [...(balancers().get(keyOf(provider))?.stakes ?? [])]
}

/**
 * Leaves a ticket to the runs of this process that still have something down, or to undo, under it: they write it from now
 * on. Returns whether there is one.
 */
export function leaveTicket(provider: DrainableProvider, ticket: string): boolean {
  const heirs = othersOn(provider).filter((stake) => stake.takeUp(ticket))
  return heirs.length > 0
}

/** Members that a hold of an ended run may still take, as seen by who is none of the runs. */
export function comingOn(provider: DrainableProvider): readonly MemberRef[] {
  return stillComing(comingHolds(), keyOf(provider))
}

/** What one run has inherited from another is one change, and two that ask for the same are two. */
function oneEach<T extends LateChange>(all: readonly T[]): readonly T[] {
  return [...new Map(all.map((entry) => [entry.change, entry])).values()]
}

/** How long a change without an answer is remembered beyond the product's bound, in milliseconds. */
const LEFT_FOR = 30_000

/**
 * Changes of a member that other runs sent and never got an answer to.
 *
 * @param known - whether one, which is in these tickets too, is known from there
 */
export function inheritedLate(
  { takeLeft, others }: Membership,
  ref: MemberRef,
  { now, clock }: { readonly now: number; readonly clock: Clock },
  known: (change: Change, tickets: readonly (string | undefined)[]) => boolean,
): readonly LateChange[] {
  const all = [...takeLeft(ref), ...others().flatMap((other) => other.late(ref))]
  const ticketsOf = (of: Change): readonly (string | undefined)[] =>
    all.flatMap(({ change, ticket }) => (change === of ? [ticket] : []))
  return oneEach(all)
    .filter(({ change }) => !known(change, ticketsOf(change)))
    .map((entry) => asInherited(entry, { now, clock }))
}

/** A change of another run, as it is to whoever inherits it. */
export function asInherited(
  entry: LeftChange,
  { now, clock }: { readonly now: number; readonly clock: Clock },
): LateChange {
  return {
    change: entry.change,
    lostAt: now,
    until: entry.clock === clock ? entry.until : null,
    ...lackedBy(entry, now),
    ...(entry.sight === 'gone' ? { sight: entry.sight } : {}),
  }
}

/**
 * A restore that was missing when its answer was lost, and shows from now on, was carried out: it is no
 * other client's doing, and what is set after it is. It or its repeat: this one may still come. Whose a hold is depends
 * on the run, which sees for itself.
 */
function lackedBy(
  { change, lackedAt, before }: LateChange,
  now: number,
): Pick<LateChange, 'lackedAt' | 'before' | 'shared'> {
  if (change.kind !== 'restore' || lackedAt === null) return { lackedAt: null }
  return { lackedAt: now, shared: true, ...(before === undefined ? {} : { before }) }
}

/** Whether a drain of this process speaks for a member. */
export function isClaimed(provider: DrainableProvider, ref: MemberRef): boolean {
  const balancer = balancers().get(keyOf(provider))
  return [...(balancer?.stakes ?? [])].some((stake) => stake.side(ref) === 'drain')
}
