import { formatAddress } from '../provider/address.js'
import { atLeast, freeName, isInForce } from '../provider/member-ref.js'
import type { AdminState, MemberRef, PresentReading, Reading } from '../provider/contract.js'
import type { DesiredMember, HeldBack, PlannedChange } from '../provider/desired.js'
import { UNKNOWN_PLACE, type PoolMembers } from './match-members.js'
import { answer, type PlanOptions, type Wish } from './plan.js'

/** The change that brings a member to its wish, or why there is none, or nothing to say. */
export function planMember(
  wish: Wish,
  floor: ReadyFloor,
  options: PlanOptions,
): PlannedChange | HeldBack | undefined {
  const { reading, state, reason } = wish
  const { ref, identity, own, inherited = 'ready' } = reading
  if (own === 'unknown') {
    const asked = state === 'serve' ? 'ready' : 'a drain'
    return { ref, reason: `the balancer's state is not understood, so ${asked} is not asked for` }
  }
  if (state === 'serve') {
    if (own !== 'ready')
      return { change: { kind: 'restore', ref, identity, expect: own, to: 'ready' }, reason }
    if (inherited === 'ready') return undefined
    return { ref, reason: `it should serve and is ready itself, but inherits ${inherited}` }
  }
  const level: Level = state === 'drain' ? { to: 'drain' } : goneLevel(reading, options)
  const to = knownLevel(level.to, options)
  if (to === undefined)
    return { ref, reason: `the product knows no ${level.to}, so ${reason} can't be followed` }
  if (!atLeast(own, to)) {
    if (!floor.take(wish)) return { ref, reason: `${reason}, but ${floor.text}` }
    const said = level.why === undefined ? reason : `${reason}; ${level.why}`
    return { change: { kind: 'hold', ref, identity, to }, reason: said, keepReady: floor.of(wish) }
  }
  return wish.remove ? planRemove(wish, own, floor, options) : undefined
}

/** How a member is held, and why so. */
interface Level {
  readonly to: 'drain' | 'maint'
  readonly why?: string
}

/** How a member that does not answer is held. */
function goneLevel({ maint }: PresentReading, { gone, capabilities }: PlanOptions): Level {
  const effect = maint ?? capabilities?.maint ?? 'unknown'
  if (gone === 'drain' || effect === 'none') return { to: 'drain' }
  if (effect === 'gentle') {
    const why = 'maint keeps its established work and sends sticky clients elsewhere'
    return { to: 'maint', why }
  }
  if (effect === 'cuts')
    return { to: 'drain', why: 'drain, because maint would cut its established work' }
  if (gone === 'maint') return { to: 'maint' }
  const why = 'drain, because it is not known whether maint keeps its established work'
  return { to: 'drain', why }
}

/** The level itself, or the next stronger or weaker one the product has. */
function knownLevel(to: Level['to'], { capabilities }: PlanOptions): Level['to'] | undefined {
  const ladder = capabilities?.ladder
  if (ladder === undefined || ladder.includes(to)) return to
  return to === 'maint' && ladder.includes('drain') ? 'drain' : undefined
}

function planRemove(
  wish: Wish,
  own: AdminState,
  floor: ReadyFloor,
  options: PlanOptions,
): PlannedChange | HeldBack {
  const { reading, reason } = wish
  const { ref, identity } = reading
  if (options.capabilities?.remove === false) {
    return {
      ref,
      reason: `${reason}; it stays in ${own}, since the product can't take members out`,
    }
  }
  const idle = options.idle ?? isReleased
  if (answer('idle', idle(reading), reading)) {
    const change = { kind: 'remove', ref, identity } as const
    return { change, reason: `${reason}, and it is idle`, keepReady: floor.of(wish) }
  }
  return { ref, reason: `${reason}; it is in ${own} and not proved idle (${loadText(reading)})` }
}

/** Nothing new can come, and every process says by itself that nothing is left. */
function isReleased(reading: Reading): boolean {
  if (!reading.present) return false
  const { scopes, own, sealed = own === 'maint' } = reading
  if (own === 'unknown' || !sealed) return false
  return (
    scopes.length > 0 &&
    scopes.every(
      (scope) =>
        scope.state === 'ended' ||
        (scope.state === 'read' &&
          isInForce(scope, own) &&
          scope.released === true &&
          scope.active === 0 &&
          scope.queued === 0),
    )
  )
}

