import { DrainableError } from '../../../provider/error.js'
import type { DrainableProvider } from '../../../provider/contract.js'
import { isPromise } from '../../../provider/options.js'
import { quote } from '../../../provider/quote.js'
import {
  checkTicket,
  isJsonText,
  parseTicket,
  type Ticket,
  type TicketMember,
} from '../../tickets/ticket.js'
import { claimsOf, deadlineOf, wallOffsetOf } from '../drain-run.js'
import { parsePolicy, toResumedPolicy, type ResolvedPolicy } from '../policy.js'
import { prepareDrain } from '../prepare-drain.js'
import type { Prepared, RunContext, RunSpec } from '../run/run-spec.js'
import { parseTarget } from '../target.js'
import type { StepStart } from './step-types.js'

/** What a step was given: a ticket, or what to drain and how. */
export function parseFrom(from: unknown, subject: string): Ticket | StepStart {
  if (isJsonText(from) || isPromise(from)) return parseTicket(from, subject)
  if (typeof from !== 'object' || from === null || Array.isArray(from)) {
    throw new DrainableError(
      'INVALID_OPTIONS',
      `${subject}: from: expected a ticket or { target, policy? }, found ${Array.isArray(from) ? 'a list' : quote(String(from), 40)}`,
    )
  }
  if (!('target' in from) && ('pool' in from || 'address' in from)) {
    throw new DrainableError(
      'INVALID_OPTIONS',
      `${subject}: from: expected a ticket or { target, policy? }, found a target alone: write { target: ... }`,
    )
  }
  const isStart = 'policy' in from && !('v' in from) && !('members' in from)
  if (!('target' in from) && isStart) {
    throw new DrainableError(
      'INVALID_OPTIONS',
      `${subject}: from: target is missing: write { target: { pool, member }, policy }`,
    )
  }
  if (!('target' in from)) return parseTicket(from, subject)
  const unknown = Object.keys(from).filter((key) => key !== 'target' && key !== 'policy')
  if (unknown.length === 0) {
    refuseOfCall((from as Partial<StepStart>).policy, subject)
    return from as StepStart
  }
  throw new DrainableError(
    'INVALID_OPTIONS',
    `${subject}: unknown option ${unknown.map((key) => `'${key}'`).join(', ')} beside target, expected { target, policy? }`,
  )
}

/** What is a step's own, and would be given to no step but the first by a policy: said, and never ignored. */
function refuseOfCall(policy: unknown, subject: string): void {
  const given = Object(policy) as Partial<Record<string, unknown>>
  const own = ['signal', 'clock', 'onEvent', 'pace', 'tickets', 'onTicket']
  const words = own
    .filter((key) => given[key] !== undefined)
    .map((key) => `policy.${key}: give it to each step: stepDrain(lb, from, { ${key} })`)
  if (words.length > 0)
    throw new DrainableError('INVALID_OPTIONS', `${subject}: ${words.join('; ')}`)
}

/** What a step begins with: a target, or a ticket. */
export interface StepFrom {
  readonly resolved: ResolvedPolicy
  readonly ticket: Ticket | undefined
  readonly prepare: (
    context: RunContext,
    resolved: ResolvedPolicy,
    keeper: ReturnType<RunSpec['keeper']>,
  ) => Promise<Prepared>
}

export function startOf(start: StepStart, subject: string): StepFrom {
  const target = parseTarget(start.target, subject)
  return {
    resolved: policyOf(start, subject),
    ticket: undefined,
    prepare: (context, its, keeper) => prepareDrain(context, its, target, subject, keeper),
  }
}

export function policyOf({ policy }: StepStart, subject: string): ResolvedPolicy {
  return parsePolicy(policy === undefined ? {} : policy, subject)
}

export function ticketOf(ticket: Ticket, provider: DrainableProvider, subject: string): StepFrom {
  checkTicket(ticket, provider, subject, true)
  return {
    resolved: { ...parsePolicy({}, subject), data: ticket.policy, id: ticket.id },
    ticket,
    prepare: async ({ scheduler, signal, limit }, resolved, keeper) => {
      const { capabilities } = await scheduler.describe(signal, limit())
      const policy = toResumedPolicy(ticket.policy, capabilities, subject)
      const { clock } = resolved
      const isKept = resolved.tickets !== undefined || resolved.onTicket !== undefined
      const known = isKept ? ticket : { ...ticket, members: ticket.members.map(asIntended) }
      const times = {
        now: clock.now(),
        wallOffset: wallOffsetOf(clock),
        deadline: deadlineOf(ticket, resolved),
      }
      const goal = { kind: 'drain' } as const
      return { claims: claimsOf(known, policy, { ...times, goal, isStep: true }), keeper }
    },
  }
}

/** What the last step only intended may have been sent by one that crashed. Of a hold that is known; others show what they did. */
function asIntended(member: TicketMember): TicketMember {
  return member.intended === null || member.intended.kind === 'hold'
    ? member
    : { ...member, intended: null }
}
