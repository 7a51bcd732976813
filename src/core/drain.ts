import type { DrainableProvider, MaintEffect, Reading, Snapshot } from '../provider/contract.js'
import { DrainableError } from '../provider/error.js'
import { formatRef, refKey } from '../provider/member-ref.js'
import type { DrainReport } from '../provider/report.js'
import { firstLook } from './first-look.js'
import { refuseAtMinimum } from './guard.js'
import { DrainHandle, EventHub, type Drain } from './handle.js'
import type { Lane } from './lane.js'
import type { Ledger } from './ledger.js'
import { atLeast, initialState } from './machine/state.js'
import { parsePolicy, toMachinePolicy, type Policy, type ResolvedPolicy } from './policy.js'
import { toError } from './report.js'
import { newLedger, Session, type Prepared } from './session.js'
import { parseTarget, readingsOf, type ResolvedTarget, type Target } from './target.js'
import { parseTicket, type TicketMember } from './ticket.js'

/** Everything that can be refused is refused here, before anything is changed. */
async function prepareDrain(
  session: Session,
  provider: DrainableProvider,
  resolved: ResolvedPolicy,
  target: ResolvedTarget,
  subject: string,
): Promise<Prepared> {
  const { lane, signal, startedAt } = session
  const { data } = resolved
  const info = await lane.describe(signal)
  const { look, readings } = await firstLook(lane, target, signal)
  const maint = readings.flatMap((reading): MaintEffect[] =>
    reading.present ? [reading.maint ?? info.capabilities.maint] : [],
  )
  const policy = toMachinePolicy(data, info.capabilities, maint, subject)
  if (data.onMinimum === 'fail') checkPools(readings, look.snapshot, lane, data.keepReady)
  const ledger = newLedger(resolved, provider, lane, startedAt)
  await inheritTicket(ledger, resolved, provider, readings, session)
  const deadline = data.timeout === null ? null : startedAt + data.timeout
  const states = readings.map((reading) => initialState(reading.ref, startedAt, deadline))
  return { policy, states, ledger, first: look }
}

/** All or nothing: a drain of several members that can't finish is not begun. */
function checkPools(
  readings: readonly Reading[],
  snapshot: Snapshot,
  lane: Lane,
  keepReady: number,
): void {
  const taken: Reading[] = []
  try {
    for (const reading of readings) {
      if (!reading.present) continue
      const refused = refuseAtMinimum(reading, snapshot, lane.reservations, keepReady)
      if (refused !== undefined) throw refused
      if (!reading.serves || lane.reservations.has(reading.ref)) continue
      lane.reservations.take(reading.ref, lane.clock.now())
      taken.push(reading)
    }
  } finally {
    for (const reading of taken) lane.reservations.release(reading.ref)
  }
}

/**
 * A ticket of the same id that still holds one of our members: its undo is older than what is found
 * now, and the one to keep. Without that a second run after a crash would take "drained" for the
 * state to go back to.
 */
async function inheritTicket(
  ledger: Ledger,
  resolved: ResolvedPolicy,
  provider: DrainableProvider,
  readings: readonly Reading[],
  { lane, signal }: Session,
): Promise<void> {
  const { tickets: store, id } = resolved
  if (store === undefined || id === undefined) return
  const kept = await store.get(id)
  if (kept === undefined || kept === null) return
  const old = parseTicket(typeof kept === 'string' ? JSON.parse(kept) : kept)
  if (old.instance !== provider.instance) {
    throw new DrainableError(
      'TICKET_INVALID',
      `ticket '${id}' belongs to another balancer (${old.instance}), give this drain another id`,
    )
  }
  const members = new Map(old.members.map((member) => [refKey(member.ref), member]))
  for (const reading of readings) {
    const member = members.get(refKey(reading.ref))
    members.delete(refKey(reading.ref))
    if (member !== undefined && stillHeld(member, reading))
      ledger.inherit(refKey(reading.ref), member)
  }
  const others = [...members.values()].filter(({ changes }) => changes.length > 0)
  if (others.length === 0) return
  const found = readingsOf(
    (
      await lane.look(
        others.map((other) => other.ref),
        signal,
      )
    ).snapshot,
  )
  const left = others.find((other) => {
    const reading = found.get(refKey(other.ref))
    return reading !== undefined && stillHeld(other, reading)
  })
  if (left === undefined) return
  throw new DrainableError(
    'TICKET_INVALID',
    `ticket '${id}' still holds ${formatRef(left.ref)} and its undo would be lost: restore it first, or give this drain another id`,
    { ref: left.ref },
  )
}

/** Whether a hold that a ticket says was carried out is still found. */
function stillHeld(member: TicketMember, reading: Reading): boolean {
  if (!reading.present || member.identity !== reading.identity) return false
  const applied = member.changes.findLast(
    (change) => change.kind === 'hold' && change.state === 'applied',
  )
  return applied?.to !== undefined && atLeast(reading.own, applied.to)
}

/**
 * Starts to drain and gives a handle at once; its `done` always resolves with a report.
 *
 * After idle the handle goes on holding: it watches, and puts the drain back after a reload, until
 * it is released, restored or disposed of. It does not keep the process alive for that.
 *
 * @throws `INVALID_OPTIONS` at once; everything else is in the report
 */
export function startDrain(p: DrainableProvider, target: Target, policy: Policy = {}): Drain {
  const resolved = parsePolicy(policy, 'startDrain()')
  return openDrain(p, parseTarget(target, 'startDrain()'), resolved, 'startDrain()')
}

function openDrain(
  p: DrainableProvider,
  target: ResolvedTarget,
  resolved: ResolvedPolicy,
  subject: string,
): DrainHandle {
  const hub = new EventHub(resolved.onEvent)
  const session = new Session(p, resolved, hub, subject, (own) =>
    prepareDrain(own, p, resolved, target, subject),
  )
  return new DrainHandle(hub, session)
}

/**
 * Drains and waits. Resolves where the outcome is `idle`, `removed`, `terminated` or `proceeded`;
 * rejects with `signal.reason` on abort, and else with a {@link DrainableError} that carries the
 * report.
 *
 * @throws `INVALID_OPTIONS`, `UNSUPPORTED`, `NOT_FOUND`, `POOL_AT_MINIMUM`, `UNREACHABLE`, `CALL_TIMEOUT` before anything is changed
 * @throws `DRAIN_TIMEOUT`, `DRAIN_OVERRULED`, `MEMBER_GONE` with the report
 */
export async function drain(
  p: DrainableProvider,
  target: Target,
  policy?: Policy,
): Promise<DrainReport>
/**
 * Drains, and holds the drain, through reloads too, until the action has ended. The action runs only
 * where the outcome is `idle`, `removed`, `terminated` or `proceeded`.
 */
export async function drain<T>(
  p: DrainableProvider,
  target: Target,
  policy: Policy,
  action: (r: DrainReport) => Promise<T>,
): Promise<T>
export async function drain<T>(
  p: DrainableProvider,
  target: Target,
  policy: Policy = {},
  action?: (r: DrainReport) => Promise<T>,
): Promise<T | DrainReport> {
  const resolved = parsePolicy(policy, 'drain()')
  const handle = openDrain(p, parseTarget(target, 'drain()'), resolved, 'drain()')
  try {
    const report = await handle.done
    if (report.outcome === 'aborted' && resolved.signal?.aborted === true)
      throw resolved.signal.reason
    const error = toError(report)
    if (error !== undefined) throw error
    return action === undefined ? report : await action(report)
  } finally {
    await handle.release()
  }
}
