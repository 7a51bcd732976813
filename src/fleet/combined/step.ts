import { systemClock, wallOf } from '../../provider/clock.js'
import type { DrainableProvider } from '../../provider/contract.js'
import { DrainableError, isUnreachable } from '../../provider/error.js'
import type { Outcome, Why } from '../../provider/report.js'
import { CALL_LIMIT } from '../../core/balancer/look/call.js'
import { worst } from '../../core/member/said/report.js'
import { toGiven } from '../../core/tickets/options-table.js'
import { checkTicket, type Ticket } from '../../core/tickets/ticket.js'
import type { Call } from '../../core/calls/call-options.js'
import { leastAdvanced, type DrainStep, type StepStart } from '../../core/calls/steps/step-types.js'
import type { Target } from '../../core/calls/target.js'
import { ASK_AGAIN, divide, isLeftOut, onParts, whyUnread } from './divide.js'
import type { Combined, Parts } from '../../core/combined.js'
import { hearAs, tagWhy } from './tag.js'
import { joinTickets, sliceTicket } from './ticket.js'

/** One step on one balancer. */
type StepOne = Parameters<Combined['step']>[2]

/** The first step of a drain over several balancers: changes are only announced, so one that refuses ends it. */
export async function beginCombined(
  provider: DrainableProvider,
  parts: Parts,
  { target, policy }: StepStart,
  call: Call,
  step: StepOne,
): Promise<DrainStep> {
  const { clock = systemClock, signal = new AbortController().signal } = call
  const found = { clock, signal, limit: CALL_LIMIT }
  const divided = await divide(target, parts, 'stepDrain()', found)
  const own = policy === undefined ? {} : { policy }
  const froms = new Map([...divided].map(([key, part]) => [key, { target: part, ...own }]))
  const waits = policy?.onUnreachable === 'wait'
  const stepped = await stepEach({ parts, froms, targets: divided, waits }, call, step)
  return joinSteps({ instance: provider.instance }, stepped, new Map(), parts)
}

/** One more step. What one balancer could not do stays as it is in the ticket; the others go on. */
export async function stepCombined(
  provider: DrainableProvider,
  parts: Parts,
  ticket: Ticket,
  call: Call,
  step: StepOne,
): Promise<DrainStep> {
  const waiting = new Map(
    ticket.parts.flatMap(({ balancer, target }): [string, Target][] =>
      balancer === null || target === undefined ? [] : [[balancer, target]],
    ),
  )
  checkTicket(ticket, provider, 'stepDrain()', waiting.size === 0)
  const slices = new Map(
    [...parts.all].flatMap(([key, part]): [string, Ticket][] => {
      const own = sliceTicket(ticket, key, part)
      return own.members.length === 0 ? [] : [[key, own]]
    }),
  )
  const froms = new Map<string, Ticket | StepStart>(slices)
  for (const [key, target] of waiting) {
    froms.set(key, { target, policy: { ...toGiven(ticket.policy), id: ticket.id } })
  }
  if (froms.size === 0) {
    throw new DrainableError(
      'TICKET_INVALID',
      `stepDrain(): members: ticket '${ticket.id}' has no members: its drain did not begin, start it again`,
    )
  }
  const stepped = await stepEach({ parts, froms, targets: waiting, waits: true }, call, step)
  const { id, startedAt, deadline, policy } = ticket
  const head = { id, instance: provider.instance, startedAt, deadline, policy }
  return joinSteps(head, stepped, slices, parts, endOfUnread(ticket, call))
}

/** What one step was on each balancer. */
interface Stepped {
  readonly done: ReadonlyMap<string, DrainStep>
  /** What those that were not read yet are pointed at. */
  readonly waiting: ReadonlyMap<string, Target>
  /** Why those that failed can't be read. */
  readonly unread: readonly Why[]
}

/**
 * @param asked - where each goes on from, what those that were not read yet are pointed at, and whether one that can't be read
 *   is waited for
 * @throws what the first failed with that is not waited for
 */
async function stepEach(
  asked: {
    readonly parts: Parts
    readonly froms: ReadonlyMap<string, Ticket | StepStart>
    readonly targets: ReadonlyMap<string, Target>
    readonly waits: boolean
  },
  { signal, onEvent }: Call,
  step: StepOne,
): Promise<Stepped> {
  const { parts, froms, targets, waits } = asked
  const { done, failed } = await onParts(froms, parts, signal, (part, from, key) =>
    step(part, from, hearAs(onEvent, key)),
  )
  const left = failed.filter(({ key, error }) => !isLeftOut(targets.get(key), parts, error))
  const bad = left.find(({ error }) => !waits || !isUnreachable(error))
  if (bad !== undefined || done.size === 0) throw (bad ?? failed[0])?.error
  const keys = new Set(left.map(({ key }) => key))
  return {
    done,
    waiting: new Map([...targets].filter(([key]) => keys.has(key))),
    unread: left.map(({ key, error }) => whyUnread(key, targets.get(key), error)),
  }
}

/** What those that can't be read have ended with: the deadline is for them too. Undefined before it. */
function endOfUnread(
  { deadline, policy }: Ticket,
  { clock = systemClock }: Call,
): Outcome | undefined {
  if (deadline === null || wallOf(clock) < Date.parse(deadline)) return undefined
  return policy.onTimeout === 'proceed' ? 'proceeded' : 'unreachable'
}

function joinSteps(
  head: Partial<Ticket>,
  { done: steps, waiting, unread }: Stepped,
  before: ReadonlyMap<string, Ticket>,
  parts: Parts,
  unreadAs?: Outcome,
): DrainStep {
  const tickets = new Map(before)
  for (const [key, { ticket }] of steps) tickets.set(key, ticket)
  const all = [...steps.values()]
  const ended = all.flatMap(({ outcome }) => (outcome === undefined ? [] : [outcome]))
  const waits = unread.length > 0 || waiting.size > 0
  const outcomes = waits && unreadAs !== undefined ? [...ended, unreadAs] : ended
  const done = (!waits || unreadAs !== undefined) && ended.length === steps.size
  const pauses = all.filter(({ outcome }) => outcome === undefined).map(({ againIn }) => againIn)
  const soonest = Math.min(...pauses, ...(unread.length > 0 ? [ASK_AGAIN] : []))
  return {
    ticket: joinTickets(head, tickets, waiting, parts),
    phase: unread.length > 0 ? 'active' : leastAdvanced(all.map(({ phase }) => phase)),
    ...(done ? { outcome: worst(outcomes) } : {}),
    why: [
      ...unread,
      ...[...steps].flatMap(([key, { why }]) => why.map((each) => tagWhy(each, key))),
    ],
    againIn: Number.isFinite(soonest) ? soonest : Math.min(...all.map(({ againIn }) => againIn)),
  }
}
