import type { Waits } from '../../provider/abort.js'
import type { Clock } from '../../provider/clock.js'
import type { Capabilities, MaintEffect, Reading } from '../../provider/contract.js'
import { DrainableError } from '../../provider/error.js'
import { formatRef, refKey } from '../../provider/member-ref.js'
import { lacksEffect } from '../machine/ledger/changes.js'
import { initialState, type DrainState } from '../machine/state.js'
import { askedFirst } from '../tickets/calls.js'
import { keptTicket } from '../tickets/read-tickets.js'
import { readingsOf } from '../runner/look/readings.js'
import { hasRead, type SeenLook } from '../runner/look/look.js'
import type { Denial, Floor } from '../runner/balancer/floor.js'
import type { Prepared, RunContext } from '../runner/run-spec.js'
import type { TicketKeeper } from '../tickets/writing/keeper.js'
import { owedOf, type Owed } from '../tickets/owed.js'
import { sinceSaved, thawMember } from '../tickets/thaw.js'
import { refuseRoll, type PolicyData, type Ticket } from '../tickets/ticket.js'
import { firstLook } from './first-look.js'
import { checkTimeout, toMachinePolicy, type ResolvedPolicy } from './policy.js'
import { wallOffsetOf } from './spec.js'
import type { ResolvedTarget } from './target.js'

/** How often members that other runs hold are looked at before the floor is asked. */
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
  const { data, clock } = resolved
  const info = await scheduler.describe(signal, limit())
  checkTimeout(data, info.capabilities, subject)
  const { look, readings } = await firstLook(scheduler, target, context)
  const maint = maintOf(readings, info.capabilities)
  const policy = toMachinePolicy(data, info.capabilities, maint, subject)
  const changes = changeTimeOf(readings, { ...data, maint: info.capabilities.maint })
  checkTimeout(data, info.capabilities, subject, changes)
  const inherited = await inheritTicket(context, resolved, readings, keeper.waits)
  const deadline = data.timeout === null ? null : startedAt + data.timeout
  const states = readings.map(({ ref }): DrainState => {
    const state = initialState(ref, startedAt, deadline)
    const owed = inherited.get(refKey(ref))
    return owed === undefined ? state : withLedger(state, owed, clock)
  })
  const ask = data.onMinimum === 'fail' ? askFloor : seeCompanions
  const first = await ask(context, look, readings)
  return { policy, states, keeper, first }
}

/** The effect of maint on the members that were found. */
export function maintOf(
  readings: readonly Reading[],
  capabilities: Capabilities,
): readonly MaintEffect[] {
  return readings.flatMap((reading) =>
    reading.present ? [reading.maint ?? capabilities.maint] : [],
  )
}

/** The time for the changes, one after the other, as the product states it, in milliseconds. */
export function changeTimeOf(
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
 * Asks the floor for all members or none: a drain of several members that can't finish does not begin. All places are
 * taken at once, so that two drains that begin in the same moment can't both find room.
 */
async function askFloor(
  context: RunContext,
  first: SeenLook,
  picked: readonly Reading[],
): Promise<SeenLook> {
  let look = first
  for (;;) {
    look = await seeCompanions(context, look, picked)
    const denied = takePlaces(context.floor, look, picked)
    if (denied === undefined) return look
    // Other drains began during that look, so ask again; the time for preparing bounds the loop.
    if (denied.isFinal) throw denied.error
  }
}

/** @returns the refusal if not all of them can be taken; then none is */
function takePlaces(floor: Floor, look: SeenLook, picked: readonly Reading[]): Denial | undefined {
  const readings = readingsOf(look.snapshot)
  const taken: Reading[] = []
  for (const { ref } of picked) {
    const reading = readings.get(refKey(ref))
    if (reading?.present !== true) continue
    const denied = floor.ask(reading, look)
    if (denied === undefined) taken.push(reading)
    else {
      for (const { ref: given } of taken) floor.withdraw(given)
      return denied
    }
  }
  return undefined
}

/** Takes a look that includes the members other runs hold. */
export async function seeCompanions(
  { scheduler, floor, signal, limit }: Pick<RunContext, 'scheduler' | 'floor' | 'signal' | 'limit'>,
  first: SeenLook,
  picked: readonly Reading[],
): Promise<SeenLook> {
  const refs = picked.map(({ ref }) => ref)
  let look = first
  for (let i = 0; i < COMPANION_LOOKS; i += 1) {
    const seen = look
    const companions = floor.companions(refs)
    if (companions.every((ref) => hasRead(seen, ref))) break
    look = await scheduler.look([...refs, ...companions], signal, limit())
  }
  return look
}

/** The undo that an earlier ticket of the same id has for a member. */
type Inherited = Owed & Pick<Ticket, 'saved'>

/** Keeps the undo of an earlier run: it is older than the state found now, so it is the one to go back to. */
function withLedger(state: DrainState, owed: Inherited, clock: Clock): DrainState {
  const { startedAt: now, goal, deadline, hold } = state
  const since = sinceSaved(owed.saved, clock)
  const options = { now, wallOffset: wallOffsetOf(clock), goal, deadline, since }
  const { found, hold: thawed } = thawMember(owed.member, options)
  const changes = owed.held ? thawed.changes : []
  const late = thawed.late.map((entry) => ({
    ...entry,
    lackedAt: lacksEffect(entry.change, owed.own) ? now : null,
  }))
  return { ...state, found, hold: { ...hold, changes, late } }
}

/**
 * Takes over a ticket of the same id that holds, or may hold, one of our members. Otherwise a second run after a
 * crash would take "drained" for the state to go back to, and would not know of a hold that takes effect late.
 */
export async function inheritTicket(
  {
    scheduler,
    provider,
    signal,
    limit,
  }: Pick<RunContext, 'scheduler' | 'provider' | 'signal' | 'limit'>,
  resolved: ResolvedPolicy,
  readings: readonly Reading[],
  waits?: Waits,
): Promise<ReadonlyMap<string, Inherited>> {
  const inherited = new Map<string, Inherited>()
  const { tickets: store, whole, id } = resolved
  if (id === undefined) return inherited
  const asked = askedFirst({ clock: scheduler.clock, signal, limit: limit(), waits })
  const old = await (whole === undefined
    ? store && keptTicket(store, id, asked)
    : whole.earlier?.(asked))
  if (old === undefined) return inherited
  if (old.instance !== provider.instance) {
    throw new DrainableError(
      'TICKET_INVALID',
      `ticket '${id}' belongs to another balancer (${old.instance}), give this drain another id`,
    )
  }
  refuseRoll(old)
  const members = new Map(old.members.map((member) => [refKey(member.ref), member]))
  for (const reading of readings) {
    const key = refKey(reading.ref)
    const member = members.get(key)
    members.delete(key)
    const owed = member === undefined ? undefined : owedOf(member, reading)
    if (owed !== undefined) inherited.set(key, { ...owed, saved: old.saved })
  }
  const others = [...members.values()].filter(({ changes }) => changes.length > 0)
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
  throw new DrainableError(
    'TICKET_INVALID',
    `ticket '${id}' still holds ${formatRef(left.ref)} and its undo would be lost: restore it first, or give this drain another id`,
    { ref: left.ref },
  )
}
