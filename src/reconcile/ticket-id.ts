import { createHash } from 'node:crypto'
import type { DrainableProvider, MemberRef } from '../provider/contract.js'

/** What the ticket of a reconciler's drain begins with. */
export const TICKET_PREFIX = 'reconcile:'

/** One ticket for each member, whichever process writes it: the next controller finds what the last one held. */
export function ticketId({ name, instance }: DrainableProvider, ref: MemberRef): string {
  const text = JSON.stringify([name, instance, ref.pool, ref.member])
  return `${TICKET_PREFIX}${createHash('sha256').update(text).digest('hex').slice(0, 32)}`
}

/** Where the members are listed that we have added to a pool. No ticket's id holds a `=`. */
export function additionsKey({ name, instance }: DrainableProvider, pool: string): string {
  const text = JSON.stringify([name, instance, pool])
  return `drainable=added=${createHash('sha256').update(text).digest('hex').slice(0, 32)}`
}
