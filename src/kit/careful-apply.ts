import { abortable } from '../provider/abort.js'
import type { CallContext, Change, ChangeResult } from '../provider/contract.js'
import { DrainableError, isClosed, toDrainableError } from '../provider/error.js'
import { formatRef, refKey } from '../provider/member-ref.js'
import {
  judge,
  judgeKind,
  type Begun,
  type CarefulAdapter,
  type ChangeOutcome,
  type Later,
  type SeenMember,
} from './change.js'
import { about, isRefusal, refusal, thrownAbout } from './errors.js'

/** How often a change is judged again because another client was faster. */
const ATTEMPTS = 5

/**
 * Applies changes by the rules that are common to all adapters; the adapter only sends them to its product.
 *
 * It looks once at all members concerned, then judges each change against its member (see `judge`) and sends it, in
 * order. If something was sent for the same member since the look, or an answer was lost, it looks again first. It
 * reports each result as soon as it is known.
 *
 * - A change that the product can't make is `UNSUPPORTED`, with the nearest alternative, without a look.
 * - After a failed look or an abort, changes that were not sent are refused.
 * - A refusal that a `Send` throws is `rejected`; any other error leaves the outcome `unknown`.
 * - Errors name the provider and the member.
 *
 * @returns one result per change, in order
 * @throws `signal.reason` unchanged, or the error of a closed provider
 *
 * @example The changes of a product that can be told two things
 * ```ts
 * import { carefulApply } from 'drainable/kit'
 * import type { CallContext, Change, ChangeResult, PresentReading } from 'drainable/provider'
 *
 * declare function read(ctx: CallContext): Promise<readonly PresentReading[]>
 * declare function tell(word: 'open' | 'shut', id: string): Promise<void>
 *
 * export function apply(changes: readonly Change[], ctx: CallContext): Promise<readonly ChangeResult[]> {
 *   return carefulApply(
 *     {
 *       provider: 'doors',
 *       async look() {
 *         const all = await read(ctx)
 *         return ({ ref }) => all.find((one) => one.ref.member === ref.member)
 *       },
 *       hold: ({ ref }) => tell('shut', ref.member),
 *       restore: ({ ref }) => tell('open', ref.member),
 *       maint: 'a door is open or shut, hold drain',
 *       terminate: 'no connection can be cut, wait',
 *       remove: 'doors are made by a joiner',
 *       add: 'doors are made by a joiner',
 *     },
 *     changes,
 *     ctx,
 *   )
 * }
 * ```
 */
export async function carefulApply<F extends SeenMember, L = never>(
  adapter: CarefulAdapter<F, L>,
  changes: readonly Change[],
  ctx: CallContext,
): Promise<readonly ChangeResult[]> {
  ctx.signal.throwIfAborted()
  const call = new Call(adapter, changes, ctx)
  const onAbort = (): void => call.giveUp()
  ctx.signal.addEventListener('abort', onAbort, { once: true })
  try {
    return await abortable(call.run(), ctx.signal)
  } finally {
    ctx.signal.removeEventListener('abort', onAbort)
  }
}

/** One change and its position in the call. */
type Place = readonly [index: number, change: Change]

class Call<F extends SeenMember, L> {
  readonly #adapter: CarefulAdapter<F, L>
  readonly #changes: readonly Change[]
  readonly #ctx: CallContext
  readonly #results = new Map<number, ChangeResult>()
  /** The positions of changes of which something may have been sent. */
  readonly #sent = new Set<number>()
  /** For begun changes: whether anything has been sent yet. */
  readonly #begun = new Map<number, () => boolean>()
  readonly #attempts = new Map<number, number>()
  #over = false

  constructor(adapter: CarefulAdapter<F, L>, changes: readonly Change[], ctx: CallContext) {
    this.#adapter = adapter
    this.#changes = changes
    this.#ctx = ctx
  }

  async run(): Promise<readonly ChangeResult[]> {
    let open: readonly Place[] = [...this.#changes.entries()].filter((place) => {
      const refused = judgeKind(place[1], this.#adapter)
      if (refused !== undefined) this.#end(place, refused)
      return refused === undefined
    })
    while (open.length > 0) {
      const found = await this.#look(open)
      open = found === undefined ? [] : await this.#round(open, found)
      this.#ctx.signal.throwIfAborted()
    }
    return this.#changes.map(({ ref }, i) => this.#results.get(i) ?? noResult(ref, this.#adapter))
  }

  /** The caller has given up: refuses unsent changes before the call ends. */
  giveUp(): void {
    const cause: unknown = this.#ctx.signal.reason
    for (const place of this.#changes.entries()) {
      const [i, { ref }] = place
      if (this.#wasSent(i) || this.#results.has(i)) continue
      const words = `${formatRef(ref)}: the call was given up before the change was sent`
      const { provider } = this.#adapter
      const error = new DrainableError('CALL_TIMEOUT', words, { provider, ref, cause })
      this.#hand(place, { ref, status: 'rejected', error })
    }
    this.#over = true
  }

  #wasSent(i: number): boolean {
    return this.#sent.has(i) && this.#begun.get(i)?.() !== false
  }

