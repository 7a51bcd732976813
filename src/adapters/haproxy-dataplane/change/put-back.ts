import type { CallContext, ChangeResult, MemberRef } from '../../../provider/contract.js'
import { DrainableError, isDrainableError } from '../../../provider/error.js'
import { PROVIDER } from '../session/session.js'
import type { DurableMarks, Marks } from './durable.js'
import type { Restorer } from './restore.js'
import type { Found, RuntimeView } from '../read/read.js'
import type { Tools, Undo } from './sent.js'

/** Takes back what was done of a change that was then refused: a refusal says that nothing was changed. */
export class PutBack {
  readonly #tools: Tools
  readonly #marks: DurableMarks
  readonly #restorer: Restorer

  constructor(tools: Tools, marks: DurableMarks, restorer: Restorer) {
    this.#tools = tools
    this.#marks = marks
    this.#restorer = restorer
  }

  /** The refusal, once the member is as it was found; where it is not, it is not known. */
  async refuse(
    ref: MemberRef,
    before: Found,
    undo: Undo,
    refused: DrainableError,
    ctx: CallContext,
  ): Promise<ChangeResult> {
    const left = await this.#leftOver(ref, before, undo, ctx)
    if (left === undefined) return { ref, status: 'rejected', error: refused }
    const { code, message, retryable } = refused
    const words = `${message}; what was done before could not be put back: ${left}`
    const data = { provider: PROVIDER, ref, retryable, cause: refused }
    return { ref, status: 'unknown', error: new DrainableError(code, words, data) }
  }

  async #leftOver(
    ref: MemberRef,
    before: Found,
    undo: Undo,
    ctx: CallContext,
  ): Promise<string | undefined> {
    try {
      const { marks } = undo
      if (marks !== undefined) await this.#mark(ref, marks, ctx)
      let view = await this.#look(ref, ctx)
      if (!isAsBefore(before, find(view, ref))) {
        await this.#restorer.moveBack(ref, before, view, ctx)
        view = await this.#look(ref, ctx)
      }
      const now = find(view, ref)
      if (!isAsBefore(before, now)) return `its status is '${now?.rows[0]?.status ?? 'gone'}'`
      // What opens it comes last, once its state is back.
      if (marks !== undefined) await this.#marks.weigh(ref, marks, before, ctx)
      if (undo.isWeighed) await this.#restorer.weightBack(ref, ctx)
      return undefined
    } catch (error) {
      ctx.signal.throwIfAborted()
      if (!isDrainableError(error)) throw error
      return error.message
    }
  }

  /** Closes it by its marks again; the API applies `maintenance` at once. */
  async #mark(ref: MemberRef, marks: Marks, ctx: CallContext): Promise<void> {
    if (marks.maintenance === 'enabled')
      await this.#restorer.assertGentle(ref, await this.#look(ref, ctx), ctx)
    await this.#marks.putBack(ref, marks, ctx)
  }

  #look(ref: MemberRef, ctx: CallContext): Promise<RuntimeView> {
    return this.#tools.reader.view([ref], ctx)
  }
}

function find(view: RuntimeView, ref: MemberRef): Found | undefined {
  return view.pools.get(ref.pool)?.get(ref.member)
}

/** By its own state; where that was not known, by the words of the statistics. */
function isAsBefore(before: Found, now: Found | undefined): boolean {
  if (now === undefined) return false
  const { own } = before.verdict
  if (own !== 'unknown') return own === now.verdict.own
  return before.rows.every((row, i) => row.status === now.rows[i]?.status)
}
