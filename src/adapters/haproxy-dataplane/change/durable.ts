import type { CallContext, Json, MemberRef } from '../../../provider/contract.js'
import { isDrainableError } from '../../../provider/error.js'
import { formatRef, refKey } from '../../../provider/member-ref.js'
import { type ConfigServer, marksOf } from '../codec/configuration.js'
import type { Marks } from '../codec/raw.js'
import { nameOf, type ProcessInfo } from '../codec/replies.js'
import type { RuntimeView } from '../read/read.js'
import { type Native, NOT_DURABLE, readNative, weightOf } from '../read/reading.js'
import { readReloads } from '../session/reload.js'
import { extended, failure, type Tools, type Underway } from './sent.js'

/** What is known of the marks of a server. */
interface Known {
  /** The server before our first mark, for a restore that comes without a ticket. */
  readonly before?: Native
  /** In which process the drain was undone. */
  readonly undoneIn?: string
  /** In which process marks were taken back that the last good file may have: the reload after that replaces both. */
  readonly leftIn?: string
  /** Why a reload of our own has not ended that. */
  readonly failure?: string
}

/**
 * The durable form of a drain: `weight 0` in the server's configured line, and `maintenance` for
 * the seal. The API applies both at run time without a reload; after a reload they still hold.
 *
 * The API's last good file is replaced by a reload that succeeds and by nothing else, and put back whole by one that
 * fails (Data Plane API 2.9, 3.2 and 3.4). So marks that were in it come back then although they were taken back, and the
 * next reload after that takes the server out.
 */
export class DurableMarks {
  readonly #tools: Pick<Tools, 'api' | 'configuration' | 'settings' | 'writer'>
  readonly #known = new Map<string, Known>()

  constructor(tools: Pick<Tools, 'api' | 'configuration' | 'settings' | 'writer'>) {
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
      const known = this.#of(ref)
      const since = known.undoneIn === undefined ? known.before?.process : undefined
      const process = since ?? nameOf(view.info)
      const { leftIn, failure } = known
      this.#known.set(refKey(ref), {
        before: { weight: weightOf(found), configured: before, process },
        ...(leftIn === undefined ? {} : { leftIn }),
        ...(failure === undefined ? {} : { failure }),
      })
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
    if (line !== undefined) await this.#cleared(at, native, ctx)
    return line && marksOf(line)
  }

  /** Marks are taken back: whether the last good file has them, too. */
  async #cleared(
    { ref, view }: Underway,
    native: Json | undefined,
    ctx: CallContext,
  ): Promise<void> {
    const process = nameOf(view.info)
    const known = this.#of(ref)
    const since = known.before?.process ?? readNative(native)?.process
    const isIn = since === undefined ? await this.#hasReloaded(ctx) : since !== process
    if (isIn) this.#known.set(refKey(ref), { ...known, leftIn: process })
  }

  /** Whether the API tells of a reload that succeeded, at whatever time; true where it does not say. */
  async #hasReloaded(ctx: CallContext): Promise<boolean> {
    const told = await readReloads(this.#tools.api, ctx)
    return told === undefined || told.succeeded.length > 0
  }

  /**
   * A server as it was before the drain: by what the drain found, else by what was written here first. A reload may
   * have begun with the file of before the undo: then its process has the marks, and nobody else has set them.
   */
  known({ ref, view }: Underway, native: Json | undefined): Native | undefined {
    const { before, undoneIn } = this.#of(ref)
    return readNative(native) ?? (undoneIn === nameOf(view.info) ? undefined : before)
  }

  /** The drain is undone in that process: what was before it is of no more use there. */
  undone(ref: MemberRef, info: ProcessInfo): void {
    const known = this.#of(ref)
    if (known.before !== undefined)
      this.#known.set(refKey(ref), { ...known, undoneIn: nameOf(info) })
  }

  /** Whether the last good file may have marks that were taken back. */
  isLeft(ref: MemberRef): boolean {
    return this.#of(ref).leftIn !== undefined
  }

  /** A reload that was asked for to end that has ended. @param failure - why it has not succeeded */
  renewed(ref: MemberRef, failure: string | undefined): void {
    if (failure === undefined) this.#known.delete(refKey(ref))
    else this.#known.set(refKey(ref), { ...this.#of(ref), failure })
  }

  /** What a person should know of a server that was opened. */
  hint(ref: MemberRef, info: ProcessInfo): string | undefined {
    const { leftIn, failure } = this.#of(ref)
    if (leftIn !== nameOf(info)) return undefined
    const help =
      failure === undefined
        ? "the option confirm: 'reload' ends that"
        : `the reload of the option confirm has not ended that: ${failure}`
    return `HAProxy was reloaded while the marks of its durable drain were in the file: until the next reload that succeeds, one that fails brings them back, and the reload after that takes it out; ${help}`
  }

  #of(ref: MemberRef): Known {
    return this.#known.get(refKey(ref)) ?? {}
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