  /** Takes one look for all of them. If it fails, they are refused, because nothing was sent. */
  async #look(open: readonly Place[]): Promise<((change: Change) => F | undefined) | undefined> {
    const { provider } = this.#adapter
    try {
      const changes = open.map(([, change]) => change)
      const found = await this.#adapter.look(changes, this.#ctx)
      this.#ctx.signal.throwIfAborted()
      return found
    } catch (thrown) {
      this.#ctx.signal.throwIfAborted()
      const error = toDrainableError(thrown, provider, 'a look before a change')
      if (isClosed(error)) throw error
      const passing = error.code === 'MALFORMED_REPLY' || error.code === 'PROVIDER_FAILED'
      for (const place of open) {
        const { ref } = place[1]
        const words = `${formatRef(ref)} was not changed: ${error.message}`
        const retryable = passing || error.retryable
        const data = { provider, ref, retryable, cause: error }
        this.#end(place, {
          status: 'rejected',
          error: new DrainableError(error.code, words, data),
        })
      }
      return undefined
    }
  }

  /** Judges and sends in order while the look is still valid. Returns the changes that need another look. */
  async #round(
    open: readonly Place[],
    lookup: (change: Change) => F | undefined,
  ): Promise<readonly Place[]> {
    const touched = new Set<string>()
    const begun = new Map<Begun<F, L>, Place>()
    let rest: readonly Place[] = []
    for (const [k, place] of open.entries()) {
      const [, change] = place
      let found: F | undefined
      try {
        found = lookup(change)
      } catch (thrown) {
        // It can't be told which member is meant.
        this.#end(place, { ...this.#thrown(thrown, change), status: 'rejected' })
        continue
      }
      const object = found?.object ?? refKey(change.ref)
      if (touched.has(object)) {
        rest = open.slice(k)
        break
      }
      const verdict = judge(change, found, this.#adapter)
      if (verdict !== undefined) {
        this.#end(place, verdict)
        continue
      }
      touched.add(object)
      const outcome = await this.#send(place, found)
      if ('later' in outcome) {
        begun.set({ change, found, later: outcome.later }, place)
        if (outcome.sent !== undefined) this.#begun.set(place[0], outcome.sent)
        continue
      }
      this.#end(place, outcome)
      if (outcome.status === 'unknown') {
        rest = open.slice(k + 1)
        break
      }
    }
    const again = await this.#finish(begun)
    return [...again, ...rest].sort(([one], [other]) => one - other)
  }

  async #send([i, change]: Place, found: F | undefined): Promise<ChangeOutcome | Later<L>> {
    this.#sent.add(i)
    try {
      const outcome = await this.#dispatch(change, found)
      this.#ctx.signal.throwIfAborted()
      return outcome ?? { status: 'applied' }
    } catch (thrown) {
      return this.#thrown(thrown, change)
    }
  }

  #dispatch(change: Change, found: F | undefined): ReturnType<CarefulAdapter<F, L>['hold']> {
    const adapter = this.#adapter
    if (change.kind !== 'add' && found === undefined) throw new TypeError('a change of nothing')
    // Each takes the change of its name.
    const make = possible(adapter[change.kind]) as (
      ...given: readonly [Change, F | undefined, CallContext]
    ) => ReturnType<CarefulAdapter<F, L>['hold']>
    return make.call(adapter, change, found, this.#ctx)
  }

  /** Ends the begun changes. Returns those for which another client was faster. */
  async #finish(begun: Map<Begun<F, L>, Place>): Promise<readonly Place[]> {
    const again: Place[] = []
    if (begun.size === 0) return again
    try {
      for await (const [one, outcome] of this.#adapter.finish?.([...begun.keys()], this.#ctx) ??
        []) {
        this.#ctx.signal.throwIfAborted()
        const place = begun.get(one)
        if (place === undefined || !begun.delete(one)) continue
        if (outcome !== 'again') this.#end(place, outcome)
        else if (this.#mayTryAgain(place)) again.push(place)
      }
    } catch (thrown) {
      for (const place of begun.values()) {
        const outcome = this.#thrown(thrown, place[1])
        this.#end(place, this.#wasSent(place[0]) ? outcome : { ...outcome, status: 'rejected' })
      }
    }
    return again
  }

  #mayTryAgain(place: Place): boolean {
    const [i, { ref }] = place
    const attempt = (this.#attempts.get(i) ?? 0) + 1
    this.#attempts.set(i, attempt)
    if (attempt < ATTEMPTS) return true
    const words = `${formatRef(ref)} is changed by other clients again and again; nothing was sent`
    const error = refusal('CONFLICT', words, { provider: this.#adapter.provider, ref })
    this.#end(place, { status: 'rejected', error })
    return false
  }

  /** The result of a change whose send threw an error. */
  #thrown(
    thrown: unknown,
    { kind, ref }: Change,
  ): ChangeOutcome & { readonly error: DrainableError } {
    this.#ctx.signal.throwIfAborted()
    const { provider } = this.#adapter
    const error = thrownAbout(thrown, kind, { provider, ref })
    return { status: isRefusal(error) ? 'rejected' : 'unknown', error }
  }

  #end(place: Place, outcome: ChangeOutcome): void {
    const { ref } = place[1]
    const { provider } = this.#adapter
    const said =
      'error' in outcome ? { ...outcome, error: about(outcome.error, { provider, ref }) } : outcome
    this.#hand(place, { ref, ...said })
  }

  #hand([i]: Place, result: ChangeResult): void {
    if (this.#over || this.#results.has(i)) return
    this.#results.set(i, result)
    this.#ctx.result?.(i, result)
  }
}

function possible<T>(given: T | string): Exclude<T, string> {
  if (typeof given === 'string') throw new TypeError(given)
  return given as Exclude<T, string>
}

/** The result of a begun change that `finish` left out: its outcome is not known. */
function noResult(ref: Change['ref'], { provider }: { readonly provider: string }): ChangeResult {
  const words = `${formatRef(ref)}: the change was begun and not ended`
  const error = new DrainableError('PROVIDER_FAILED', words, { provider, ref })
  return { ref, status: 'unknown', error }
}
