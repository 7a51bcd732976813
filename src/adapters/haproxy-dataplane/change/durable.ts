import type { CallContext, Json, MemberRef } from '../../../provider/contract.js'
import { isDrainableError } from '../../../provider/error.js'
import { formatRef, refKey } from '../../../provider/member-ref.js'
import { type ConfigServer, marksOf } from '../codec/configuration.js'
import type { Marks } from '../codec/raw.js'
import { nameOf, type ProcessInfo } from '../codec/replies.js'
import type { RuntimeView } from '../read/read.js'
import { type Native, NOT_DURABLE, readNative, weightOf } from '../read/reading.js'
import { readReloads } from '../session/reload.js'
import type { DataplaneApi } from '../session/session.js'
import { extended, failure, type Tools, type Underway } from './sent.js'

/** A server before the first mark, and in which process the drain was undone. */
interface Before extends Native {
  readonly undoneIn?: string
}

/**
 * The durable form of a drain: `weight 0` in the server's configured line, and `maintenance` for
 * the seal. The API applies both at run time without a reload; after a reload they still hold.
 */
export class DurableMarks {
  readonly #tools: Pick<Tools, 'configuration' | 'settings' | 'writer'>
  /** As the lines were before our first mark, for a restore that comes without a ticket. */
  readonly #before = new Map<string, Before>()

  constructor(tools: Pick<Tools, 'configuration' | 'settings' | 'writer'>) {
    this.#tools = tools
  }

  /** @throws `UNSUPPORTED` where a durable drain could not be one: nothing was sent */
  async assertPossible(ref: MemberRef, view: RuntimeView, ctx: CallContext): Promise<void> {
    const { settings, configuration, writer } = this.#tools
    if (!settings.durable) return
    const { place } = await configuration.of(ref, view, ctx)
    if (place === 'line' || place === 'run time') return
    // kept from this user: the line itself need not be
    if (place === 'unknown' && (await writer.line(ref, ctx)) !== undefined) return
    const words = `${formatRef(ref)} can't be drained durably: ${NOT_DURABLE[place] ?? ''}`
    if (place === 'unread') throw failure(ref, 'CONFLICT', words, true)
    throw failure(ref, 'UNSUPPORTED', `${words}; use durable: false for it`)
  }

  /** Writes the marks that come with a hold. */
  async hold(at: Underway, to: 'drain' | 'maint', ctx: CallContext): Promise<void> {
    if (!this.#tools.settings.durable) return
    try {
      // It runs with a weight: what the API tells of a mark may be its memory alone, after a reload that failed.
      const isDoubtful = weightOf(at.before) > 0
      const told = await this.set(at, to, ctx)
      at.undo.note(told ?? (isDoubtful ? await this.set(at, to, ctx, true) : undefined))
    } catch (error) {
      throw to === 'maint' && at.before.verdict.own === 'drain' ? unsealable(at.ref, error) : error
    }
  }

  /**
   * Writes the mark.
   *
   * @param anew - whether it is written where it is there too
   * @returns the marks before, where something was written; a server that is not configured needs none
   */
  async set(
    { ref, before: found, view }: Underway,
    to: 'drain' | 'maint',
    ctx: CallContext,
    anew = false,
  ): Promise<Marks | undefined> {
    const line = await this.#tools.writer.edit(
      ref,
      (old) => {
        const { weight, maintenance } = marksOf(old)
        const marked = weight === 0 && (to === 'drain' || maintenance === 'enabled')
        if (marked && !anew) return undefined
        return { ...old, weight: 0, ...(to === 'maint' ? { maintenance: 'enabled' } : {}) }
      },
      ctx,
    )
    const before = line && marksOf(line)
    if (before !== undefined && before.weight !== 0) {
      const known = this.#before.get(refKey(ref))
      const since = known?.undoneIn === undefined ? known?.process : undefined
      const process = since ?? nameOf(view.info)
      this.#before.set(refKey(ref), { weight: weightOf(found), configured: before, process })
    }
    return before
  }

