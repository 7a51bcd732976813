import type { ChangeOf } from '../../../kit/change.js'
import { isTakenForPassed } from '../../../kit/haproxy/checks.js'
import type { CallContext, ChangeResult, MemberRef } from '../../../provider/contract.js'
import type { DrainableError } from '../../../provider/error.js'
import { formatRef, refKey } from '../../../provider/member-ref.js'
import type { Found, RuntimeView } from '../read/read.js'
import { readNative, weightOf } from '../read/reading.js'
import { isLost } from '../session/session.js'
import {
  askServer,
  extended,
  failure,
  find,
  known,
  putServer,
  type Seen,
  type Step,
  type Tools,
} from './tools.js'

/** Undoes, where the expected state is found. */
export async function restore(
  by: Tools,
  change: ChangeOf<'restore'>,
  seen: Seen,
  ctx: CallContext,
): Promise<Step> {
  const { ref, to } = change
  const { settings, marks, weights } = by
  const { own } = seen.found.verdict
  const native = readNative(change.native)
  const isClosed = seen.found.row.weight === 0 && !weights.has(refKey(ref))
  const isOpening = to === 'ready'
  if (isOpening && isClosed && !settings.durable) throw noWeight(ref)
  await keepBackupSessions(by, seen, native?.weight, ctx)
  if (settings.durable) await takeMarksBack(by, change, seen, isClosed, ctx)
  // the ticket knows better than we do what weight it had
  if (native !== undefined && weights.has(refKey(ref))) weights.set(refKey(ref), native.weight)
  // one that its weight alone held goes back to that
  const wished = to === 'drain' && isClosed ? (native?.runs ?? to) : to
  const answer = await askServer(by, ref, wished, ctx)
  const isChecked = own === 'maint' && wished === 'drain'
  // found so: the marks that came with a raise go with it
  const isMarked = settings.durable && !isOpening && native?.own === to
  const after = async (view: RuntimeView): Promise<void> => {
    if (isChecked) await distrustHealth(by, ref, view, ctx)
    if (isMarked) await marks.clear(seen, native, ctx)
  }
  const again = isOpening ? () => marks.clear(seen, native, ctx, true) : undefined
  return { later: { ...seen, wished, exactly: true, again, after, ...answer } }
}

/** @param isClosed - whether it runs with weight 0 @throws `UNSUPPORTED` where that is not ours to change */
async function takeMarksBack(
  { marks }: Tools,
  { ref, to, native: json }: ChangeOf<'restore'>,
  seen: Seen,
  isClosed: boolean,
  ctx: CallContext,
): Promise<void> {
  const native = readNative(json)
  const { verdict, row } = seen.found
  if (verdict.own === 'maint' && (to !== 'ready' || row.weight === 0))
    await marks.leaveMaintenance(seen, native, ctx)
  if (to !== 'ready') return
  const isGiven = await marks.open(seen, native, isClosed, ctx)
  if (isClosed && !isGiven) throw noWeight(ref)
}

/** Marks a server down under drain where its counts would show a passed check before there is one. */
async function distrustHealth(
  by: Tools,
  ref: MemberRef,
  view: RuntimeView,
  ctx: CallContext,
): Promise<void> {
  const { row, verdict } = find(view, ref) ?? {}
  if (verdict?.own !== 'drain' || row?.check === undefined) return
  if (row.status.startsWith('DOWN') || !isTakenForPassed(row.check)) return
  const { maint, cutsBackups } = await by.configuration.of(ref, view, ctx)
  // Going down would cut what has come since it left maint, coming up what a backup server holds by then.
  if (row.scur > 0 && (by.settings.maintCuts ?? maint !== 'gentle')) return
  if (cutsBackups !== false && backupsOf(view, ref).length > 0) return
  try {
    await putServer(by, ref, { operational_state: 'down' }, ctx)
  } catch (error) {
    if (isLost(known(error, ctx))) throw error
  }
}

/**
 * With `on-marked-up shutdown-backup-sessions`, a server that leaves maint cuts the sessions on the backend's backup
 * servers, unless its weight is 0 at that moment.
 *
 * @param weight - the one to give back then. Default: the one that it has
 * @throws `CONFLICT` where it must not leave maint
 */
async function keepBackupSessions(
  by: Tools,
  { ref, found, view, undo }: Seen,
  weight: number | undefined,
  ctx: CallContext,
): Promise<void> {
  if (found.verdict.own !== 'maint' || found.row.weight === 0) return
  const sessions = backupsOf(view, ref).reduce((sum, { row }) => sum + row.scur, 0)
  if (sessions === 0) return
  const { cutsBackups } = await by.configuration.of(ref, view, ctx)
  if (cutsBackups === false) return
  if (!view.served.setsWeight) {
    const words = `${formatRef(ref)}: leaving maint may cut ${sessions} sessions on backup servers (on-marked-up shutdown-backup-sessions); try again when they have ended, or use durable drains or Data Plane API 3.4`
    throw failure(ref, 'CONFLICT', words)
  }
  by.weights.set(refKey(ref), weight ?? weightOf(found))
  await putServer(by, ref, { weight: 0 }, ctx)
  undo.isWeighed = true
  await putServer(by, ref, { admin_state: 'ready' }, ctx)
}

