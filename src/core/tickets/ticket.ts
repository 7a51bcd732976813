import { DrainableError } from '../../provider/error.js'
import type { DrainableProvider } from '../../provider/contract.js'
import { refKey } from '../../provider/member-ref.js'
import { issueWords } from '../../provider/describe-issue.js'
import { isPromise, readGiven } from '../../provider/options.js'
import { combinedOf } from '../combined.js'
import { ticketSchema } from './schema.js'
import type { Ticket } from './shape.js'
import { parseStored } from './store.js'

export type {
  DrainTicket,
  PolicyData,
  RollData,
  RolledServer,
  Ticket,
  TicketMember,
  TicketOwner,
  TicketPart,
} from './shape.js'

/**
 * Checks every field of a ticket from outside. Some stores give its JSON text back.
 *
 * @throws `TICKET_INVALID` naming what is wrong
 */
export function parseTicket(given: unknown, subject: string): Ticket {
  return readGiven(`${subject}: ticket`, () => toTicket(given, subject), 'TICKET_INVALID')
}

function toTicket(given: unknown, subject: string): Ticket {
  const value = isJsonText(given) ? parseStored(given) : given
  if (given === undefined || given === null) {
    const words = `${subject}: there is no ticket (found ${String(given)}): the store has none under that id, or the drain has ended and nothing is left to undo`
    throw new DrainableError('TICKET_INVALID', words)
  }
  const remedy = instead(value ?? given)
  if (remedy !== undefined) throw new DrainableError('TICKET_INVALID', `${subject}: ${remedy}`)
  refuseForm(value, subject)
  const result = ticketSchema().safeParse(value, { error: issueWords })
  if (!result.success) {
    const issue = result.error.issues[0]
    const where = issue === undefined || issue.path.length === 0 ? 'it' : issue.path.join('.')
    throw invalid(subject, `${where}: ${issue?.message ?? 'unreadable'}`)
  }
  const ticket: Ticket = result.data
  const keys = new Set(ticket.members.map((member) => refKey(member.ref)))
  if (keys.size < ticket.members.length)
    throw invalid(subject, 'members: one of them is listed twice')
  return ticket
}

/** Another version is refused with both numbers, and not for what it lacks. */
function refuseForm(value: unknown, subject: string): void {
  const { v } = value as { v?: unknown }
  if (typeof v === 'number' && v !== 1) throw invalid(subject, `v is ${v}, this version reads 1`)
}

/** Whether it is meant to be JSON, as some stores give a ticket back. */
export function isJsonText(value: unknown): value is string {
  return typeof value === 'string' && /^\s*\{/.test(value)
}

/** What was clearly given in place of a ticket, and what to do. */
function instead(value: unknown): string | undefined {
  if (isPromise(value)) return 'found a promise of a ticket: await it first'
  if (typeof value === 'string')
    return isJsonText(value)
      ? 'this is not a ticket of a drain: its text is damaged, it is not JSON'
      : "found a text, expected a ticket: give what the store has, await tickets.get('...')"
  const { get, ref, pool } = Object(value) as Readonly<Record<string, unknown>>
  if (typeof get === 'function')
    return "found a store, expected a ticket of it: await tickets.get('...')"
  return ref === undefined && pool === undefined
    ? undefined
    : 'found a member, expected a ticket: ready() opens a member without one'
}

function invalid(subject: string, what: string): DrainableError {
  return new DrainableError(
    'TICKET_INVALID',
    `${subject}: this is not a ticket of a drain (${what}), pass the value that the store or onTicket got`,
  )
}

/** The drain tickets inside a ticket: itself, or those of a roll that hold a member. */
export function drainsOf(ticket: Ticket): readonly Ticket[] {
  if (ticket.roll === undefined) return [ticket]
  return ticket.roll.servers.flatMap(({ drain }) => (drain === null ? [] : [drain as Ticket]))
}

/**
 * Refuses a drain under the id of a roll: it would overwrite the roll's undo.
 *
 * @throws `TICKET_INVALID`
 */
export function refuseRoll({ id, roll }: Ticket): void {
  if (roll === undefined) return
  throw new DrainableError(
    'TICKET_INVALID',
    `ticket '${id}' belongs to a roll: resumeRoll() continues it, restore() puts back the members that it holds; or give this drain another id`,
  )
}

/** Whether a ticket belongs to this balancer or these balancers; a combined provider can have further ones. */
export function belongsTo({ instance, parts }: Ticket, provider: DrainableProvider): boolean {
  const combined = combinedOf(provider)
  if (combined === undefined) {
    const [part, ...more] = parts
    const own = part?.name === provider.name && part.instance === provider.instance
    return own && more.length === 0 && part.balancer === null && instance === provider.instance
  }
  return parts.every(({ balancer, name, instance: of }) => {
    const part = balancer === null ? undefined : combined.all.get(balancer)
    return part?.name === name && part.instance === of
  })
}

/**
 * Checks that a ticket belongs to a balancer and, for a resume, that it has members.
 *
 * @throws `TICKET_INVALID`
 */
export function checkTicket(
  ticket: Ticket,
  provider: DrainableProvider,
  subject: string,
  needsMembers: boolean,
): void {
  if (!belongsTo(ticket, provider)) {
    throw new DrainableError(
      'TICKET_INVALID',
      `${subject}: instance, parts: ticket '${ticket.id}' belongs to ${ticket.parts.map((part) => `${part.name} ${part.instance}`).join(', ')}, this provider is ${provider.name} ${provider.instance}`,
      { provider: provider.name },
    )
  }
  if (needsMembers && ticket.roll !== undefined) {
    throw new DrainableError(
      'TICKET_INVALID',
      `${subject}: roll: ticket '${ticket.id}' belongs to a roll: resumeRoll() continues it, restore() puts back the members that it holds`,
      { provider: provider.name },
    )
  }
  if (needsMembers && ticket.members.length === 0) {
    throw new DrainableError(
      'TICKET_INVALID',
      `${subject}: members: ticket '${ticket.id}' has no members: its drain did not begin, start it again`,
      { provider: provider.name },
    )
  }
}
