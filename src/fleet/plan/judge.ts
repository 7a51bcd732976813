import type { DrainableProvider, MemberRef, PresentReading } from '../../provider/contract.js'
import { toDrainableError, type DrainableError } from '../../provider/error.js'
import { formatRef, refKey } from '../../provider/member-ref.js'
import { tagError, tagReading } from '../combined/tag.js'
import { balancerOf } from '../../core/balancer/balancer.js'
import { CALL_LIMIT } from '../../core/balancer/look/call.js'
import { schedulerOf } from '../../core/balancer/look/scheduler.js'
import {
  examineDrain,
  seeCompanions,
  type DrainAsked,
  type Examined,
} from '../../core/calls/prepare-drain.js'
import { proofTime } from '../../core/calls/policy.js'

/** The judgement of the members of one balancer. */
export interface Judged extends Pick<Examined, 'policy' | 'lacks'> {
  readonly readings: readonly PresentReading[]
  /** The errors that would refuse the whole call. */
  readonly refused: readonly DrainableError[]
  /** Members that the floor would hold back, and why. */
  readonly short: ReadonlyMap<string, DrainableError>
  /** The shortest time to idle, by what the product states, in milliseconds. */
  readonly least: number
  /** How long the look took, in milliseconds. */
  readonly took: number
  /** What the balancer says for people, of itself and of the members. */
  readonly hints: readonly string[]
}

/** The input of a judgement. */
export interface Question extends DrainAsked {
  /** Which members are drained at the same time: the floor is asked for those together. */
  readonly groupOf: (ref: MemberRef) => string
}

/**
 * Checks everything that a drain checks before its first change, and changes nothing. It returns all errors that
 * would refuse the drain, not only the first.
 *
 * @throws `NOT_FOUND`, or the balancer's own error
 */
export async function judge(provider: DrainableProvider, question: Question): Promise<Judged> {
  const { resolved, subject, groupOf } = question
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
  const examined = await examineDrain(context, capabilities, question, refuse)
  const { look, readings, policy, lacks, changes } = examined
  const present = readings.filter((reading) => reading.present)
  const short = new Map<string, DrainableError>()
  for (const group of Map.groupBy(present, ({ ref }) => groupOf(ref)).values()) {
    const refs = group.map(({ ref }) => ref)
    const seen = await seeCompanions(context, look, refs)
    for (const { ref, error } of context.balancer.shortOf(refs, seen, data.keepReady))
      short.set(refKey(ref), error)
  }
  return {
    readings: present,
    policy,
    lacks,
    refused,
    short,
    least: proofTime(data, capabilities, changes),
    took: look.took,
    hints: [...hints, ...present.flatMap(hintsOf)],
  }
}

function hintsOf({ ref, hints = [], advice }: PresentReading): readonly string[] {
  const advised = advice === undefined ? [] : [`${advice.text}: ${advice.hint}`]
  return [...hints, ...advised].map((hint) => `${formatRef(ref)}: ${hint}`)
}

/** The judgement with the balancer's key, as seen behind a combined provider. */
export function tagJudged(judged: Judged, key: string): Judged {
  const readings = judged.readings.map((reading) => tagReading(reading, key) as PresentReading)
  const short = new Map<string, DrainableError>()
  for (const [n, { ref }] of judged.readings.entries()) {
    const error = judged.short.get(refKey(ref))
    const tagged = readings[n]
    if (error !== undefined && tagged !== undefined)
      short.set(refKey(tagged.ref), tagError(error, key))
  }
  return {
    ...judged,
    readings,
    short,
    lacks: judged.lacks.map((lack) => `${key}: ${lack}`),
    hints: judged.hints.map((hint) => `${key}: ${hint}`),
    refused: judged.refused.map((error) => tagError(error, key)),
  }
}
