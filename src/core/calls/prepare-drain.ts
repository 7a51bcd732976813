import type { Waits } from '../../provider/abort.js'
import type {
  Capabilities,
  MaintEffect,
  MemberRef,
  Reading,
  Snapshot,
} from '../../provider/contract.js'
import { DrainableError } from '../../provider/error.js'
import { formatRef, isSameIdentity, refKey } from '../../provider/member-ref.js'
import { lacksEffect } from '../member/whose.js'
import type { Left } from '../member/input.js'
import { leftOf, mayOwe, type Owed, owedOf } from '../tickets/member.js'
import { askedFirst } from '../tickets/calls.js'
import { keptTicket } from '../tickets/read-tickets.js'
import { hasRead, readingsOf, type SeenLook } from '../balancer/look/look.js'
import type { Prepared, PreparedClaim, RunContext } from './run/run-spec.js'
import type { TicketKeeper } from '../tickets/writing/writer.js'
import { type PolicyData, refuseRoll, type Ticket } from '../tickets/ticket.js'
import { checkTimeout, lacksOf, type ResolvedPolicy, toMachinePolicy } from './policy.js'
import { pick, refuseKey, type ResolvedTarget } from './target.js'
import { quote } from '../../provider/quote.js'
import { emptyLedger, type MachinePolicy } from '../member/record.js'
import type { Scheduler } from '../balancer/look/scheduler.js'
import { notFound } from '../balancer/look/not-found.js'

/** How often members that other calls take are looked at before the floor is asked. */
const COMPANION_LOOKS = 3

/** Prepares a drain. It refuses here everything that can be refused, before anything is changed. */
export async function prepareDrain(
  context: RunContext,
  resolved: ResolvedPolicy,
  target: ResolvedTarget,
  subject: string,
  keeper: TicketKeeper,
): Promise<Prepared> {
  const { scheduler, startedAt, signal, limit } = context
  const { data } = resolved
  const { capabilities } = await scheduler.describe(signal, limit())
  checkTimeout(data, capabilities, subject)
  const asked = { resolved, target, subject, waits: keeper.waits }
  const refuse = (thrown: unknown): never => {
    throw thrown
  }
  const examined = await examineDrain(context, capabilities, asked, refuse)
  const { look, readings, policy, inherited } = examined
  const deadline = data.timeout === null ? null : startedAt + data.timeout
  const isReserved = data.onMinimum === 'fail'
  const claims = readings.map((reading) => {
    const { ref } = reading
    const floor = isReserved ? ('reserved' as const) : ('unasked' as const)
    const start = { goal: { kind: 'drain' } as const, policy, startedAt, deadline, floor }
    const owed = inherited.get(refKey(ref))
    const left = owed === undefined ? foundNow(reading, startedAt) : inheritedLeft(owed, startedAt)
    return { ref, start, left }
  })
  const refs = readings.map(({ ref }) => ref)
  const first = await seeCompanions(context, look, refs)
  if (!isReserved) return { claims, keeper, first }
  return askAll(context, { claims, keeper, first }, refs, data.keepReady)
}

/** A drain that was asked for. */
export interface DrainAsked {
  readonly resolved: ResolvedPolicy
  readonly target: ResolvedTarget
  readonly subject: string
  /** Told that the ticket store is waited for. */
  readonly waits?: Waits
}

/** What a first look shows of a drain, and of what the balancer can do for it. */
export interface Examined {
  readonly look: SeenLook
  readonly readings: readonly Reading[]
  /** The policy, as far as the balancer can follow it. */
  readonly policy: MachinePolicy
  /** The parts of the policy that the balancer can't do. */
  readonly lacks: readonly string[]
  /** The time for the changes, one after the other, as the product states it, in milliseconds. */
  readonly changes: number
  /** What an earlier ticket of the same id owes, by member. */
  readonly inherited: ReadonlyMap<string, Owed>
}

/**
 * Takes the first look at a drain, and asks what can refuse it before anything is changed, the floor aside.
 *
 * @param refuse - called with each error that refuses the drain; what it throws ends the examination
 * @throws `NOT_FOUND`, or the balancer's own error
 */
export async function examineDrain(
  context: Pick<RunContext, 'scheduler' | 'provider' | 'signal' | 'limit'>,
  capabilities: Capabilities,
  { resolved, target, subject, waits }: DrainAsked,
  refuse: (thrown: unknown) => void,
): Promise<Examined> {
  const { data } = resolved
  const attempt = async <T>(check: () => T | Promise<T>): Promise<T | undefined> => {
    try {
      return await check()
    } catch (thrown) {
      refuse(thrown)
      return undefined
    }
  }
  const { look, readings } = await firstLook(context.scheduler, target, context)
  const maint = maintOf(readings, capabilities)
  const changes = changeTimeOf(readings, { ...data, maint: capabilities.maint })
  await attempt(() => checkTimeout(data, capabilities, subject, changes))
  await attempt(() => toMachinePolicy(data, capabilities, maint, subject))
  const inherited = await attempt(() => inheritTicket(context, resolved, readings, waits))
  const lenient = { ...data, ifUnsupported: 'proceed' } as const
  return {
    look,
    readings,
    policy: toMachinePolicy(lenient, capabilities, maint, subject),
    lacks: lacksOf(data, capabilities, maint),
    changes,
    inherited: inherited ?? new Map(),
  }
}