function loadText({ scopes }: PresentReading): string {
  const unread = scopes.filter(({ state }) => state === 'unread').length
  const read = scopes.filter(({ state }) => state === 'read')
  const active = read.reduce((sum, scope) => sum + scope.active, 0)
  const queued = read.reduce((sum, scope) => sum + scope.queued, 0)
  const parts = [`${active} in flight`, `${queued} queued`]
  if (unread > 0) parts.push(`${unread} of ${scopes.length} processes not read`)
  return parts.join(', ')
}

/** How a desired member that the balancer does not have is added, or why it is not. */
export function planAdd(
  one: DesiredMember,
  balancer: string | undefined,
  members: PoolMembers,
  options: PlanOptions,
): PlannedChange | HeldBack | undefined {
  const { state, address, port, weight, reason = 'serve' } = one
  if (state !== 'serve') return undefined
  const ref = { ...refOf(one), ...(balancer === undefined ? {} : { balancer }) }
  const not = (why: string): HeldBack => ({ ref, reason: `${reason}, but ${why}` })
  if (one.ifAbsent === 'skip') return not('it is not in the balancer and not to be added')
  if (address === undefined || port === undefined) {
    const missing = address === undefined ? 'address' : 'port'
    return not(`it is not in the balancer, and without ${missing} it can't be added`)
  }
  if (options.capabilities?.add === false) return not(`the product can't add members`)
  const place = { address, port, ...(weight === undefined ? {} : { weight }) }
  // A member is its address: a pod of a StatefulSet comes back under its name elsewhere.
  const holder = members.holderOf(ref.member)
  const member = holder === undefined ? ref.member : freeName(ref.member, place)
  const taken = `its name ${ref.member} is taken by ${holder}`
  // Without an address nothing says that it is another one: it could be added again by each plan.
  if (holder === UNKNOWN_PLACE || members.holderOf(member) !== undefined)
    return not(`${taken}: it is added once that one is out`)
  members.give(member)
  const change = { kind: 'add', ref: { ...ref, member }, ...place } as const
  return {
    change,
    reason: holder === undefined ? reason : `${reason}; as ${member}, because ${taken}`,
  }
}

/** The name a desired member has, or gets where it is added. */
export function refOf({ pool, member, address, port }: DesiredMember): MemberRef {
  return { pool, member: member ?? formatAddress(address ?? '', port) }
}

/**
 * Who goes on taking new work in one pool.
 *
 * A balancer gives work to a fresh member before a check of it has passed (HAProxy counts it as up from its first
 * moment), and says `unknown` until then. Such a member takes the place of another such one, not of one that works.
 */
export class ReadyFloor {
  readonly #least: number
  /** How many take work, work as far as is known, and are not gone. */
  #good = 0
  /** How many take work before a check of them has passed, and are not gone. */
  #unproved = 0

  constructor(
    readings: readonly PresentReading[],
    wishes: readonly Wish[],
    options: PlanOptions,
    empty: boolean,
  ) {
    this.#least = options.keepReady ?? (empty && options.allowEmpty === true ? 0 : 1)
    for (const one of readings) this.#count(one, 1)
    for (const { state, reading } of wishes) if (state === 'gone') this.#count(reading, -1)
  }

  /**
   * Whether the member can be held: if so, it does not count any more. One that is gone never counted: it waits only
   * where no other member could take its new work.
   */
  take({ reading, state }: Wish): boolean {
    if (!takesWork(reading)) return true
    const left = isUnproved(reading) ? this.#good + this.#unproved : this.#good
    if (state === 'gone') return left >= this.of({ state })
    if (left - 1 < this.#least) return false
    this.#count(reading, -1)
    return true
  }

  /** How many others must be left where this one is taken. */
  of({ state }: Pick<Wish, 'state'>): number {
    return state === 'gone' ? Math.min(1, this.#least) : this.#least
  }

  get text(): string {
    const more = this.#unproved === 0 ? '' : `, ${this.#unproved} more of which no check has passed`
    return `keepReady is ${this.#least} and ${this.#good} would serve in this pool${more}`
  }

  #count(reading: PresentReading, by: 1 | -1): void {
    if (!takesWork(reading)) return
    if (isUnproved(reading)) this.#unproved += by
    else this.#good += by
  }
}

function takesWork({ serves, health, weight }: PresentReading): boolean {
  return serves && health !== 'down' && weight !== 0
}

function isUnproved({ health }: PresentReading): boolean {
  return health === 'unknown'
}
