import { pause, type Clock } from '../../provider/clock.js'
import type { DrainableProvider, MemberRef, Snapshot } from '../../provider/contract.js'
import {
  DrainableError,
  isDrainableError,
  isUnreachable,
  toDrainableError,
  wordsOf,
} from '../../provider/error.js'
import { formatRef, refKey } from '../../provider/member-ref.js'
import { printable, quote } from '../../provider/quote.js'
import type { Why } from '../../provider/report.js'
import { CALL_LIMIT, LAST_LOOK } from '../../core/balancer/look/call.js'
import { readingsOf } from '../../core/balancer/look/look.js'
import { schedulerOf } from '../../core/balancer/look/scheduler.js'
import type { Target } from '../../core/calls/target.js'
import type { Parts, Timed } from '../../core/combined.js'
import type { Call } from '../../core/calls/call-options.js'
import { bareRef, joinMissing, listKeys, tagError } from './tag.js'

/** What a combined target means for each balancer it concerns, in that balancer's own words. */
export type Divided = ReadonlyMap<string, Target>

/** How a look that finds out whose a name is may go. */
export interface FindOptions {
  readonly clock: Clock
  readonly signal: AbortSignal
  /** Milliseconds. */
  readonly limit: number
  /** Until when a balancer that can't be read is asked again, by the clock. Default: it is asked once. */
  readonly until?: number
  /** Called with why a balancer that is asked again can't be read; null once it was. */
  readonly away?: (key: string, error: DrainableError | null) => void
}

/** How soon a balancer that can't be read is asked again, in milliseconds. */
export const ASK_AGAIN = 1_000

/**
 * Divides a target among the balancers. Refs and pools that name theirs need no look; those that don't are
 * looked for on all of them, and must be on one only. An address stands for what has it on every balancer.
 *
 * @throws `INVALID_OPTIONS` for a balancer there is none of, or a name that fits several, with the keys
 * @throws `NOT_FOUND`, or what a balancer failed with that had to be asked
 */
export async function divide(
  target: Target,
  parts: Parts,
  subject: string,
  options: FindOptions,
): Promise<Divided> {
  if (Array.isArray(target))
    return divideRefs(target as readonly MemberRef[], parts, subject, options)
  const one = target as Exclude<Target, readonly MemberRef[]>
  if ('member' in one) return divideRefs([one], parts, subject, options)
  const { balancer, ...bare } = one
  if (balancer !== undefined) {
    checkKey(balancer, parts, subject)
    return new Map([[balancer, bare]])
  }
  if ('address' in bare) return new Map([...parts.all.keys()].map((key) => [key, bare]))
  const { pool } = bare
  const snapshots = await lookAtAll(parts, subject, options, 'all')
  const has = ({ readings }: Snapshot): boolean =>
    readings.some((reading) => reading.present && reading.ref.pool === pool)
  const hits = [...snapshots].flatMap(([key, snapshot]) => (has(snapshot) ? [key] : []))
  return new Map([[theOnly(hits, `pool ${quote(pool)}`, parts, subject), bare]])
}

/**
 * One call on each balancer that a target concerns, side by side. All are waited for, also where one
 * fails: nothing goes on after the call.
 *
 * @throws what the first of them failed with, and its key in front; `NOT_FOUND` where nothing is hit
 */
export async function onEach<T>(
  target: Target,
  parts: Parts,
  subject: string,
  { clock, signal = new AbortController().signal }: Pick<Call, 'signal'> & Pick<Timed, 'clock'>,
  call: (part: DrainableProvider, target: Target, key: string) => Promise<T>,
): Promise<readonly (readonly [string, T])[]> {
  const divided = await divide(target, parts, subject, { clock, signal, limit: CALL_LIMIT })
  return callEach(divided, parts, signal, call)
}