/**
 * Asks the floor for all members or none: a drain of several members that can't finish does not begin. It is asked once more when
 * the claims are laid, so that two drains that begin in the same moment can't both find room. What a refused call has seen of
 * members that others drain is theirs.
 */
async function askAll(
  context: RunContext,
  prepared: Prepared & { readonly first: SeenLook },
  refs: readonly MemberRef[],
  keepReady: number,
): Promise<Prepared> {
  let { first } = prepared
  for (;;) {
    const denied = context.balancer.shortOf(refs, first, keepReady)[0]
    if (denied === undefined) break
    // Other drains began during that look, so ask again; the time for preparing bounds the loop.
    if (denied.isFinal) {
      context.scheduler.share(first)
      throw denied.error
    }
    first = await seeCompanions(context, first, refs)
  }
  const last = (): void => {
    const denied = context.balancer.shortOf(refs, first, keepReady)[0]
    if (denied !== undefined) throw denied.error
  }
  return { ...prepared, first, last }
}

/** Takes a look that includes the members that other calls take. */
export async function seeCompanions(
  {
    scheduler,
    balancer,
    signal,
    limit,
  }: Pick<RunContext, 'scheduler' | 'balancer' | 'signal' | 'limit'>,
  first: SeenLook,
  refs: readonly MemberRef[],
): Promise<SeenLook> {
  let look = first
  for (let i = 0; i < COMPANION_LOOKS; i += 1) {
    const seen = look
    const companions = balancer.companions(refs)
    if (companions.every((ref) => hasRead(seen, ref))) break
    look = await scheduler.look([...refs, ...companions], signal, limit())
  }
  return look
}

/** Keeps the undo of an earlier run: it is older than the state found now, so it is the one to go back to. */
function inheritedLeft({ member, own, held }: Owed, now: number): Left {
  const { ledger } = leftOf(member, now)
  const late = ledger.late.map((one) =>
    own !== 'unknown' && lacksEffect(one.change, own) ? { ...one, lacked: { at: now, own } } : one,
  )
  const kept = held ? {} : { set: null, earlier: [], doubted: [] }
  return { ledger: { ...ledger, ...kept, late } }
}

/** The effect of maint on the members that were found. */
function maintOf(readings: readonly Reading[], capabilities: Capabilities): readonly MaintEffect[] {
  return readings.flatMap((reading) =>
    reading.present ? [reading.maint ?? capabilities.maint] : [],
  )
}

/** The time for the changes, one after the other, as the product states it, in milliseconds. */
function changeTimeOf(
  readings: readonly Reading[],
  policy: Pick<PolicyData, 'hold' | 'seal'> & Pick<Capabilities, 'maint'>,
): number {
  return readings.reduce((sum, reading) => sum + changesOf(reading, policy), 0)
}

/** The time for the hold, and the seal if there is one, of one member, in milliseconds. */
function changesOf(
  reading: Reading,
  { hold, seal, maint }: Parameters<typeof changeTimeOf>[1],
): number {
  if (!reading.present || reading.own === 'maint') return 0
  const { changeTime = 0, own } = reading
  if (!Number.isFinite(changeTime) || changeTime < 0) return 0
  const seals = seal ?? (reading.maint ?? maint) === 'gentle'
  const times = (own === hold ? 0 : 1) + (seals && hold === 'drain' ? 1 : 0)
  return times * changeTime
}

/**
 * Takes over a ticket of the same id that holds, or may hold, one of our members. Otherwise a second run after a
 * crash would take "drained" for the state to go back to, and would not know of a hold that takes effect late.
 */
