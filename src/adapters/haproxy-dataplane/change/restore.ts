import type { ChangeOf } from '../../../kit/change.js'
import { isTakenForPassed } from '../../../kit/haproxy/checks.js'
import type { CallContext, ChangeResult, Json, MemberRef } from '../../../provider/contract.js'
import type { DrainableError } from '../../../provider/error.js'
import { formatRef, refKey } from '../../../provider/member-ref.js'
import type { Found, RuntimeView } from '../read/read.js'
import { type Native, readNative, weightOf } from '../read/reading.js'
import { isLost } from '../session/session.js'
import type { Marks } from '../codec/raw.js'
import { nameOf, parseRuntimeServer } from '../codec/replies.js'
import {
  askServer,
  extended,
  failure,
  known,
  putServer,
  type Sent,
  type Step,
  type Tools,
  type Underway,
  Undo,
} from './sent.js'

/**
 * Brings servers back: undoes holds, only where the expected state is found and only what was changed; and takes back
 * what was done of a change that was then refused, because a refusal says that nothing was changed.
 */
export class Restorer {
  readonly #tools: Tools
  /** Weights that we set to 0 at run time, as they were. */
  readonly #weights = new Map<string, number>()

  constructor(tools: Tools) {
    this.#tools = tools
  }

  /**
   * Undoes, where the expected state is found.
   *
   * @param stored - whether the file was found to have marks: what the API tells of them may be its memory alone
   */
  // eslint-disable-next-line complexity -- the steps of an undo, each with its own way back
  async restore(
    change: ChangeOf<'restore'>,
    at: Underway,
    stored: boolean,
    ctx: CallContext,
  ): Promise<Step> {
    const { ref, to } = change
    const { before: found, undo } = at
    const native = readNative(change.native)
    const { own } = found.verdict
    const { settings, marks } = this.#tools
    const { durable } = settings
    const marked = found.row.weight === 0
    if (!marked) this.#weights.delete(refKey(ref))
    else if (to === 'ready') await this.#recall(at, native, ctx)
    const closed = marked && !this.#weights.has(refKey(ref))
    if (to === 'ready' && closed && !durable) throw noWeight(ref)
    await this.#keepBackupSessions(at, found, change.native, ctx)
    // to ready too: weight and maintenance in one write could open it with its weight, and cut backups
    if (durable && own === 'maint' && (to === 'drain' || marked)) {
      undo.note(await marks.leaveMaintenance(at, change.native, ctx))
    }
    let again: Sent['again']
    if (durable && to === 'ready') {
      again = () => marks.clear(at, change.native, ctx, true)
      const known = marks.known(at, change.native)
      let cleared = await this.#clear(change, at, ctx, stored)
      if (cleared === undefined && closed && (known?.weight ?? 0) > 0) {
        // The file has a weight, and the process runs with 0: a reload began with the file of before our last write.
        // The API applies what differs from the file alone, so the mark is written once more.
        undo.note(await marks.set(at, 'drain', ctx))
        cleared = await this.#clear(change, at, ctx)
      }
      if (closed && (cleared?.weight !== 0 || known?.configured?.weight === 0)) throw noWeight(ref)
    }
    // the ticket knows better than we do what weight it had
    if (native !== undefined && this.#weights.has(refKey(ref)))
      this.#weights.set(refKey(ref), native.weight)
    // one that its weight alone held goes back to that
    const wished = to === 'drain' && closed ? (native?.runs ?? to) : to
    const answer = await askServer(this.#tools.api, ref, wished, ctx)
    const isChecked = own === 'maint' && wished === 'drain'
    // found so: the marks that came with a raise go with it
    const isMarked = durable && to !== 'ready' && native?.own === to
    const after = async (view: RuntimeView): Promise<void> => {
      if (isChecked) await this.#distrustHealth(ref, view, ctx)
      if (isMarked) await this.#clear(change, { ...at, undo: new Undo() }, ctx)
    }
    return { later: { ...at, wished, exactly: true, again, after, ...answer } }
  }

  /** Marks a server down under drain where its counts would show a passed check before there is one. */
  async #distrustHealth(ref: MemberRef, view: RuntimeView, ctx: CallContext): Promise<void> {
    const { api, configuration, settings } = this.#tools
    const members = view.pools.get(ref.pool)
    const { row, verdict } = members?.get(ref.member) ?? {}
    if (verdict?.own !== 'drain' || row?.check === undefined) return
    if (row.status.startsWith('DOWN') || !isTakenForPassed(row.check)) return
    const { maint, cutsBackups } = await configuration.of(ref, view, ctx)
    // Going down would cut what has come since it left maint, coming up what a backup server holds by then.
    if (row.scur > 0 && (settings.maintCuts ?? maint !== 'gentle')) return
    const hasBackup = [...(members?.values() ?? [])].some((one) => one.row.backup)
    if (hasBackup && cutsBackups !== false) return
    try {
      await putServer(api, ref, { operational_state: 'down' }, ctx)
    } catch (error) {
      if (isLost(known(error, ctx))) throw error
    }
  }

  /** The refusal of a change, once the member is as it was found; where it is not, it is not known. */
  async refuse(at: Underway, refused: DrainableError, ctx: CallContext): Promise<ChangeResult> {
    const { ref } = at
    const left = await this.#putBack(at, ctx).catch((error: unknown) => known(error, ctx).message)
    if (left === undefined) return { ref, status: 'rejected', error: refused }
    const words = `${refused.message}; what was done before could not be put back: ${left}`
    return { ref, status: 'unknown', error: extended(ref, refused, words) }
  }

  /** Returns what is left of the change. */
  async #putBack(at: Underway, ctx: CallContext): Promise<string | undefined> {
    const { ref, before, undo } = at
    const { marks } = undo
    const look = async (): Promise<RuntimeView> => this.#tools.reader.view([ref], ctx)
    if (marks !== undefined) {
      // the API applies `maintenance` at once
      if (marks.maintenance === 'enabled') await this.#assertGentle(ref, await look(), ctx)
      await this.#remark(at, marks, ctx)
    }
    let view = await look()
    if (!isAsBefore(before, find(view, ref))) {
      await this.#moveBack(at, view, ctx)
      view = await look()
    }
    const now = find(view, ref)
    if (!isAsBefore(before, now)) return `its status is '${now?.row.status ?? 'gone'}'`
    // What opens it comes last, once its state is back.
    if (marks !== undefined && marks.weight !== 0) {
      await this.#tools.marks.clear(at, toNativeOf(at, marks), ctx)
      this.#tools.marks.undone(ref, view.info)
    }
    if (undo.isWeighed) await this.weightBack(ref, ctx)
    return undefined
  }

