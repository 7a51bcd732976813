import { systemClock, wallOf } from '../../provider/clock.js'
import type { DrainableProvider } from '../../provider/contract.js'
import { DrainableError, isDrainableError, isUnreachable } from '../../provider/error.js'
import type { Outcome, Why } from '../../provider/report.js'
import { CALL_LIMIT } from '../../core/balancer/look/call.js'
import { reportAll, worst } from '../../core/member/said/report.js'
import { toGiven } from '../../core/tickets/options-table.js'
import { checkTicket, type Ticket } from '../../core/tickets/ticket.js'
import type { Call } from '../../core/calls/call-options.js'
import { parsePolicy } from '../../core/calls/policy.js'
import { restoreUnder } from '../../core/calls/restore.js'
import { leastAdvanced, type StepDone, type StepStart } from '../../core/calls/steps/step-types.js'
import type { Target } from '../../core/calls/target.js'
import {
  ASK_AGAIN,
  divide,
  type Failed,
  isLeftOut,
  onParts,
  whyRefused,
  whyUnread,
} from './divide.js'
import type { Combined, Parts } from '../../core/combined.js'
import { hearAs, tagReport, tagWhy } from './tag.js'
import { joinTickets, sliceTicket, unreadIn } from './ticket.js'

const SUBJECT = 'stepDrain()'

/** One step on one balancer. */
type StepOne = Parameters<Combined['step']>[2]

/** What one step on several balancers goes on from. */
interface Begun {
  /** Where each of them goes on from. */
  readonly froms: ReadonlyMap<string, Ticket | StepStart>
  /** What those that were not read yet are pointed at. */
  readonly targets: ReadonlyMap<string, Target>
  /** Whether one that can't be read is waited for. */
  readonly waits: boolean
  /** What the ticket has of each. */
  readonly before: ReadonlyMap<string, Ticket>
  /** What the ticket says of the whole. */
  readonly head: Partial<Ticket>
  /** What those that can't be read have ended with; undefined before the deadline. */
  readonly unreadAs?: Outcome | undefined
}

/**
 * One step of a drain over several balancers: a step on each, as one. What one of them could not do stays as it is in the
 * ticket, and the others go on.
 *
 * @throws what the first failed with that is not waited for
 */
export async function stepCombined(
  provider: DrainableProvider,
  parts: Parts,
  from: Ticket | StepStart,
  call: Call,
  one: StepOne,
): Promise<StepDone> {
  const begun =
    'target' in from
      ? await firstOf(provider, parts, from, call)
      : nextOf(provider, parts, from, call)
  const { froms, targets, waits } = begun
  const { done, failed } = await onParts(froms, parts, call.signal, (part, own, key) =>
    one(part, own, hearAs(call.onEvent, key)),
  )
  const left = failed.filter(({ key, error }) => !isLeftOut(targets.get(key), parts, error))
  const refusal = 'target' in from ? undefined : left.find((each) => isRefusal(each, targets))
  const bad = left.find((each) => each !== refusal && (!waits || !isUnreachable(each.error)))
  if (bad !== undefined || done.size === 0) {
    if ('target' in from) await letGo(parts, done, call)
    throw (bad ?? failed[0])?.error
  }
  return joinSteps(begun, parts, done, left, refusal)
}

/**
 * The first step is over without a ticket: what another call of this process has left to it is put back. It has sent nothing
 * itself, whatever it intends.
 */
async function letGo(
  { all }: Parts,
  done: ReadonlyMap<string, StepDone>,
  { clock = systemClock, signal, onEvent }: Call,
): Promise<void> {
  // Why the step is over is what its caller is told, whatever becomes of this.
  await Promise.allSettled(
    [...done].map(async ([key, { step }]) => {
      const part = all.get(key)
      const ticket = {
        ...step.ticket,
        members: step.ticket.members.map((member) => ({ ...member, intended: null })),
      }
      if (part === undefined || ticket.members.every(({ set }) => set === null)) return
      const its = { ...parsePolicy({}, SUBJECT), data: ticket.policy, id: ticket.id }
      await restoreUnder(part, ticket, { ...its, clock, signal, onEvent: hearAs(onEvent, key) })
    }),
  )
}