/** One call on each of the balancers, side by side; see {@link onEach}. */
export async function callEach<T, D extends Target | 'all'>(
  divided: ReadonlyMap<string, D>,
  parts: Parts,
  signal: AbortSignal,
  call: (part: DrainableProvider, target: D, key: string) => Promise<T>,
): Promise<readonly (readonly [string, T])[]> {
  const { done, failed } = await onParts(divided, parts, signal, call)
  const isMissing = ({ from, error }: Failed<D>): boolean =>
    from !== 'all' && isDrainableError(error) && isLeftOut(from, parts, error)
  const bad = failed.find((one) => !isMissing(one))
  if (bad !== undefined) throw bad.error
  if (done.size === 0 && failed.length > 0)
    throw joinMissing(failed.flatMap(({ error }) => (isDrainableError(error) ? [error] : [])))
  return [...done]
}

/** What one balancer was asked, and failed with. */
export interface Failed<D> {
  readonly key: string
  readonly from: D
  readonly error: unknown
}

/** One call on each of the balancers, in their order. All have ended, whatever one of them did. */
export async function onParts<T, D>(
  froms: ReadonlyMap<string, D>,
  { all }: Parts,
  signal: AbortSignal | undefined,
  call: (part: DrainableProvider, from: D, key: string) => Promise<T>,
): Promise<{ readonly done: ReadonlyMap<string, T>; readonly failed: readonly Failed<D>[] }> {
  const asked = [...all].flatMap(([key, part]) => {
    const from = froms.get(key)
    return from === undefined ? [] : [{ key, part, from }]
  })
  const ends = await Promise.allSettled(
    asked.map(async ({ key, part, from }) => call(part, from, key)),
  )
  signal?.throwIfAborted()
  const done = new Map<string, T>()
  const failed: Failed<D>[] = []
  for (const [n, { key, from }] of asked.entries()) {
    const end = ends[n]
    if (end?.status === 'fulfilled') done.set(key, end.value)
    else if (end !== undefined) {
      const thrown: unknown = end.reason
      failed.push({ key, from, error: isDrainableError(thrown) ? tagError(thrown, key) : thrown })
    }
  }
  return { done, failed }
}

/** Whether a balancer that has nothing of its target is left out: only an address stands for what may be there. */
export function isLeftOut(
  target: Target | undefined,
  { onMissing }: Parts,
  error: unknown,
): boolean {
  const byAddress = target !== undefined && !Array.isArray(target) && 'address' in target
  return byAddress && onMissing === 'skip' && isDrainableError(error, 'NOT_FOUND')
}

/** Why a balancer whose members are not known yet is not idle. */
export function whyUnread(key: string, target: Target | undefined, error: unknown): Why {
  return {
    code: 'unreadable',
    ref: firstOf(target, key),
    text: `${quote(key)} can't be read: ${printable(wordsOf(error))}; its load is unknown`,
    hint: 'the drain waits for it until the deadline',
  }
}

/** Why a drain ends that one balancer has refused after the others had begun. */
export function whyRefused(key: string, target: Target | undefined, error: unknown): Why {
  return {
    code: 'refused',
    ref: firstOf(target, key),
    text: `${printable(wordsOf(error))}; nothing was changed there`,
    hint: 'what the others hold is in the ticket: restore() opens it',
  }
}

/** What stands for the members of one balancer in a sentence: the first that its target names. */
function firstOf(target: Target | undefined, key: string): MemberRef {
  const first = Array.isArray(target) ? (target as readonly MemberRef[])[0] : target
  const { pool = '*', member = '*' } = (first ?? {}) as Partial<MemberRef>
  return { pool, member, balancer: key }
}

/**
 * Checks the balancers that a target names, which needs no look.
 *
 * @throws `INVALID_OPTIONS` for a balancer there is none of
 */
export function checkKeys(target: Target, parts: Parts, subject: string): void {
  const named = Array.isArray(target) ? (target as readonly MemberRef[]) : [target as MemberRef]
  for (const { balancer } of named) if (balancer !== undefined) checkKey(balancer, parts, subject)
}

