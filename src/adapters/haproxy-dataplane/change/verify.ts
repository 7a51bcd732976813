import type { CallContext, ChangeResult } from '../../../provider/contract.js'
import type { DrainableError } from '../../../provider/error.js'
import type { RuntimeView } from '../read/read.js'
import { followReload } from '../session/reload.js'
import type { Restorer } from './restore.js'
import { type Sent, type Tools, about, isFinal, known, settle } from './sent.js'

/** One change that was sent, and what became of it. */
export type Settled = readonly [sent: Sent, result: ChangeResult]

/**
 * The second look: both sources must show the requested state, in the process that was asked. An answer
 * of 200 proves nothing here: the API sends a command only where the state it read differs from the one
 * asked for, and it misreads some.
 */
export class Verifier {
  readonly #tools: Tools
  readonly #restorer: Restorer

  constructor(tools: Tools, restorer: Restorer) {
    this.#tools = tools
    this.#restorer = restorer
  }

  /** One look for all of them; each result as soon as it is known. */
  async *settled(all: readonly Sent[], ctx: CallContext): AsyncGenerator<Settled> {
    // Where a front asks for time no look is wanted for now, and the caller is to know.
    const sent: Sent[] = []
    for (const step of all) {
      const answer = putOff(step)
      if (answer === undefined) sent.push(step)
      else yield [step, unseen(step, answer)]
    }
    if (sent.length === 0) return
    let view: RuntimeView
    try {
      view = await this.#look(sent, ctx)
    } catch (thrown) {
      const error = known(thrown, ctx)
      for (const step of sent) yield [step, unseen(step, error)]
      return
    }
    const open: Settled[] = []
    for await (const one of this.#each(sent, view, ctx)) {
      if (this.#needsReload(one)) open.push(one)
      else yield one
    }
    if (open.length > 0) yield* this.#renewed(open, view, ctx)
  }

  async *#each(
    sent: readonly Sent[],
    view: RuntimeView,
    ctx: CallContext,
  ): AsyncGenerator<Settled> {
    const stuck: Settled[] = []
    for (const step of sent) {
      const result = settle(step, view)
      const undone = step.wished === 'ready' && step.refused === undefined
      if (undone && result.status === 'rejected') stuck.push([step, result])
      else yield [step, await this.#finish(step, result, !step.undo.isEmpty, view, ctx)]
    }
    yield* this.#again(stuck, view, ctx)
  }

  #needsReload([{ ref, wished }, { status }]: Settled): boolean {
    const { settings, marks } = this.#tools
    const isOpen = wished === 'ready' && status === 'applied'
    return settings.confirm === 'reload' && isOpen && marks.isLeft(ref)
  }

  /**
   * One reload for all of them takes their marks out of the last good file. One that fails puts that file back:
   * then the marks are taken back once more.
   */
  async *#renewed(
    open: readonly Settled[],
    view: RuntimeView,
    ctx: CallContext,
  ): AsyncGenerator<Settled> {
    const { api, writer, settings, marks } = this.#tools
    let failure: string | undefined
    try {
      const [first] = open
      if (first === undefined) return
      const id = await writer.reload(first[0].ref, ctx)
      await followReload(api, id, view.info, settings.reloadTimeout, ctx)
    } catch (error) {
      failure = known(error, ctx).message
    }
    for (const [step, result] of open) {
      marks.renewed(step.ref, failure)
      if (failure === undefined) yield [step, result]
      else
        yield [step, await this.#finish({ ...step, after: step.again }, result, false, view, ctx)]
    }
  }

  /** What became of one change. */
  async one(sent: Sent, ctx: CallContext): Promise<ChangeResult> {
    for await (const [, result] of this.settled([sent], ctx)) return result
    throw new TypeError('a change without a result')
  }

  #look(sent: readonly Sent[], ctx: CallContext): Promise<RuntimeView> {
    const refs = sent.map(({ ref }) => ref)
    return this.#tools.reader.view(refs, ctx)
  }

  /**
   * What goes with a change: nothing left of one that was refused, no weight kept from a server that
   * is open.
   *
   * @param moved - whether something of it may be left
   * @param view - the look that has shown the result
   */
  async #finish(
    sent: Sent,
    result: ChangeResult,
    moved: boolean,
    view: RuntimeView,
    ctx: CallContext,
  ): Promise<ChangeResult> {
    const { ref, wished, after } = sent
    if (result.status === 'rejected' && moved) return this.#restorer.refuse(sent, result.error, ctx)
    if (result.status !== 'applied') return result
    try {
      await after?.(view)
      if (wished === 'ready') await this.#restorer.weightBack(ref, ctx)
      if (wished === 'ready' && !this.#needsReload([sent, result]))
        this.#tools.marks.undone(ref, view.info)
      return result
    } catch (error) {
      return { ref, status: 'unknown', error: about(ref, known(error, ctx)) }
    }
  }

  /** An undo that did not show goes by way of maint, once, where that cuts nothing. */
  async *#again(
    stuck: readonly Settled[],
    view: RuntimeView,
    ctx: CallContext,
  ): AsyncGenerator<Settled> {
    const tried: Sent[] = []
    for (const [step, result] of stuck) {
      try {
        await this.#restorer.throughMaint(step.ref, view, ctx)
        tried.push(step)
      } catch (error) {
        known(error, ctx)
        yield [step, await this.#finish(step, result, true, view, ctx)]
      }
    }
    if (tried.length === 0) return
    let after: RuntimeView
    try {
      after = await this.#look(tried, ctx)
    } catch (thrown) {
      const error = known(thrown, ctx)
      for (const step of tried) yield [step, unseen(step, error)]
      return
    }
    for (const step of tried) {
      const again = settle({ ...step, view }, after)
      yield [step, await this.#finish(step, again, true, after, ctx)]
    }
  }
}

/** The answer to a change that asked for no request for some time. */
function putOff({ lost, refused }: Sent): DrainableError | undefined {
  const answer = lost ?? refused
  return answer?.retryAfter === undefined ? undefined : answer
}

/** What became of a change without a look after it. @param error - why there was none */
function unseen({ ref, lost, refused, undo }: Sent, error: DrainableError): ChangeResult {
  const status = isFinal(refused) && undo.isEmpty ? 'rejected' : 'unknown'
  return { ref, status, error: lost ?? about(ref, refused ?? error) }
}