  /** Puts a member back into the state it was found in, where that cuts nothing. */
  async #moveBack(at: Underway, view: RuntimeView, ctx: CallContext): Promise<void> {
    const { ref } = at
    const to = at.before.verdict.own
    const found = find(view, ref)
    if (found === undefined) throw failure(ref, 'REJECTED', 'it is gone')
    if (to === 'unknown') throw failure(ref, 'REJECTED', 'its state before is not known')
    if (to === 'maint') await this.#assertGentle(ref, view, ctx)
    else {
      const now = { ...at, view, undo: new Undo() }
      await this.#keepBackupSessions(now, found, undefined, ctx)
    }
    await putServer(this.#tools.api, ref, { admin_state: to }, ctx)
    if (to === 'ready') await this.weightBack(ref, ctx)
  }

  async #clear(
    { native }: ChangeOf<'restore'>,
    at: Underway,
    ctx: CallContext,
    anew = false,
  ): Promise<Marks | undefined> {
    const cleared = await this.#tools.marks.clear(at, native, ctx, anew)
    at.undo.note(cleared)
    return cleared
  }

  /** Writes the marks of before, but no weight above 0: the API applies a maintenance that is taken back as "ready". */
  async #remark(at: Underway, { weight, maintenance }: Marks, ctx: CallContext): Promise<void> {
    const { marks } = this.#tools
    if (maintenance === 'enabled') await marks.set(at, 'maint', ctx)
    else {
      await marks.leaveMaintenance(at, toNativeOf(at, { weight, maintenance }), ctx)
      if (weight === 0) await marks.set(at, 'drain', ctx)
    }
  }

  /**
   * With `on-marked-up shutdown-backup-sessions`, a server that leaves maint cuts the sessions on
   * the backend's backup servers, unless its weight is 0 at that moment.
   *
   * @throws `CONFLICT` where it must not leave maint
   */
  async #keepBackupSessions(
    { ref, view, undo }: Underway,
    found: Found,
    native: Json | undefined,
    ctx: CallContext,
  ): Promise<void> {
    if (found.verdict.own !== 'maint' || found.row.weight === 0) return
    const others = [...(view.pools.get(ref.pool)?.values() ?? [])]
    const sessions = others.reduce((sum, { row }) => sum + (row.backup ? row.scur : 0), 0)
    if (sessions === 0) return
    const { cutsBackups } = await this.#tools.configuration.of(ref, view, ctx)
    if (cutsBackups === false) return
    if (!view.served.setsWeight) {
      const words = `${formatRef(ref)}: leaving maint may cut ${sessions} sessions on backup servers (on-marked-up shutdown-backup-sessions); try again when they have ended, or use durable drains or Data Plane API 3.4`
      throw failure(ref, 'CONFLICT', words)
    }
    this.#weights.set(refKey(ref), readNative(native)?.weight ?? weightOf(found))
    await putServer(this.#tools.api, ref, { weight: 0 }, ctx)
    undo.isWeighed = true
    await putServer(this.#tools.api, ref, { admin_state: 'ready' }, ctx)
  }

  /**
   * Recalls the weight of a server that another process has left at 0 for its opening: by the ticket, else the one that
   * HAProxy began with. Where no backup server's sessions could be cut, or the file has weight 0, that was somebody else.
   */
  async #recall(
    { ref, view }: Underway,
    native: Native | undefined,
    ctx: CallContext,
  ): Promise<void> {
    const { api, configuration } = this.#tools
    const { pool, member } = ref
    const hasBackup = [...(view.pools.get(pool)?.values() ?? [])].some(({ row }) => row.backup)
    const { setsWeight, paths } = view.served
    if (this.#weights.has(refKey(ref)) || !setsWeight || !hasBackup) return
    const { place, cutsBackups, weight } = await configuration.of(ref, view, ctx)
    const isKnown = place !== 'unknown' && place !== 'unread'
    if (!isKnown || cutsBackups === false || weight === 0) return
    const was =
      native?.weight ??
      api.parse(await api.read(paths.server(pool, member), ctx), parseRuntimeServer).initialWeight
    if (was !== undefined && was > 0) this.#weights.set(refKey(ref), was)
  }

  /**
   * Gives back a weight that was set to 0 for the opening, and not before: a server that goes down under drain and comes up
   * again cuts what backup servers hold, unless its weight is 0 then (3.4.7).
   */
  async weightBack(ref: MemberRef, ctx: CallContext): Promise<void> {
    const weight = this.#weights.get(refKey(ref))
    if (weight === undefined) return
    await putServer(this.#tools.api, ref, { weight }, ctx)
    this.#weights.delete(refKey(ref))
  }

  /** Opens by way of maint, where that cuts nothing: what the API misreads as ready already, it then sends. */
  async throughMaint(ref: MemberRef, view: RuntimeView, ctx: CallContext): Promise<void> {
    await this.#assertGentle(ref, view, ctx)
    await putServer(this.#tools.api, ref, { admin_state: 'maint' }, ctx)
    await putServer(this.#tools.api, ref, { admin_state: 'ready' }, ctx)
  }

  /** @throws `REJECTED` where maint may cut */
  async #assertGentle(ref: MemberRef, view: RuntimeView, ctx: CallContext): Promise<void> {
    const { settings, configuration } = this.#tools
    const cuts = settings.maintCuts ?? (await configuration.of(ref, view, ctx)).maint !== 'gentle'
    if (!cuts) return
    const words = `${formatRef(ref)}: going through maint may cut its sessions, set maintCuts: false if it does not`
    throw failure(ref, 'REJECTED', words)
  }
}

/** Weight 0 keeps it out, and what would take that back is not ours to change here. */
function noWeight(ref: MemberRef): DrainableError {
  const words =
    'would get no work when it is ready: its weight is 0; give it a weight, or, if a durable drain left weight 0 behind, use a provider with durable: true'
  return failure(ref, 'UNSUPPORTED', `${formatRef(ref)} ${words}`)
}

/** The server as a restore to the marks of before needs it. */
function toNativeOf({ before, view }: Underway, { weight, maintenance }: Marks): Json {
  const configured = { weight, maintenance }
  return { weight: weightOf(before), configured, process: nameOf(view.info) }
}

function find(view: RuntimeView, ref: MemberRef): Found | undefined {
  return view.pools.get(ref.pool)?.get(ref.member)
}

/** By its own state; where that was not known, by the words of the statistics. */
function isAsBefore(before: Found, now: Found | undefined): boolean {
  if (now === undefined) return false
  const { own } = before.verdict
  if (own !== 'unknown') return own === now.verdict.own
  return before.row.status === now.row.status
}
