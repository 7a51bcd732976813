import type { DrainableProvider, MemberRef } from '../../provider/contract.js'
import { isUnreachable, toDrainableError, type DrainableError } from '../../provider/error.js'
import { checkEarlier } from '../combined/drain.js'
import { onEach } from '../combined/divide.js'
import { combinedOf, type Parts } from '../../core/combined.js'
import { tagError, tagRef } from '../combined/tag.js'
import { SharedTicket } from '../combined/ticket.js'
import { askedFirst } from '../../core/tickets/calls.js'
import type { WholeTicket } from '../../core/tickets/writing/writer.js'
import type { ResolvedPolicy } from '../../core/calls/policy.js'
import { parseTarget, type Target } from '../../core/calls/target.js'
import { judge, tagJudged, type Judged, type Question } from './judge.js'

/** What is known about a target on the balancers it concerns. */
export interface Verdicts {
  readonly judged: readonly Judged[]
  /** Errors of balancers that could not be read and that the drain itself would wait for. */
  readonly away: readonly DrainableError[]
  /** The errors that would refuse all of them together. */
  readonly refused: readonly DrainableError[]
}

/**
 * Asks each balancer that a target concerns.
 *
 * @param groupOf - which members are drained at the same time: the floor is asked for those together
 * @throws `NOT_FOUND`, or the error of a balancer that the drain would not wait for
 */
export async function judgeAll(
  provider: DrainableProvider,
  target: Target,
  resolved: ResolvedPolicy,
  groupOf: (ref: MemberRef) => string,
  subject: string,
): Promise<Verdicts> {
  const parts = combinedOf(provider)
  const away: DrainableError[] = []
  /** Asks one; undefined if it can't be read, and the drain would wait for it. */
  const ask = async (
    part: DrainableProvider,
    question: Question,
    tag: (error: DrainableError) => DrainableError = (error) => error,
  ): Promise<Judged | undefined> => {
    try {
      return await judge(part, question)
    } catch (thrown) {
      resolved.signal?.throwIfAborted()
      const error = toDrainableError(thrown, part.name, subject)
      if (resolved.data.onUnreachable !== 'wait' || !isUnreachable(error)) throw error
      away.push(tag(error))
      return undefined
    }
  }
  if (parts === undefined) {
    const question = { target: parseTarget(target, subject), resolved, subject, groupOf }
    const judged = await ask(provider, question)
    return { judged: judged === undefined ? [] : [judged], away, refused: [] }
  }
  const partOf = partsOfTicket(provider, parts, resolved)
  const answers = await onEach(target, parts, subject, resolved, (part, own, key) =>
    ask(
      part,
      {
        target: parseTarget(own, subject),
        resolved: { ...resolved, tickets: undefined, whole: partOf(key, part) },
        subject,
        groupOf: (ref) => groupOf(tagRef(ref, key)),
      },
      (error) => tagError(error, key),
    ),
  )
  const judged = answers.flatMap(([key, one]) => (one === undefined ? [] : [tagJudged(one, key)]))
  const refused = await earlierOf(resolved, new Set(answers.map(([key]) => key)), provider)
  return { judged, away, refused }
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