/** Gives back a weight that was set to 0 to leave maint: what a process leaves at weight 0, another one can't open. */
export async function weightBack(by: Tools, ref: MemberRef, ctx: CallContext): Promise<void> {
  const weight = by.weights.get(refKey(ref))
  if (weight === undefined) return
  await putServer(by, ref, { weight }, ctx)
  by.weights.delete(refKey(ref))
}

/** Opens by way of maint, where that cuts nothing: what the API misreads as ready already, it then sends. */
export async function throughMaint(
  by: Tools,
  ref: MemberRef,
  view: RuntimeView,
  ctx: CallContext,
): Promise<void> {
  await assertGentle(by, ref, view, ctx)
  await putServer(by, ref, { admin_state: 'maint' }, ctx)
  await putServer(by, ref, { admin_state: 'ready' }, ctx)
}

/**
 * The refusal of a change, once what was done of it is taken back, because a refusal says that nothing was changed. Where
 * that fails it is not known.
 */
export async function refuse(
  by: Tools,
  seen: Seen,
  refused: DrainableError,
  ctx: CallContext,
): Promise<ChangeResult> {
  const { ref } = seen
  const left = await putBack(by, seen, ctx).catch((error: unknown) => known(error, ctx).message)
  if (left === undefined) return { ref, status: 'rejected', error: refused }
  const words = `${refused.message}; what was done before could not be put back: ${left}`
  return { ref, status: 'unknown', error: extended(ref, refused, words) }
}

/** Returns what is left of the change. */
async function putBack(by: Tools, seen: Seen, ctx: CallContext): Promise<string | undefined> {
  const { ref, found, undo } = seen
  const look = (): Promise<RuntimeView> => by.reader.view([ref], ctx)
  // the API applies `maintenance` at once
  if (undo.marks?.maintenance === 'enabled') await assertGentle(by, ref, await look(), ctx)
  await by.marks.putBack(seen, ctx)
  let view = await look()
  if (!isAsBefore(found, find(view, ref))) {
    await moveBack(by, seen, view, ctx)
    view = await look()
  }
  const now = find(view, ref)
  if (!isAsBefore(found, now)) return `its status is '${now?.row.status ?? 'gone'}'`
  // What opens it comes last, once its state is back.
  await by.marks.weighAgain(seen, view, ctx)
  await weightBack(by, ref, ctx)
  return undefined
}

/** Puts a member back into the state it was found in, where that cuts nothing. */
async function moveBack(by: Tools, seen: Seen, view: RuntimeView, ctx: CallContext): Promise<void> {
  const { ref } = seen
  const to = seen.found.verdict.own
  const found = find(view, ref)
  if (found === undefined) throw failure(ref, 'REJECTED', 'it is gone')
  if (to === 'unknown') throw failure(ref, 'REJECTED', 'its state before is not known')
  if (to === 'maint') await assertGentle(by, ref, view, ctx)
  else await keepBackupSessions(by, { ...seen, found, view }, undefined, ctx)
  await putServer(by, ref, { admin_state: to }, ctx)
}

/** By its own state; where that was not known, by the words of the statistics. */
function isAsBefore(before: Found, now: Found | undefined): boolean {
  if (now === undefined) return false
  const { own } = before.verdict
  if (own !== 'unknown') return own === now.verdict.own
  return before.row.status === now.row.status
}

/** @throws `REJECTED` where maint may cut */
async function assertGentle(
  { settings, configuration }: Tools,
  ref: MemberRef,
  view: RuntimeView,
  ctx: CallContext,
): Promise<void> {
  const cuts = settings.maintCuts ?? (await configuration.of(ref, view, ctx)).maint !== 'gentle'
  if (!cuts) return
  const words = `${formatRef(ref)}: going through maint may cut its sessions, set maintCuts: false if it does not`
  throw failure(ref, 'REJECTED', words)
}

function backupsOf({ pools }: RuntimeView, { pool }: MemberRef): readonly Found[] {
  return [...(pools.get(pool)?.values() ?? [])].filter(({ row }) => row.backup)
}

/** Weight 0 keeps it out, and what would take that back is not ours to change here. */
function noWeight(ref: MemberRef): DrainableError {
  const words =
    'would get no work when it is ready: its weight is 0; give it a weight, or, if a durable drain left weight 0 behind, use a provider with durable: true'
  return failure(ref, 'UNSUPPORTED', `${formatRef(ref)} ${words}`)
}