  /**
   * Takes back `maintenance`, which the API applies as "ready": with the weight still 0 that is as
   * closed as a drain. Returns the marks before, where something was written.
   */
  async leaveMaintenance(
    at: Underway,
    native: Json | undefined,
    ctx: CallContext,
  ): Promise<Marks | undefined> {
    const before = this.known(at, native)
    if (before?.configured?.maintenance === 'enabled') return undefined // it was not ours
    const line = await this.#tools.writer.edit(
      at.ref,
      (old) =>
        old['maintenance'] === 'enabled'
          ? { ...old, weight: 0, maintenance: 'disabled' }
          : undefined,
      ctx,
    )
    return line && marksOf(line)
  }

  /**
   * Takes back every mark. A line that had no weight gets the weight it was running with: taking
   * the key out again might cost a reload.
   *
   * @param anew - whether the line is written where the API tells of no mark too: after a reload that failed it goes on
   *   telling what it had in memory, and the next write takes all of that to the file (2.9.25, 3.0.21, 3.2.13, 3.4.2)
   * @returns the marks before, where something was written
   * @throws `CONFLICT` where the line has weight 0 and it is not known what it was before
   */
  async clear(
    at: Underway,
    native: Json | undefined,
    ctx: CallContext,
    anew = false,
  ): Promise<Marks | undefined> {
    const before = this.known(at, native)
    const line = await this.#tools.writer.edit(
      at.ref,
      (old) => cleared(at, old, before) ?? (anew ? { ...old } : undefined),
      ctx,
    )
    return line && marksOf(line)
  }

  /**
   * A server as it was before the drain: by what the drain found, else by what was written here first. A reload may
   * have begun with the file of before the undo: then its process has the marks, and nobody else has set them.
   */
  known({ ref, view }: Underway, native: Json | undefined): Native | undefined {
    const before = this.#before.get(refKey(ref))
    return readNative(native) ?? (before?.undoneIn === nameOf(view.info) ? undefined : before)
  }

  /** The process in which its marks were first written; undefined where that is not known. */
  writtenIn(ref: MemberRef, native: Json | undefined): string | undefined {
    return this.#before.get(refKey(ref))?.process ?? readNative(native)?.process
  }

  /** The drain is undone in that process: what was before it is of no more use there. */
  undone(ref: MemberRef, info: ProcessInfo): void {
    const before = this.#before.get(refKey(ref))
    if (before !== undefined) this.#before.set(refKey(ref), { ...before, undoneIn: nameOf(info) })
  }

  /** The drain is undone, and a reload has begun with the file of after that. */
  forget(ref: MemberRef): void {
    this.#before.delete(refKey(ref))
  }

  /**
   * Puts marks back after a change that was refused in the middle, but no weight above 0: the API
   * applies a maintenance that is taken back as "ready". See {@link DurableMarks.weigh}.
   */
  async putBack(ref: MemberRef, marks: Marks, ctx: CallContext): Promise<void> {
    await this.#tools.writer.edit(
      ref,
      (line) => {
        const now = marksOf(line)
        const maintenance = marks.maintenance ?? 'disabled'
        const moves = (now.maintenance ?? 'disabled') !== maintenance
        if (!moves && (marks.weight !== 0 || now.weight === 0)) return undefined
        return { ...line, weight: 0, ...(moves ? { maintenance } : {}) }
      },
      ctx,
    )
  }

  /** Gives back the weight that a mark took, as the last step of a change that was refused. */
  async weigh({ ref, before, view }: Underway, marks: Marks, ctx: CallContext): Promise<void> {
    if (marks.weight === 0) return
    const weight = marks.weight ?? weightOf(before)
    await this.#tools.writer.edit(
      ref,
      (line) => (line['weight'] === 0 ? { ...line, weight } : undefined),
      ctx,
    )
    this.undone(ref, view.info)
  }
}

/**
 * Other clients write all the time: what is drained stays so, and is not raised. The tries were made, and an idle that
 * waits for more of them waits for its timeout.
 */
function unsealable(ref: MemberRef, error: unknown): unknown {
  if (!isDrainableError(error, 'CONFLICT') || !error.retryable) return error
  const words = `${error.message}; it stays drained, and is not raised to maint`
  return extended(ref, error, words, false)
}

