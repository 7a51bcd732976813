import type { Clock } from '../../../provider/clock.js'
import type { DrainableProvider, LoadScope, MemberRef } from '../../../provider/contract.js'
import { atLeast } from '../../../provider/admin-state.js'
import { refKey } from '../../../provider/member-ref.js'
import type { Sight } from '../../machine/input.js'
import { incarnationsOf, type DrainState } from '../../machine/state.js'
import { seenElsewhere } from '../../machine/ledger/foreign.js'
import type { Membership } from './balancer.js'
import { mayCome } from './coming.js'
import type { SeenLook } from '../look/look.js'
import { readingsOf } from '../look/readings.js'

/** The ledger of a run of this process that does not watch its members itself at present. */
export interface Ledger {
  /** Called when another run of this process has seen the member. */
  readonly seen: (ref: MemberRef, sight: Sight, clock: Clock) => void
}

type ByMember = Map<string, Set<WeakRef<Ledger>>>

/** Ledgers of this process by balancer and member. Weak references: a handle may never be asked to undo anything. */
const LEDGERS = Symbol.for('drainable.ledgers.1')

interface Kept {
  readonly map: Map<string, ByMember>
  readonly gone: FinalizationRegistry<() => void>
}

/** Copies of this module share it. */
function kept(): Kept {
  const holder = globalThis as unknown as Record<symbol, Kept | undefined>
  return (holder[LEDGERS] ??= {
    map: new Map(),
    gone: new FinalizationRegistry((forget: () => void) => forget()),
  })
}

function keyOf({ name, instance }: DrainableProvider): string {
  return `${name}\0${instance}`
}

/** Remembers a ledger as long as its owner lives. */
export function keepLedger(
  provider: DrainableProvider,
  refs: readonly MemberRef[],
  ledger: Ledger,
): void {
  const { map, gone } = kept()
  const key = keyOf(provider)
  const weak = new WeakRef(ledger)
  const members = map.get(key) ?? (new Map() as ByMember)
  map.set(key, members)
  for (const ref of refs) {
    const of = refKey(ref)
    members.set(of, (members.get(of) ?? new Set()).add(weak))
  }
  const keys = refs.map(refKey)
  gone.register(ledger, () => forget(key, keys, weak))
}

function forget(key: string, keys: readonly string[], weak: WeakRef<Ledger>): void {
  const { map } = kept()
  const members = map.get(key)
  if (members === undefined) return
  for (const of of keys) {
    const ledgers = members.get(of)
    ledgers?.delete(weak)
    if (ledgers?.size === 0) members.delete(of)
  }
  if (members.size === 0) map.delete(key)
}

/** The ledgers that listen to looks at this balancer's members; undefined if there are none. */
export function ledgersOf(
  provider: DrainableProvider,
): ((ref: MemberRef) => readonly Ledger[]) | undefined {
  const members = kept().map.get(keyOf(provider))
  if (members === undefined) return undefined
  return (ref) =>
    [...(members.get(refKey(ref)) ?? [])].flatMap((weak) => {
      const ledger = weak.deref()
      return ledger === undefined ? [] : [ledger]
    })
}

/** Passes a look that belongs to no run to each run of this process that has drained one of its members. */
export function tellLedgers(provider: DrainableProvider, look: SeenLook, clock: Clock): void {
  const { snapshot, askedAt, at } = look
  for (const [key, ledgers] of kept().map.get(keyOf(provider)) ?? []) {
    const reading = readingsOf(snapshot).get(key)
    if (reading?.present !== true || reading.own === 'unknown') continue
    const { ref, own, identity, scopes } = reading
    const sight = { own, identity, askedAt, at, incarnations: incarnationsIn(scopes) }
    for (const ledger of ledgers) ledger.deref()?.seen(ref, sight, clock)
  }
}

/** The incarnation of each process in one reading; none of a process that could not be read. */
export function incarnationsIn(scopes: readonly LoadScope[]): ReadonlyMap<string, string> {
  const alive = scopes.filter(({ state }) => state !== 'ended')
  return new Map(alive.map((one) => [one.scope, one.state === 'read' ? one.incarnation : '']))
}

/** The sight of a member that is lower than this run wants, if it wants it held at all. */
export function sightOf(state: DrainState, askedAt: number): Sight | undefined {
  const { last, goal, hold } = state
  if (last?.askedAt !== askedAt || !last.reading.present) return undefined
  const { own, identity } = last.reading
  if (own === 'unknown') return undefined
  if (goal.kind === 'drain' && hold.wish !== 'none' && atLeast(own, hold.wish)) return undefined
  return { own, identity, askedAt, at: last.at, incarnations: incarnationsOf(state) }
}

/**
 * Takes in what another run saw of a member. If a hold of another run may still come, the sight tells nothing: what shows
 * up after it may be the doing of that hold.
 */
export function learnSight(
  membership: Pick<Membership, 'others' | 'coming'>,
  state: DrainState,
  sight: Sight,
): DrainState {
  const learnt = seenElsewhere(state, sight)
  if (learnt.sighted === state.sighted) return learnt
  return mayHoldCome(membership, state.ref) ? { ...learnt, sighted: null } : learnt
}

/** Whether a hold of another run of this process, which may have ended, may still take the member. */
export function mayHoldCome(
  { others, coming }: Pick<Membership, 'others' | 'coming'>,
  ref: MemberRef,
): boolean {
  const key = refKey(ref)
  return (
    others().some((other) => other.late(ref).some(mayCome)) ||
    coming().some((one) => refKey(one) === key)
  )
}
