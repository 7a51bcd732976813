import type { CallContext, ChangeResult } from '../../../provider/contract.js'
import type { DrainableError } from '../../../provider/error.js'
import type { RuntimeView } from '../read/read.js'
import { followReload } from '../session/reload.js'
import { refuse, throughMaint, weightBack } from './restore.js'
import { type Sent, type Tools, about, hasWritten, known, settle } from './tools.js'

/** One change that was sent, and what became of it. */
export type Settled = readonly [sent: Sent, result: ChangeResult]

/**
 * The second look: both sources must show the requested state, in the process that was asked. An answer
 * of 200 proves nothing here: the API sends a command only where the state it read differs from the one
 * asked for, and it misreads some.
 *
 * @returns each result as soon as it is known, by one look for all of them
 */
export async function* verified(
  by: Tools,
  all: readonly Sent[],
  ctx: CallContext,
): AsyncGenerator<Settled> {
  // Where a front asks for time no look is wanted for now, and the caller is to know.
  const sent: Sent[] = []
  for (const step of all) {
    const answer = step.lost ?? step.refused
    if (answer?.retryAfter === undefined) sent.push(step)
    else yield [step, unseen(step, answer)]
  }
  if (sent.length === 0) return
  let view: RuntimeView
  try {
    view = await look(by, sent, ctx)
  } catch (thrown) {
    const error = known(thrown, ctx)
    for (const step of sent) yield [step, unseen(step, error)]
    return
  }
  const open: Settled[] = []
  for (const step of sent) {
    const result = await settled(by, step, view, ctx)
    if (needsReload(by, step, result)) open.push([step, result])
    else yield [step, result]
  }
  yield* renewed(by, open, view, ctx)
}

/** What became of one change. */
export async function verifiedOne(by: Tools, sent: Sent, ctx: CallContext): Promise<ChangeResult> {
  for await (const [, result] of verified(by, [sent], ctx)) return result
  throw new TypeError('a change without a result')
}

/** What became of a change by the look after it. An undo that did not show goes by way of maint, once, where that cuts nothing. */
async function settled(
  by: Tools,
  step: Sent,
  view: RuntimeView,
  ctx: CallContext,
): Promise<ChangeResult> {
  const result = settle(step, view)
  const isUndo = step.wished === 'ready' && step.refused === undefined
  if (!isUndo || result.status !== 'rejected')
    return finished(by, step, result, hasWritten(step), view, ctx)
  try {
    await throughMaint(by, step.ref, view, ctx)
  } catch (error) {
    known(error, ctx)
    return finished(by, step, result, true, view, ctx)
  }
  const after = await look(by, [step], ctx)
  return finished(by, step, settle({ ...step, view }, after), true, after, ctx)
}

/**
 * What goes with a change: nothing left of one that was refused, no weight kept from one that was made.
 *
 * @param moved - whether something of it may be left
 * @param view - the look that has shown the result
 */
async function finished(
  by: Tools,
  step: Sent,
  result: ChangeResult,
  moved: boolean,
  view: RuntimeView,
  ctx: CallContext,
): Promise<ChangeResult> {
  const { ref, wished, after } = step
  if (result.status === 'rejected' && moved) return refuse(by, step, result.error, ctx)
  if (result.status !== 'applied') return result
  try {
    await after?.(view)
    await weightBack(by, ref, ctx)
    if (wished === 'ready' && !needsReload(by, step, result)) by.marks.undone(ref, view.info)
    return result
  } catch (error) {
    return { ref, status: 'unknown', error: about(ref, known(error, ctx)) }
  }
}

function needsReload(
  { settings, marks }: Tools,
  { ref, wished }: Sent,
  { status }: ChangeResult,
): boolean {
  const isOpen = wished === 'ready' && status === 'applied'
  return settings.confirm === 'reload' && isOpen && marks.isLeft(ref)
}

/**
 * One reload for all of them takes their marks out of the last good file. One that fails puts that file back:
 * then the marks are taken back once more.
 */
async function* renewed(
  by: Tools,
  open: readonly Settled[],
  view: RuntimeView,
  ctx: CallContext,
): AsyncGenerator<Settled> {
  const { api, writer, settings, marks } = by
  const [first] = open
  if (first === undefined) return
  let failure: string | undefined
  try {
    const id = await writer.reload(first[0].ref, ctx)
    await followReload(api, id, view.info, settings.reloadTimeout, ctx)
  } catch (error) {
    failure = known(error, ctx).message
  }
  for (const [step, result] of open) {
    marks.renewed(step.ref, failure)
    if (failure === undefined) yield [step, result]
    else yield [step, await finished(by, { ...step, after: step.again }, result, false, view, ctx)]
  }
}

function look({ reader }: Tools, sent: readonly Sent[], ctx: CallContext): Promise<RuntimeView> {
  return reader.view(
    sent.map(({ ref }) => ref),
    ctx,
  )
}

/** What became of a change without a look after it. @param error - why there was none */
function unseen(step: Sent, error: DrainableError): ChangeResult {
  const { ref, lost, refused } = step
  // Other refusals can hide that HAProxy did it all the same: see `askServer`.
  const isFinal =
    refused !== undefined && refused.code !== 'NOT_FOUND' && refused.code !== 'REJECTED'
  const status = isFinal && !hasWritten(step) ? 'rejected' : 'unknown'
  return { ref, status, error: lost ?? about(ref, refused ?? error) }
}
