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

/** The goal of a run of this process for a member. */
export type Side = 'drain' | 'open'

/** An unanswered change that another run has sent. */
export interface LeftChange extends LateChange {
  /** The id of the ticket that also contains it. */
  readonly ticket?: string
  /** The clock of its times: they mean nothing on another clock. */
  readonly clock: Clock
}

/** One run of this process, as other runs see it. Copies of this module share it: plain data and functions only. */
export interface Stake {
  /** The order of its call: of two calls with opposite goals, the later wins. */
  seq: number
  /** Its goal for the member now, or once it knows its members; null: none. */
  readonly side: (ref: MemberRef) => Side | null
  /** Members that it holds or wants to hold, by their key. */
  readonly down: ReadonlyMap<string, MemberRef>
  /**
   * Called when another call takes control of the member; a run that ends by this hands over its changes. A drain
   * goes on if the undo does not lower the member below its hold.
   *
   * @param to - the state that an undo leads to; null: another, or not known
   * @param ticket - the id of the ticket that the other call writes
   */
  readonly overrule: (
    ref: MemberRef,
    by: Side,
    to: AdminState | null,
    ticket?: string,
  ) => Owned | null
  /** The id of the ticket that it writes; undefined before that is known. */
  readonly ticket: () => string | undefined
  /**
   * Called when another run no longer needs this ticket; returns whether this run needs it and continues writing it.
   */
  readonly takeUp: (ticket: string) => boolean
  /** Its changes of the member that are not undone, whichever run controls the member now. */
  readonly owned: (ref: MemberRef) => Owned | null
  /** Its unanswered changes of the member. */
  readonly late: (ref: MemberRef) => readonly LeftChange[]
  /** Called when another run leaves, with its unanswered changes, which may still be carried out. */
  readonly inherit: (left: readonly LeftChange[]) => void
  /** Called when another run sends a change of the member: an effect that shows up then can be from that change. */
  readonly touched: (ref: MemberRef) => void
}

/** All runs of this process on one balancer, whichever provider objects they use. */
export interface Balancer {
  seq: number
  readonly stakes: Set<Stake>
  /** The runs with an unanswered undo, by member: mostly empty, so that a look need not ask all runs. */
  readonly restoring: Map<string, Set<Stake>>
}

/** ESM and CJS copies of this module are one process: they share these maps. */
const BALANCERS = Symbol.for('drainable.balancers.1')
/** Unanswered changes of ended runs, by balancer and member. */
const LEFT = Symbol.for('drainable.left.1')

/** Calls in progress that change something, by balancer and member. */
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
  /** Returns a number higher than that of every call before. */
  readonly nextSeq: () => number
  /** Notes a call that changes a member until it has ended. */
  readonly calling: (ref: MemberRef, done: Promise<void>) => void
  /** Calls in progress that change a member, from any run. */
  readonly callsOf: (ref: MemberRef) => readonly Promise<void>[]
  /** Whether any call that changes something is in progress, from any run and for any member. */
  readonly busy: () => boolean
  /** Notes whether this run has an unanswered undo of the member. */
  readonly restoring: (ref: MemberRef, is: boolean) => void
  /** Whether another run has a pending or unanswered undo of the member. */
  readonly mayOpen: (ref: MemberRef) => boolean
  /** Takes the unanswered changes that ended runs have left for a member. */
  readonly takeLeft: (ref: MemberRef) => readonly LeftChange[]
  /** Notes that an unanswered hold may still take the member: until a time, or as long as calls are in progress. */
  readonly mayCome: (ref: MemberRef, coming: Coming) => void
  /** Members that the hold of an ended run may still take. */
  readonly coming: () => readonly MemberRef[]
  /** Leaves; `late` are its unanswered changes, for the next run. */
  readonly leave: (late: ReadonlyMap<string, readonly LeftChange[]>, lateBound: number) => void
}

/**
 * Joins the runs of a balancer. An entry exists only while a run lives.
 *
 * @param counts - false for a run that changes nothing: other runs do not see it
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
        // Several runs can end before the next run comes: each of their changes may still be carried out.
        left.set(of, oneEach([...(left.get(of) ?? []), ...changes]))
        const forget = (): void => {
          const rest = (left.get(of) ?? []).filter((entry) => !changes.includes(entry))
          if (rest.length > 0) left.set(of, rest)
          else left.delete(of)
        }
        // By the real clock: no test may be left that advances a fake one.
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

/** All runs of this process on a balancer, seen from outside of them. */
export function othersOn(provider: DrainableProvider): readonly Stake[] {
  return [...(balancers().get(keyOf(provider))?.stakes ?? [])]
}

/**
 * Leaves a ticket to runs of this process that still hold a member, or have something to undo, under it: they write
 * it from now on. Returns whether there is such a run.
 */
export function leaveTicket(provider: DrainableProvider, ticket: string): boolean {
  const heirs = othersOn(provider).filter((stake) => stake.takeUp(ticket))
  return heirs.length > 0
}

/** Members that the hold of an ended run may still take, seen from outside of the runs. */
export function comingOn(provider: DrainableProvider): readonly MemberRef[] {
  return stillComing(comingHolds(), keyOf(provider))
}

/**
 * Removes duplicates: a change that one run inherited from another is one change, but two changes that ask for the
 * same thing are two.
 */
function oneEach<T extends LateChange>(all: readonly T[]): readonly T[] {
  return [...new Map(all.map((entry) => [entry.change, entry])).values()]
}

/** How long an unanswered change is remembered beyond the product's bound, in milliseconds. */
const LEFT_FOR = 30_000

/**
 * Unanswered changes of a member from other runs.
 *
 * @param known - whether a change that is also in these tickets is known from there
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

/** A change of another run, as seen by the run that inherits it. */
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
 * When the effect of an inherited restore was last missing. If the effect shows later, the restore was carried out:
 * no other client did it, but a state set after it is another client's. The effect can come from the restore or its
 * repeat, so the restore may still be carried out. For a hold, each run judges by its own looks.
 */
function lackedBy(
  { change, lackedAt, before }: LateChange,
  now: number,
): Pick<LateChange, 'lackedAt' | 'before' | 'shared'> {
  if (change.kind !== 'restore' || lackedAt === null) return { lackedAt: null }
  return { lackedAt: now, shared: true, ...(before === undefined ? {} : { before }) }
}

/** Whether a drain of this process controls a member. */
export function isClaimed(provider: DrainableProvider, ref: MemberRef): boolean {
  const balancer = balancers().get(keyOf(provider))
  return [...(balancer?.stakes ?? [])].some((stake) => stake.side(ref) === 'drain')
}
