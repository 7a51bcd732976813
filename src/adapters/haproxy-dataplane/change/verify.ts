import { followReload } from '../session/reload.js'
import { Half } from '../../../kit/errors.js'
import type { Begun, ChangeOutcome } from '../../../kit/change.js'
import type { AdminState, CallContext } from '../../../provider/contract.js'
import type { DrainableError } from '../../../provider/error.js'
import { atLeast, formatRef } from '../../../provider/member-ref.js'
import { nameOf } from '../codec/replies.js'
import type { RuntimeView } from '../read/read.js'
import { isLost } from '../session/session.js'
import type { Restorer } from './restore.js'
import { failure, find, known, putServer, type Seen, type Sent, type Tools } from './tools.js'

type One = Begun<Seen, Sent | 'removal'>
type State = readonly [one: One, sent: Sent]
type Ended = readonly [one: One, outcome: ChangeOutcome]

/**
 * The second look: both sources must show the requested state, in the process that was asked. An answer
 * of 200 proves nothing here: the API sends a command only where the state it read differs from the one
 * asked for, and it misreads some. What belongs to the state in the configuration is written after it.
 */
export class Verifier {
  readonly #tools: Tools
  readonly #restorer: Restorer

  constructor(tools: Tools, restorer: Restorer) {
    this.#tools = tools
    this.#restorer = restorer
  }

  /** One look for all of them; each outcome as soon as it is known. */
  async *settled(states: readonly State[], ctx: CallContext): AsyncGenerator<Ended> {
    if (states.length === 0) return
    let view: RuntimeView
    try {
      view = await this.#look(
        states.map(([, sent]) => sent),
        ctx,
      )
    } catch (thrown) {
      const error = known(thrown, ctx)
      for (const [one, sent] of states) yield [one, unseen(sent, error)]
      return
    }
    const open: State[] = []
    for (const [one, sent] of states) {
      const outcome = await this.#ended(sent, view, ctx)
      if (outcome.status === 'applied' && this.#needsReload(sent)) open.push([one, sent])
      else yield [one, outcome]
    }
    if (open.length > 0) yield* this.#renewed(open, view, ctx)
  }

  /** What became of one change. */
  async one(sent: Sent, ctx: CallContext): Promise<ChangeOutcome> {
    const { lost, refused } = sent
    const busy = lost ?? refused
    // No look is wanted for now, and the caller is to know.
    if (busy?.retryAfter !== undefined) return unseen(sent, busy)
    let view: RuntimeView
    try {
      view = await this.#look([sent], ctx)
    } catch (thrown) {
      return unseen(sent, known(thrown, ctx))
    }
    return this.#ended(sent, view, ctx)
  }

  #look(sent: readonly Sent[], ctx: CallContext): Promise<RuntimeView> {
    const refs = sent.map(({ before }) => before.ref)
    return this.#tools.reader.view(refs, ctx)
  }

  /** Nothing is left of one that was refused, and no weight kept from a server that is open. */
  async #ended(sent: Sent, view: RuntimeView, ctx: CallContext): Promise<ChangeOutcome> {
    const outcome = settle(sent, view)
    if (outcome.status === 'rejected' && sent.exactly)
      return this.#restorer.back(sent, outcome.error, ctx)
    if (outcome.status !== 'applied' && !isUnseen(sent, view)) return outcome
    const { weight, before } = sent
    try {
      if (weight !== undefined) await putServer(this.#tools.api, before.ref, { weight }, ctx)
      await sent.file?.()
      return outcome
    } catch (thrown) {
      if (thrown instanceof Half) return { status: 'unknown', error: thrown.error }
      const error = known(thrown, ctx)
      if (isLost(error) || weight !== undefined) return { status: 'unknown', error }
      return this.#restorer.back(sent, error, ctx)
    }
  }

  #needsReload({ before, wished }: Sent): boolean {
    const { settings, lastGood } = this.#tools
    return settings.confirm === 'reload' && wished === 'ready' && lastGood.has(before.ref)
  }

  /**
   * One reload for all of them takes their marks out of the last good file. One that fails puts that file back:
   * then the marks are taken back once more.
   */
  async *#renewed(
    open: readonly State[],
    view: RuntimeView,
    ctx: CallContext,
  ): AsyncGenerator<Ended> {
    const { api, writer, lastGood, settings } = this.#tools
    let failed: string | undefined
    try {
      const id = await writer.reload(ctx)
      await followReload(api, id, view.info, settings.reloadTimeout, ctx)
    } catch (error) {
      failed = known(error, ctx).message
    }
    for (const [one, { before, again }] of open) {
      try {
        if (failed === undefined) lastGood.forget(before.ref)
        else await again?.()
        if (failed !== undefined) lastGood.failed(before.ref, failed)
        yield [one, { status: 'applied' }]
      } catch (error) {
        yield [one, { status: 'unknown', error: known(error, ctx) }]
      }
    }
  }
}