/** The line without our marks; undefined where it has none. */
function cleared(
  at: Underway,
  line: ConfigServer,
  before: Native | undefined,
): Record<string, unknown> | undefined {
  const was = before?.configured
  const next: Record<string, unknown> = { ...line }
  if (line['weight'] === 0 && was?.weight !== 0)
    next['weight'] = was?.weight ?? weightFor(at, before)
  if (line['maintenance'] === 'enabled' && was?.maintenance !== 'enabled')
    next['maintenance'] = 'disabled'
  const same = next['weight'] === line['weight'] && next['maintenance'] === line['maintenance']
  if (same) return undefined
  // without the key the API reloads
  next['weight'] ??= weightOf(at.before)
  return next
}

/**
 * The weight it had; without a record of that, the one that it was given at run time since, or the one
 * that all others of its backend have.
 */
function weightFor({ ref, before: found, view }: Underway, before: Native | undefined): number {
  if (before !== undefined && before.weight > 0) return before.weight
  const runs = weightOf(found)
  if (runs > 0) return runs
  const others = [...(view.pools.get(ref.pool) ?? [])].filter(([member]) => member !== ref.member)
  const weights = new Set(others.map(([, one]) => weightOf(one)).filter((weight) => weight > 0))
  const [only] = weights
  if (only !== undefined && weights.size === 1) return only
  const words = `${formatRef(ref)} has weight 0 in the configuration, and its weight before a durable drain is not known here: restore with the drain's ticket, or set the weight`
  throw failure(ref, 'CONFLICT', words, false)
}

/** Marks that were taken back, and that the last good file may have. */
interface Left {
  /** In which process they were taken back: the reload after that replaces both. */
  readonly process: string
  /** Why a reload of our own has not ended it. */
  readonly failure?: string
}

/**
 * Knows where the API's last good file has marks that were taken back. That file is replaced by a reload that
 * succeeds and by nothing else, and put back whole by one that fails (Data Plane API 2.9, 3.2 and 3.4): a mark that
 * was in it comes back then, and the next reload after that takes the server out.
 */
export class LastGood {
  readonly #api: DataplaneApi
  readonly #left = new Map<string, Left>()

  constructor(api: DataplaneApi) {
    this.#api = api
  }

  /**
   * Marks are taken back.
   *
   * @param since - the process in which they were written; undefined where that is not known
   */
  async cleared(
    ref: MemberRef,
    since: string | undefined,
    info: ProcessInfo,
    ctx: CallContext,
  ): Promise<void> {
    const process = nameOf(info)
    const isIn = since === undefined ? await this.#hasReloaded(ctx) : since !== process
    if (isIn) this.#left.set(refKey(ref), { process })
  }

  /** Whether the last good file may have marks of a server. */
  has(ref: MemberRef): boolean {
    return this.#left.has(refKey(ref))
  }

  /** A reload that was to end it has not. */
  failed(ref: MemberRef, failure: string): void {
    const left = this.#left.get(refKey(ref))
    if (left !== undefined) this.#left.set(refKey(ref), { ...left, failure })
  }

  forget(ref: MemberRef): void {
    this.#left.delete(refKey(ref))
  }

  /** What a person should know of a server that was opened. */
  hint(ref: MemberRef, info: ProcessInfo): string | undefined {
    const left = this.#left.get(refKey(ref))
    if (left === undefined) return undefined
    if (left.process !== nameOf(info)) {
      this.forget(ref)
      return undefined
    }
    const help =
      left.failure === undefined
        ? "the option confirm: 'reload' ends that"
        : `the reload of the option confirm has not ended that: ${left.failure}`
    return `HAProxy was reloaded while the marks of its durable drain were in the file: until the next reload that succeeds, one that fails brings them back, and the reload after that takes it out; ${help}`
  }

  /** Whether the API tells of a reload that succeeded, at whatever time; true where it does not say. */
  async #hasReloaded(ctx: CallContext): Promise<boolean> {
    const told = await readReloads(this.#api, ctx)
    return told === undefined || told.succeeded.length > 0
  }
}
