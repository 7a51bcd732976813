import type { DrainableProvider, MemberRef, PresentReading } from '../../provider/contract.js'
import { isUnreachable, toDrainableError, type DrainableError } from '../../provider/error.js'
import { formatRef, refKey } from '../../provider/member-ref.js'
import { balancerOf } from '../../core/balancer/balancer.js'
import { CALL_LIMIT } from '../../core/balancer/look/call.js'
import { schedulerOf } from '../../core/balancer/look/scheduler.js'
import { proofTime, type ResolvedPolicy } from '../../core/calls/policy.js'
import { examineDrain, seeCompanions, type DrainAsked } from '../../core/calls/prepare-drain.js'
import { parseTarget, type Target } from '../../core/calls/target.js'
import { combinedOf, type Parts } from '../../core/combined.js'
import type { MachinePolicy } from '../../core/member/record.js'
import { askedFirst } from '../../core/tickets/calls.js'
import type { WholeTicket } from '../../core/tickets/writing/writer.js'
import { checkEarlier } from '../combined/drain.js'
import { onEach } from '../combined/divide.js'
import { tagError, tagReading, tagRef } from '../combined/tag.js'
import { SharedTicket } from '../combined/ticket.js'

/** One member of a target. */
export interface JudgedMember {
  readonly reading: PresentReading
  /** Why the floor would hold it back. */
  readonly short: DrainableError | undefined
  /** The policy, as far as its balancer can follow it. */
  readonly policy: MachinePolicy
  /** The shortest time to idle, by what its balancer states, in milliseconds. */
  readonly least: number
}

/** What is known about a target, on however many balancers it has members. */
export interface Judgement {
  readonly members: readonly JudgedMember[]
  /** The errors that would refuse the whole call. */
  readonly refused: readonly DrainableError[]
  /** Errors of balancers that could not be read and that the drain itself would wait for. */
  readonly away: readonly DrainableError[]
  /** The parts of the policy that a balancer can't do. */
  readonly lacks: readonly string[]
  /** What a balancer says for people, of itself and of the members. */
  readonly hints: readonly string[]
  /** How long the slowest look took, in milliseconds. */
  readonly took: number
}

/** Which members are drained at the same time: the floor is asked for those together. */
type GroupOf = (ref: MemberRef) => string

/**
 * Checks everything that a drain checks before its first change, on each balancer that a target concerns, and changes
 * nothing. It gives all errors that would refuse the drain, not only the first.
 *
 * @throws `NOT_FOUND`, or the error of a balancer that the drain would not wait for
 */
export async function judge(
  provider: DrainableProvider,
  target: Target,
  resolved: ResolvedPolicy,
  groupOf: GroupOf,
  subject: string,
): Promise<Judgement> {
  const parts = combinedOf(provider)
  /** Asks one, which may be unreadable where the drain would wait for it. */
  const ask = async (
    part: DrainableProvider,
    asked: DrainAsked,
    of: GroupOf,
  ): Promise<Judgement> => {
    try {
      return await judgeOne(part, asked, of)
    } catch (thrown) {
      resolved.signal?.throwIfAborted()
      const error = toDrainableError(thrown, part.name, subject)
      if (resolved.data.onUnreachable !== 'wait' || !isUnreachable(error)) throw error
      return { ...NOTHING, away: [error] }
    }
  }
  if (parts === undefined)
    return ask(provider, { target: parseTarget(target, subject), resolved, subject }, groupOf)
  const partOf = partsOfTicket(provider, parts, resolved)
  const answers = await onEach(target, parts, subject, resolved, (part, own, key) => {
    const its = { ...resolved, tickets: undefined, whole: partOf(key, part) }
    const asked = { target: parseTarget(own, subject), resolved: its, subject }
    return ask(part, asked, (ref) => groupOf(tagRef(ref, key)))
  })
  const together = await earlierOf(resolved, new Set(answers.map(([key]) => key)), provider)
  return join([
    { ...NOTHING, refused: together },
    ...answers.map(([key, one]) => tagJudgement(one, key)),
  ])
}