function checkKey(key: string, { all }: Parts, subject: string): void {
  if (all.has(key)) return
  throw new DrainableError(
    'INVALID_OPTIONS',
    `${subject}: target: balancer: there is no '${quote(key)}', expected one of ${listKeys(all.keys())}`,
  )
}

async function divideRefs(
  refs: readonly MemberRef[],
  parts: Parts,
  subject: string,
  options: FindOptions,
): Promise<Divided> {
  const divided = new Map<string, MemberRef[]>()
  const put = (key: string, ref: MemberRef): void => {
    const own = divided.get(key) ?? []
    if (!own.some((known) => refKey(known) === refKey(ref))) own.push(ref)
    divided.set(key, own)
  }
  const open: MemberRef[] = []
  for (const ref of refs) {
    if (ref.balancer === undefined) open.push(ref)
    else {
      checkKey(ref.balancer, parts, subject)
      put(ref.balancer, bareRef(ref))
    }
  }
  if (open.length === 0) return divided
  const snapshots = await lookAtAll(parts, subject, options, open)
  for (const ref of open) {
    const hits = [...snapshots].flatMap(([key, snapshot]) =>
      readingsOf(snapshot).get(refKey(ref))?.present === true ? [key] : [],
    )
    put(theOnly(hits, formatRef(ref), parts, subject, ref), ref)
  }
  return divided
}

function theOnly(
  hits: readonly string[],
  what: string,
  { all }: Parts,
  subject: string,
  ref?: MemberRef,
): string {
  const [only, ...more] = hits
  const data = ref === undefined ? {} : { ref }
  if (only === undefined) {
    throw new DrainableError(
      'NOT_FOUND',
      `${what} was not found on any of ${listKeys(all.keys())}, check the spelling or list what there is with select(lb, 'all')`,
      data,
    )
  }
  if (more.length === 0) return only
  const remedy =
    ref === undefined
      ? `name one, as in { balancer: '${quote(only)}', ... }; a roll takes a list of those, a drain a list of refs`
      : `name one, as in { balancer: '${quote(only)}', ... }, or give a list of refs`
  throw new DrainableError(
    'INVALID_OPTIONS',
    `${subject}: target: ${what} is on several balancers: ${listKeys(hits)}; ${remedy}`,
    data,
  )
}

/** One that can't be read could have it too: then it can't be told whose a name is. */
async function lookAtAll(
  { all }: Parts,
  subject: string,
  options: FindOptions,
  refs: readonly MemberRef[] | 'all',
): Promise<ReadonlyMap<string, Snapshot>> {
  const { clock, signal, until = -Infinity, away } = options
  const look = async (key: string, provider: DrainableProvider): Promise<[string, Snapshot]> => {
    for (;;) {
      try {
        const snapshot = await lookOnce(provider, options, refs)
        away?.(key, null)
        return [key, snapshot]
      } catch (thrown) {
        signal.throwIfAborted()
        const error = tagError(toDrainableError(thrown, provider.name, subject), key)
        if (!isUnreachable(error) || !error.retryable || clock.now() >= until) {
          const words = `${error.message}; a target without balancer is looked for on all of them, name its balancer`
          const { code, cause, retryable } = error
          throw new DrainableError(code, words, { cause, retryable })
        }
        away?.(key, error)
        await pause(clock, Math.min(ASK_AGAIN, until - clock.now()), signal)
      }
    }
  }
  return new Map(await Promise.all([...all].map(([key, provider]) => look(key, provider))))
}

async function lookOnce(
  provider: DrainableProvider,
  { clock, signal, limit, until = Infinity }: FindOptions,
  refs: readonly MemberRef[] | 'all',
): Promise<Snapshot> {
  const scheduler = schedulerOf(provider, clock)
  const within = (): number => Math.min(limit, Math.max(LAST_LOOK, until - clock.now()))
  await scheduler.describe(signal, within())
  return (await scheduler.look(refs, signal, within())).snapshot
}