async function inheritTicket(
  {
    scheduler,
    provider,
    signal,
    limit,
  }: Pick<RunContext, 'scheduler' | 'provider' | 'signal' | 'limit'>,
  resolved: ResolvedPolicy,
  readings: readonly Reading[],
  waits?: Waits,
): Promise<ReadonlyMap<string, Owed>> {
  const inherited = new Map<string, Owed>()
  const { tickets: store, whole, id } = resolved
  if (id === undefined) return inherited
  const asked = askedFirst({ clock: scheduler.clock, signal, limit: limit(), waits })
  const kept = (): Promise<Ticket | undefined> | undefined =>
    whole === undefined ? store && keptTicket(store, id, asked) : whole.earlier?.(asked)
  const old = resolved.earlier === undefined ? await kept() : resolved.earlier()
  if (old === undefined) return inherited
  if (old.instance !== provider.instance) throw ofAnother(old)
  refuseRoll(old)
  const members = new Map(old.members.map((member) => [refKey(member.ref), member]))
  for (const reading of readings) {
    const key = refKey(reading.ref)
    const member = members.get(key)
    members.delete(key)
    const owed = member === undefined ? undefined : owedOf(member, reading)
    if (owed !== undefined) inherited.set(key, owed)
  }
  const others = [...members.values()].filter(mayOwe)
  if (others.length === 0) return inherited
  const look = await scheduler.look(
    others.map((other) => other.ref),
    signal,
    limit(),
  )
  const found = readingsOf(look.snapshot)
  const left = others.find((other) => {
    const reading = found.get(refKey(other.ref))
    return reading !== undefined && owedOf(other, reading) !== undefined
  })
  if (left === undefined) return inherited
  throw undoLost(old, left.ref)
}

/** The error of a drain whose id is that of a ticket of another balancer. */
export function ofAnother({ id, instance }: Ticket): DrainableError {
  const words = `ticket '${id}' belongs to another balancer (${quote(instance)}), give this drain another id`
  return new DrainableError('TICKET_INVALID', words)
}

/** The error of a drain whose id is that of a ticket which holds a member that the drain is not about. */
export function undoLost({ id }: Ticket, ref: MemberRef): DrainableError {
  const words = `ticket '${id}' still holds ${formatRef(ref)} and its undo would be lost: restore it first, or give this drain another id`
  return new DrainableError('TICKET_INVALID', words, { ref })
}

/**
 * Takes the first look at a target: returns the members that it matches, and the look itself.
 *
 * @throws `NOT_FOUND` if nothing matches, `INVALID_OPTIONS` if the target names a balancer, or the balancer's own error
 */
export async function firstLook(
  scheduler: Scheduler,
  target: ResolvedTarget,
  { signal, limit }: Pick<RunContext, 'signal' | 'limit'>,
): Promise<{ readonly look: SeenLook; readonly readings: readonly Reading[] }> {
  if (target.kind === 'members' && target.planned !== undefined) {
    const { look, identity } = target.planned
    const hit = pick(target, look.snapshot)
    if ('missing' in hit) throw notFound(hit.missing, look.snapshot)
    const { readings } = hit
    for (const reading of readings) checkIdentity(reading, identity)
    return { look, readings }
  }
  refuseKey(target)
  const refs = await refsOf(scheduler, target, signal, limit())
  const look = await scheduler.look(refs, signal, limit())
  const hit = pick(target, look.snapshot)
  if ('readings' in hit) return { look, readings: hit.readings }
  const all = refs === 'all' ? undefined : await lookAtAll(scheduler, signal, limit())
  throw notFound(hit.missing, look.snapshot, all)
}

/** Takes one more look, only for the message: to suggest the name that was probably meant. */
async function lookAtAll(
  scheduler: Scheduler,
  signal: AbortSignal,
  limit: number,
): Promise<Snapshot | undefined> {
  try {
    return (await scheduler.look('all', signal, limit)).snapshot
  } catch {
    signal.throwIfAborted()
    return undefined
  }
}

/** Refuses a member whose name belongs to another server since the plan: the plan did not decide about that one. */
function checkIdentity(reading: Reading, identity: string | undefined): void {
  if (identity === undefined || !reading.present) return
  if (isSameIdentity(reading.identity, identity)) return
  const { ref } = reading
  throw new DrainableError(
    'CONFLICT',
    `${formatRef(ref)} is another member now: ${quote(reading.identity)}, and not ${quote(identity)}; nothing was changed, plan again`,
    { ref, retryable: true },
  )
}

async function refsOf(
  scheduler: Scheduler,
  target: ResolvedTarget,
  signal: AbortSignal,
  limit: number,
): Promise<readonly MemberRef[] | 'all'> {
  if (target.kind === 'members') return target.refs
  if (target.address === undefined) return 'all'
  return (await scheduler.find(target.address, signal, limit)) ?? 'all'
}

/**
 * The member that is meant. A record that waits for a lost change of ours may be of an earlier member with this name: then it
 * says nothing of this one.
 */
export function foundNow(reading: Reading, now: number): Left | undefined {
  if (!reading.present) return undefined
  const { identity, own, serves, native = null } = reading
  return { ledger: { ...emptyLedger(now), found: { identity, own, serves, native } } }
}

/** Claims on members as the first look found them. */
export function claimsOn(
  readings: readonly Reading[],
  start: PreparedClaim['start'],
): readonly PreparedClaim[] {
  return readings.map((reading) => {
    return { ref: reading.ref, start, left: foundNow(reading, start.startedAt) }
  })
}
