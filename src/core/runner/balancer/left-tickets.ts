import { settledWithin } from '../../../provider/abort.js'
import type { DrainableProvider, MemberRef } from '../../../provider/contract.js'
import type { Clock } from '../../../provider/clock.js'
import { refKey } from '../../../provider/member-ref.js'
import { LATER_ANSWER } from '../../tickets/calls.js'

/** A ticket that an ended drain of this process has left in its store. */
interface LeftTicket {
  /** Its members that were not opened since. */
  readonly closed: Set<string>
  /** The drain that left it. */
  readonly by: object
  readonly drop: () => Promise<void>
}

/** Others open members too, and nothing here tells of that: the oldest tickets are left to them. */
const MOST = 1_000

/** By balancer and id. */
const LEFT = Symbol.for('drainable.left-tickets.1')

/** Copies of this module share it. */
function kept(): Map<string, LeftTicket> {
  const holder = globalThis as unknown as Record<symbol, Map<string, LeftTicket> | undefined>
  return (holder[LEFT] ??= new Map<string, LeftTicket>())
}

function prefixOf({ name, instance }: DrainableProvider): string {
  return `${name}\0${instance}\0`
}

/** Called when a drain has its outcome and its ticket stays, and when it lets go of its members. */
export function leaveTicketBehind(
  provider: DrainableProvider,
  id: string,
  refs: readonly MemberRef[],
  { by, drop }: Omit<LeftTicket, 'closed'>,
): void {
  const left = kept()
  const key = prefixOf(provider) + id
  if (left.get(key)?.by === by) return
  left.delete(key)
  left.set(key, { closed: new Set(refs.map(refKey)), by, drop })
  for (const oldest of left.keys()) {
    if (left.size <= MOST) break
    left.delete(oldest)
  }
}

/** Called when a ticket is deleted. */
export function forgetTicket(provider: DrainableProvider, id: string): void {
  kept().delete(prefixOf(provider) + id)
}

/**
 * Called when `ready()` has opened members: a ticket of which all members were opened has nothing to undo any more. It is
 * deleted, because whoever closes a member later would be taken for the drain of the ticket.
 */
export async function closeOpened(
  provider: DrainableProvider,
  refs: readonly MemberRef[],
  clock: Clock,
): Promise<void> {
  const prefix = prefixOf(provider)
  const over: LeftTicket[] = []
  for (const [key, ticket] of kept()) {
    if (!key.startsWith(prefix)) continue
    for (const ref of refs) ticket.closed.delete(refKey(ref))
    if (ticket.closed.size > 0) continue
    kept().delete(key)
    over.push(ticket)
  }
  const dropped = Promise.all(over.map(({ drop }) => drop()))
  if (over.length > 0) await settledWithin(dropped, clock, LATER_ANSWER)
}