const NOTHING: Judgement = { members: [], refused: [], away: [], lacks: [], hints: [], took: 0 }

function join(all: readonly Judgement[]): Judgement {
  return {
    members: all.flatMap(({ members }) => members),
    refused: all.flatMap(({ refused }) => refused),
    away: all.flatMap(({ away }) => away),
    lacks: all.flatMap(({ lacks }) => lacks),
    hints: all.flatMap(({ hints }) => hints),
    took: Math.max(...all.map(({ took }) => took)),
  }
}

/** The judgement with its balancer's key, as it reads behind a combined provider. */
function tagJudgement(judgement: Judgement, key: string): Judgement {
  const error = (one: DrainableError): DrainableError => tagError(one, key)
  const words = (text: string): string => `${key}: ${text}`
  return {
    members: judgement.members.map((member) => ({
      ...member,
      reading: tagReading(member.reading, key),
      short: member.short && error(member.short),
    })),
    refused: judgement.refused.map(error),
    away: judgement.away.map(error),
    lacks: judgement.lacks.map(words),
    hints: judgement.hints.map(words),
    took: judgement.took,
  }
}

/** @throws `NOT_FOUND`, or the balancer's own error */
async function judgeOne(
  provider: DrainableProvider,
  asked: DrainAsked,
  groupOf: GroupOf,
): Promise<Judgement> {
  const { resolved, subject } = asked
  const { clock, data } = resolved
  const scheduler = schedulerOf(provider, clock)
  const signal = resolved.signal ?? new AbortController().signal
  const limit = (): number => Math.min(CALL_LIMIT, data.timeout ?? Infinity)
  const { capabilities, hints = [] } = await scheduler.describe(signal, limit())
  const refused: DrainableError[] = []
  const refuse = (thrown: unknown): void => {
    signal.throwIfAborted()
    refused.push(toDrainableError(thrown, provider.name, subject))
  }
  const context = { scheduler, balancer: balancerOf(provider, clock), provider, signal, limit }
  const examined = await examineDrain(context, capabilities, asked, refuse)
  const { look, policy, lacks, changes } = examined
  const present = examined.readings.filter((reading) => reading.present)
  const short = new Map<string, DrainableError>()
  for (const group of Map.groupBy(present, ({ ref }) => groupOf(ref)).values()) {
    const refs = group.map(({ ref }) => ref)
    const seen = await seeCompanions(context, look, refs)
    for (const { ref, error } of context.balancer.shortOf(refs, seen, data.keepReady))
      short.set(refKey(ref), error)
  }
  const least = proofTime(data, capabilities, changes)
  return {
    members: present.map((reading) => ({
      reading,
      short: short.get(refKey(reading.ref)),
      policy,
      least,
    })),
    refused,
    away: [],
    lacks,
    hints: [...hints, ...present.flatMap(hintsOf)],
    took: look.took,
  }
}

function hintsOf({ ref, hints = [], advice }: PresentReading): readonly string[] {
  const advised = advice === undefined ? [] : [`${advice.text}: ${advice.hint}`]
  return [...hints, ...advised].map((hint) => `${formatRef(ref)}: ${hint}`)
}

/** Each part reads its own part of the shared ticket. */
function partsOfTicket(
  provider: DrainableProvider,
  parts: Parts,
  { tickets: store, id, clock }: ResolvedPolicy,
): (key: string, part: DrainableProvider) => WholeTicket | undefined {
  if (store === undefined || id === undefined) return () => undefined
  const shared = new SharedTicket({ id, provider, parts, store, clock })
  return (key, part) => shared.part(key, part)
}

async function earlierOf(
  resolved: ResolvedPolicy,
  keys: ReadonlySet<string>,
  provider: DrainableProvider,
): Promise<readonly DrainableError[]> {
  try {
    await checkEarlier(resolved, keys, provider, askedFirst(resolved))
    return []
  } catch (thrown) {
    return [toDrainableError(thrown, provider.name, 'plan()')]
  }
}