/** What became of a change without a look after it. @param error - why there was none */
function unseen({ lost, refused, weight }: Sent, error: DrainableError): ChangeOutcome {
  const status = isFinal(refused) && weight === undefined ? 'rejected' : 'unknown'
  return { status, error: lost ?? refused ?? error }
}

/** Whether a refusal can't hide that HAProxy did it all the same: see `askServer`. */
function isFinal(refused: DrainableError | undefined): boolean {
  return refused !== undefined && refused.code !== 'NOT_FOUND' && refused.code !== 'REJECTED'
}

function isDone(
  { wished, exactly }: Pick<Sent, 'wished' | 'exactly'>,
  own: AdminState | 'unknown' | undefined,
): boolean {
  if (own === undefined || own === 'unknown') return false
  return exactly ? own === wished : atLeast(own, wished)
}

/** An undo that the API has answered, and whose state hides behind one that is inherited: it goes on. */
function isUnseen({ before, exactly, lost, refused }: Sent, view: RuntimeView): boolean {
  const answered = lost === undefined && refused === undefined
  const found = find(view, before.ref)
  const same = nameOf(before.view.info) === nameOf(view.info)
  return exactly && answered && same && found?.verdict.hidden === true
}

/** What became of a change that was sent, by the look after it. */
// eslint-disable-next-line complexity -- every pair of what was answered and what is seen
function settle(sent: Sent, view: RuntimeView): ChangeOutcome {
  const { before, exactly, lost, refused, terminated } = sent
  const { ref } = before
  const reloaded = nameOf(before.view.info) !== nameOf(view.info)
  const found = find(view, ref)
  const own = found?.verdict.own
  if (isDone(sent, own) && !reloaded)
    return { status: 'applied', ...(terminated === undefined ? {} : { terminated, atMost: true }) }
  if (found === undefined && refused?.code === 'NOT_FOUND' && !reloaded)
    return { status: 'rejected', error: refused }
  const denied = refused?.code === 'NOT_FOUND' && found !== undefined
  const error =
    lost ??
    (denied ? undefined : refused) ??
    // One that was not executed is taken for done by the API, or another client has changed it at once.
    failure(ref, 'CONFLICT', `${formatRef(ref)}${differs(sent, view)}`, denied || reloaded)
  const hidden = own === undefined || own === 'unknown' || (exactly && found?.verdict.hidden)
  // what was cut can't be put back
  const open =
    lost !== undefined || denied || reloaded || hidden === true || terminated !== undefined
  return { status: open ? 'unknown' : 'rejected', error }
}

/** What is found in place of the wished state. */
function differs({ before, wished, refused }: Sent, view: RuntimeView): string {
  const found = find(view, before.ref)
  const seen = found === undefined ? 'gone' : `'${found.row.status}'`
  if (refused !== undefined)
    return `: '${wished}' was answered with "not found", but its status is ${seen}; the API may not have reached HAProxy`
  if (nameOf(before.view.info) !== nameOf(view.info))
    return `: HAProxy was reloaded while '${wished}' was set; it is ${seen} now`
  const doubt = found?.verdict.doubt === undefined ? '' : `: ${found.verdict.doubt}`
  return `: '${wished}' was answered with 200, but its status is ${seen}${doubt}`
}
