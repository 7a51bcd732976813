import type {
  CallContext,
  Change,
  ChangeResult,
  Json,
  MemberRef,
} from '../../../provider/contract.js'
import { DrainableError } from '../../../provider/error.js'
import { formatRef, refKey } from '../../../provider/member-ref.js'
import { PROVIDER } from '../session/session.js'
import type { DurableMarks, Marks } from './durable.js'
import { configStamp, readNative, weightOf } from '../read/reading.js'
import { nameOf } from '../read/followers.js'
import { askServer, putServer } from './put-server.js'
import type { Found, RuntimeView } from '../read/read.js'
import { isWeightless } from '../read/state.js'
import { type Sent, type Step, type Tools, Undo, rejected } from './sent.js'

type Restore = Change & { readonly kind: 'restore' }

/** Undoes holds: only where the expected state is found, and only what was changed. */
export class Restorer {
  readonly #tools: Tools
  readonly #marks: DurableMarks
  /** Weights that we set to 0 at run time, as they were. */
  readonly #weights = new Map<string, number>()

  constructor(tools: Tools, marks: DurableMarks) {
    this.#tools = tools
    this.#marks = marks
  }

  /** Undoes, where the expected state is found. */
  // eslint-disable-next-line complexity -- the steps of an undo, each with its own way back
  async restore(
    change: Restore,
    found: Found,
    view: RuntimeView,
    undo: Undo,
    ctx: CallContext,
  ): Promise<Step> {
    const { ref, to } = change
    const native = readNative(change.native)
    const { own } = found.verdict
    const { durable } = this.#tools.settings
    const closed = isWeightless(found.rows) && !this.#weights.has(refKey(ref))
    if (to === 'ready' && closed && !durable) return weightless(ref)
    const kept = await this.#keepBackupSessions(ref, change.native, found, view, undo, ctx)
    if (kept !== undefined) return { ref, status: 'rejected', error: kept }
    // to ready too: weight and maintenance in one write could open it with its weight, and cut backups
    const marked = isWeightless(found.rows)
    if (durable && own === 'maint' && (to === 'drain' || marked)) {
      undo.note(await this.#marks.leaveMaintenance(ref, change.native, ctx))
    }
    let rewrite: Sent['rewrite']
    if (durable && to === 'ready') {
      let cleared = await this.#clear(change, found, view, undo, ctx)
      if (cleared === undefined && closed && (native?.weight ?? 0) > 0) {
        await this.#closeInFile(ref, found, view, undo, ctx)
        cleared = await this.#clear(change, found, view, undo, ctx)
      }
      const siblings = siblingsOf(ref, view)
      if (cleared !== undefined) {
        rewrite = (anew) => this.#marks.clear(ref, change.native, found, { siblings, anew }, ctx)
      }
      if (closed && (cleared?.weight !== 0 || native?.configured?.weight === 0)) {
        if (undo.isEmpty) return weightless(ref)
        throw noWeight(ref)
      }
    }
    this.#noteWeight(ref, change.native)
    // one that its weight alone held goes back to that
    const wished = to === 'drain' && closed ? (native?.runs ?? to) : to
    const answer = await askServer(this.#tools.api, ref, wished, ctx)
    const sent = { ref, wished, exactly: true, before: found, view, undo, rewrite, ...answer }
    if (!durable || to === 'ready' || native?.own !== to) return { later: sent }
    // found so: the marks that came with a raise go with it
    const after = (): Promise<unknown> => this.#clear(change, found, view, new Undo(), ctx)
    return { later: { ...sent, after } }
  }

  /** Ready at run time, and marked in the file, which this provider does not write. */
  keepsMarks(ref: MemberRef, stored: 'drain' | 'maint'): ChangeResult {
    const words = `is ready until the next reload, which makes it '${stored}': the configuration has weight 0 for it; use a provider with durable: true, or give it a weight there`
    return rejected(ref, 'UNSUPPORTED', `${formatRef(ref)} ${words}`)
  }

  /** Puts a member back into the state it was found in, where that cuts nothing. */
  async moveBack(
    ref: MemberRef,
    before: Found,
    view: RuntimeView,
    ctx: CallContext,
  ): Promise<void> {
    const to = before.verdict.own
    const found = view.pools.get(ref.pool)?.get(ref.member)
    if (found === undefined || to === 'unknown') {
      const what = found === undefined ? 'it is gone' : 'its state before is not known'
      throw new DrainableError('REJECTED', what, { provider: PROVIDER, ref })
    }
    if (to === 'maint') {
      await this.assertGentle(ref, view, ctx)
    } else {
      const kept = await this.#keepBackupSessions(ref, undefined, found, view, new Undo(), ctx)
      if (kept !== undefined) throw kept
    }
    await putServer(this.#tools.api, ref, { admin_state: to }, ctx)
    if (to === 'ready') await this.weightBack(ref, ctx)
  }

  async #clear(
    change: Restore,
    found: Found,
    view: RuntimeView,
    undo: Undo,
    ctx: CallContext,
  ): Promise<Marks | undefined> {
    const { ref, native } = change
    const siblings = siblingsOf(ref, view)
    const marks = await this.#marks.clear(ref, native, found, { siblings }, ctx)
    if (marks === undefined) return undefined
    undo.note(marks)
    const writtenIn = this.#marks.writtenIn(ref, native)
    await this.#tools.lastGood.cleared(ref, writtenIn, view.infos, ctx)
    return marks
  }

  /**
   * The file has a weight, and the process runs with 0: a reload began with the file of before our last write.
   * The API applies what differs from the file alone, so the mark is written once more.
   */
  async #closeInFile(
    ref: MemberRef,
    found: Found,
    { infos }: RuntimeView,
    undo: Undo,
    ctx: CallContext,
  ): Promise<void> {
    const processes = nameOf(infos)
    undo.note(await this.#marks.set(ref, 'drain', found, ctx, { processes }))
  }

  /**
   * With `on-marked-up shutdown-backup-sessions`, a server that leaves maint cuts the sessions on
   * the backend's backup servers, unless its weight is 0 at that moment.
   *
   * @returns why it must not leave maint
   */
  async #keepBackupSessions(
    ref: MemberRef,
    native: Json | undefined,
    found: Found,
    view: RuntimeView,
    undo: Undo,
    ctx: CallContext,
  ): Promise<DrainableError | undefined> {
    if (found.verdict.own !== 'maint' || isWeightless(found.rows)) return undefined
    const backups = [...(view.pools.get(ref.pool)?.values() ?? [])].flatMap(({ rows }) => rows)
    const sessions = backups.reduce((sum, row) => sum + (row.backup ? row.scur : 0), 0)
    if (sessions === 0) return undefined
    const configured = await this.#tools.configuration.servers(
      ref.pool,
      [ref.member],
      configStamp(view),
      ctx,
    )
    if (configured(ref.member).cutsBackups === false) return undefined
    if (!view.served.setsWeight) {
      return new DrainableError(
        'CONFLICT',
        `${formatRef(ref)}: leaving maint may cut ${sessions} sessions on backup servers (on-marked-up shutdown-backup-sessions); try again when they have ended, or use durable drains or Data Plane API 3.4`,
        { provider: PROVIDER, ref },
      )
    }
    this.#weights.set(refKey(ref), readNative(native)?.weight ?? weightOf(found))
    await putServer(this.#tools.api, ref, { weight: 0 }, ctx)
    undo.isWeighed = true
    await putServer(this.#tools.api, ref, { admin_state: 'ready' }, ctx)
    return undefined
  }

  /** Gives back a weight that was set to 0 for the opening. Returns whether there was one. */
  async weightBack(ref: MemberRef, ctx: CallContext): Promise<boolean> {
    const weight = this.#weights.get(refKey(ref))
    if (weight === undefined) return false
    await putServer(this.#tools.api, ref, { weight }, ctx)
    this.#weights.delete(refKey(ref))
    return true
  }

  /** The ticket knows better than we do what weight it had. */
  #noteWeight(ref: MemberRef, native: Json | undefined): void {
    const weight = readNative(native)?.weight
    if (weight !== undefined && this.#weights.has(refKey(ref))) {
      this.#weights.set(refKey(ref), weight)
    }
  }

  /** Sets maint, where that cuts nothing: what the API misreads as ready already, it then sends. */
  async throughMaint(ref: MemberRef, view: RuntimeView, ctx: CallContext): Promise<void> {
    await this.assertGentle(ref, view, ctx)
    await putServer(this.#tools.api, ref, { admin_state: 'maint' }, ctx)
  }

  /** @throws `REJECTED` where maint may cut */
  async assertGentle(ref: MemberRef, view: RuntimeView, ctx: CallContext): Promise<void> {
    const { settings, configuration } = this.#tools
    const stamp = configStamp(view)
    const gentle =
      settings.maintCuts === undefined
        ? (await configuration.servers(ref.pool, [ref.member], stamp, ctx))(ref.member).maint ===
          'gentle'
        : !settings.maintCuts
    if (gentle) return
    throw new DrainableError(
      'REJECTED',
      `${formatRef(ref)}: going through maint may cut its sessions, set maintCuts: false if it does not`,
      { provider: PROVIDER, ref },
    )
  }
}

/** Weight 0 keeps it out, and what would take that back is not ours to change here. */
function weightless(ref: MemberRef): ChangeResult {
  return { ref, status: 'rejected', error: noWeight(ref) }
}

function noWeight(ref: MemberRef): DrainableError {
  const words =
    'would get no work when it is ready: its weight is 0; give it a weight, or, if a durable drain left weight 0 behind, use a provider with durable: true'
  return new DrainableError('UNSUPPORTED', `${formatRef(ref)} ${words}`, {
    provider: PROVIDER,
    ref,
  })
}

function siblingsOf(ref: MemberRef, view: RuntimeView): readonly Found[] {
  return [...(view.pools.get(ref.pool) ?? [])].flatMap(([member, found]) =>
    member === ref.member ? [] : [found],
  )
}
