import type { CallContext, MemberRef } from '../../../provider/contract.js'
import { isDrainableError } from '../../../provider/error.js'
import { formatRef, refKey } from '../../../provider/member-ref.js'
import { type ConfigServer, marksOf } from '../codec/configuration.js'
import type { Marks } from '../codec/raw.js'
import { nameOf, type ProcessInfo } from '../codec/replies.js'
import type { RuntimeView } from '../read/read.js'
import { type Native, NOT_DURABLE, weightOf } from '../read/reading.js'
import { readReloads } from '../session/reload.js'
import { extended, failure, type Seen, type Tools } from './tools.js'

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

/** The line of a server as it is to be; undefined where it is to stay as it is. */
type Edit = (line: ConfigServer) => Record<string, unknown> | undefined

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
  async hold(seen: Seen, to: 'drain' | 'maint', ctx: CallContext): Promise<void> {
    if (!this.#tools.settings.durable) return
    try {
      const told = await this.#mark(seen, to, ctx)
      // It runs with a weight: what the API tells of a mark may be its memory alone, after a reload that failed.
      if (told === undefined && weightOf(seen.found) > 0) await this.#mark(seen, to, ctx, true)
    } catch (error) {
      throw to === 'maint' && seen.found.verdict.own === 'drain'
        ? unsealable(seen.ref, error)
        : error
    }
  }

  /** Writes the mark; a server that is not configured needs none. @param anew - also where it is there */
  async #mark(
    seen: Seen,
    to: 'drain' | 'maint',
    ctx: CallContext,
    anew = false,
  ): Promise<Marks | undefined> {
    const before = await this.#write(seen, ctx, (line) => {
      const { weight, maintenance } = marksOf(line)
      const marked = weight === 0 && (to === 'drain' || maintenance === 'enabled')
      if (marked && !anew) return undefined
      return { ...line, weight: 0, ...(to === 'maint' ? { maintenance: 'enabled' } : {}) }
    })
    if (before !== undefined && before.weight !== 0) {
      const { undoneIn, before: first, ...left } = this.#of(seen.ref)
      const since = undoneIn === undefined ? first?.process : undefined
      const process = since ?? nameOf(seen.view.info)
      const found = { weight: weightOf(seen.found), configured: before, process }
      this.#known.set(refKey(seen.ref), { ...left, before: found })
    }
    return before
  }

  /**
   * Takes back `maintenance`, which the API applies as "ready": with the weight still 0 that is as
   * closed as a drain.
   */
  async leaveMaintenance(seen: Seen, native: Native | undefined, ctx: CallContext): Promise<void> {
    const before = this.#before(seen, native)
    if (before?.configured?.maintenance === 'enabled') return // it was not ours
    await this.#write(seen, ctx, (line) =>
      line['maintenance'] === 'enabled'
        ? { ...line, weight: 0, maintenance: 'disabled' }
        : undefined,
    )
  }

  /**
   * Takes back every mark for an opening.
   *
   * @param isClosed - whether the process runs it with weight 0, which its line is to give it back
   * @returns whether that was done
   */
  async open(
    seen: Seen,
    native: Native | undefined,
    isClosed: boolean,
    ctx: CallContext,
  ): Promise<boolean> {
    const before = this.#before(seen, native)
    // What the API tells of marks that were found in the file may be its memory alone.
    let cleared = await this.clear(seen, native, ctx, seen.stored !== undefined)
    if (cleared === undefined && isClosed && (before?.weight ?? 0) > 0) {
      // The file has a weight, and the process runs with 0: a reload began with the file of before our last write.
      // The API applies what differs from the file alone, so the mark is written once more.
      await this.#mark(seen, 'drain', ctx)
      cleared = await this.clear(seen, native, ctx)
    }
    return cleared?.weight === 0 && before?.configured?.weight !== 0
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
    seen: Seen,
    native: Native | undefined,
    ctx: CallContext,
    anew = false,
  ): Promise<Marks | undefined> {
    const before = this.#before(seen, native)
    const marks = await this.#write(
      seen,
      ctx,
      (line) => cleared(seen, line, before) ?? (anew ? { ...line } : undefined),
    )
    if (marks === undefined) return undefined
    // Whether the last good file has them, too.
    const process = nameOf(seen.view.info)
    const known = this.#of(seen.ref)
    const since = known.before?.process ?? native?.process
    const isIn = since === undefined ? await this.#hasReloaded(ctx) : since !== process
    if (isIn) this.#known.set(refKey(seen.ref), { ...known, leftIn: process })
    return marks
  }

  /**
   * Puts back the marks that a refused change has found, but no weight above 0: the API applies a maintenance that is
   * taken back as "ready".
   */
  async putBack(seen: Seen, ctx: CallContext): Promise<void> {
    const { marks } = seen.undo
    if (marks === undefined) return
    const { maintenance } = marks
    const isMaint = maintenance === 'enabled'
    await this.#write(seen, ctx, (line) => {
      const now = marksOf(line)
      const isSame = (now.maintenance === 'enabled') === isMaint
      const isWeightless = now.weight === 0 || (marks.weight !== 0 && !isMaint)
      if (isSame && isWeightless) return undefined
      const word = isMaint ? 'enabled' : 'disabled'
      return { ...line, weight: 0, ...(isSame ? {} : { maintenance: word }) }
    })
  }

  /** Gives a server back the weight that a refused change has found in its line. */
  async weighAgain(seen: Seen, { info }: RuntimeView, ctx: CallContext): Promise<void> {
    const { marks } = seen.undo
    if (marks === undefined || marks.weight === 0) return
    const { weight, maintenance } = marks
    const process = nameOf(seen.view.info)
    const before = { weight: weightOf(seen.found), configured: { weight, maintenance }, process }
    await this.clear(seen, before, ctx)
    this.undone(seen.ref, info)
  }

  /** Writes a line, and notes what it was before. @returns the marks before, where something was written */
  async #write(seen: Seen, ctx: CallContext, edit: Edit): Promise<Marks | undefined> {
    const line = await this.#tools.writer.edit(seen.ref, edit, ctx)
    if (line === undefined) return undefined
    const before = marksOf(line)
    seen.undo.marks ??= before
    return before
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
  #before({ ref, view }: Seen, native: Native | undefined): Native | undefined {
    const { before, undoneIn } = this.#of(ref)
    return native ?? (undoneIn === nameOf(view.info) ? undefined : before)
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
  seen: Seen,
  line: ConfigServer,
  before: Native | undefined,
): Record<string, unknown> | undefined {
  const was = before?.configured
  const next: Record<string, unknown> = { ...line }
  if (line['weight'] === 0 && was?.weight !== 0)
    next['weight'] = was?.weight ?? weightFor(seen, before)
  if (line['maintenance'] === 'enabled' && was?.maintenance !== 'enabled')
    next['maintenance'] = 'disabled'
  const same = next['weight'] === line['weight'] && next['maintenance'] === line['maintenance']
  if (same) return undefined
  // without the key the API reloads
  next['weight'] ??= weightOf(seen.found)
  return next
}

/**
 * The weight it had; without a record of that, the one that it was given at run time since, or the one
 * that all others of its backend have.
 */
function weightFor({ ref, found, view }: Seen, before: Native | undefined): number {
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