/** @param left - those that made no step. @param refusal - the one of them that ends the drain */
function joinSteps(
  { targets, before, head, unreadAs }: Begun,
  parts: Parts,
  done: ReadonlyMap<string, StepDone>,
  left: readonly Unmade[],
  refusal: Unmade | undefined,
): StepDone {
  const keys = new Set(left.map(({ key }) => key))
  const waiting = new Map([...targets].filter(([key]) => keys.has(key)))
  const tickets = new Map(before)
  for (const [key, { step }] of done) tickets.set(key, step.ticket)
  const all = [...done.values()].map(({ step }) => step)
  const ended = all.flatMap(({ outcome }) => outcome ?? [])
  const leftAs = refusal === undefined ? unreadAs : 'refused'
  const isOver = leftAs === 'refused' || ended.length === done.size
  const outcomes = left.length > 0 ? [...ended, leftAs] : ended
  const outcome =
    isOver && outcomes.every((each) => each !== undefined) ? worst(outcomes) : undefined
  const pauses = all.filter(({ outcome }) => outcome === undefined).map(({ againIn }) => againIn)
  const soonest = Math.min(...pauses, ...(left.length > 0 ? [ASK_AGAIN] : []))
  const step = {
    ticket: joinTickets(head, tickets, waiting, parts),
    phase: left.length > 0 ? 'active' : leastAdvanced(all.map(({ phase }) => phase)),
    ...(outcome === undefined ? {} : { outcome }),
    why: [
      ...left.map((each) => whyLeft(each, targets.get(each.key), each === refusal)),
      ...[...done].flatMap(([key, { step }]) => step.why.map((why) => tagWhy(why, key))),
    ],
    againIn: Number.isFinite(soonest) ? soonest : Math.min(...all.map(({ againIn }) => againIn)),
  }
  const reports = [...done].map(([key, { report }]) => tagReport(report, key))
  const elapsed = Math.max(...reports.map((report) => report.elapsed))
  const report = reportAll(
    reports.flatMap(({ members }) => members),
    elapsed,
  )
  const error = isDrainableError(refusal?.error) ? { error: refusal.error } : {}
  return { step, report: { ...report, outcome: outcome ?? report.outcome, ...error } }
}

/** One that made no step, and why. */
type Unmade = Failed<Ticket | StepStart>

/** Whether it could not be read when the others began, and now refuses: that ends the drain, and the ticket keeps their holds. */
function isRefusal({ key, error }: Unmade, unread: ReadonlyMap<string, Target>): boolean {
  return unread.has(key) && isDrainableError(error) && !error.retryable && !isUnreachable(error)
}

function whyLeft({ key, error }: Unmade, target: Target | undefined, refuses: boolean): Why {
  return refuses ? whyRefused(key, target, error) : whyUnread(key, target, error)
}

/** Changes are only announced by a first step, so one that refuses ends it. */
async function firstOf(
  { instance }: DrainableProvider,
  parts: Parts,
  { target, policy }: StepStart,
  { clock = systemClock, signal = new AbortController().signal }: Call,
): Promise<Begun> {
  const found = { clock, signal, limit: CALL_LIMIT }
  const targets = await divide(target, parts, SUBJECT, found)
  const own = policy === undefined ? {} : { policy }
  return {
    froms: new Map([...targets].map(([key, part]) => [key, { target: part, ...own }])),
    targets,
    waits: policy?.onUnreachable === 'wait',
    before: new Map(),
    head: { instance },
  }
}

function nextOf(provider: DrainableProvider, parts: Parts, ticket: Ticket, call: Call): Begun {
  const targets = unreadIn(ticket)
  checkTicket(ticket, provider, SUBJECT, targets.size === 0)
  const before = new Map(
    [...parts.all].flatMap(([key, part]): [string, Ticket][] => {
      const own = sliceTicket(ticket, key, part)
      return own.members.length === 0 ? [] : [[key, own]]
    }),
  )
  const { id, startedAt, deadline, policy } = ticket
  const fresh = [...targets].map(([key, target]): [string, StepStart] => [
    key,
    { target, policy: { ...toGiven(policy), id } },
  ])
  const froms = new Map<string, Ticket | StepStart>([...before, ...fresh])
  if (froms.size === 0) {
    throw new DrainableError(
      'TICKET_INVALID',
      `${SUBJECT}: members: ticket '${id}' has no members: its drain did not begin, start it again`,
    )
  }
  const head = { id, instance: provider.instance, startedAt, deadline, policy }
  return { froms, targets, waits: true, before, head, unreadAs: endOfUnread(ticket, call) }
}

/** What those that can't be read have ended with: the deadline is for them too. Undefined before it. */
function endOfUnread(
  { deadline, policy }: Ticket,
  { clock = systemClock }: Call,
): Outcome | undefined {
  if (deadline === null || wallOf(clock) < Date.parse(deadline)) return undefined
  return policy.onTimeout === 'proceed' ? 'proceeded' : 'unreachable'
}
