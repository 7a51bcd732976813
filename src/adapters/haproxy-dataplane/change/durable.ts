import type { ChangeOf } from '../../../kit/change.js'
import type { AdminState, CallContext, MemberRef } from '../../../provider/contract.js'
import { Half } from '../../../kit/errors.js'
import { isDrainableError } from '../../../provider/error.js'
import { formatRef, refKey } from '../../../provider/member-ref.js'
import type { ConfigServer } from '../codec/configuration.js'
import { nameOf, type ProcessInfo } from '../codec/replies.js'
import { type Native, NOT_DURABLE, readNative, weightOf } from '../read/reading.js'
import { hasReloaded } from '../session/reload.js'
import type { DataplaneApi } from '../session/session.js'
import { extended, failure, known, putServer, type Seen, type Tools } from './tools.js'

/**
 * The durable form of a drain: `weight 0` in the server's configured line, and `maintenance` for
 * the seal. The API applies both at run time without a reload; after a reload they still hold. What they were before
 * is in the native part of the reading from before the drain.
 */
export class DurableMarks {
  readonly #tools: Tools

  constructor(tools: Tools) {
    this.#tools = tools
  }

  /** @throws `UNSUPPORTED` where a durable drain could not be one: nothing was sent */
  assertPossible({ ref, config: { place } }: Seen): void {
    if (!this.#tools.settings.durable || place === 'line' || place === 'run time') return
    const words = `${formatRef(ref)} can't be drained durably: ${NOT_DURABLE[place] ?? ''}`
    if (place === 'unread') throw failure(ref, 'CONFLICT', words, true)
    throw failure(ref, 'UNSUPPORTED', `${words}; use durable: false for it`)
  }

  /**
   * The state at run time that an undo leads to.
   *
   * @throws `UNSUPPORTED` where its weight of 0 would keep it out, and is not ours to change; `CONFLICT` where it is not
   *   known what its weight was
   */
  wished({ ref, to, native }: ChangeOf<'restore'>, seen: Seen): AdminState {
    const before = readNative(native)
    const isClosed = seen.found.row.weight === 0
    // One that its weight alone held goes back to that.
    if (to !== 'ready') return to === 'drain' && isClosed ? (before?.runs ?? to) : to
    const { durable } = this.#tools.settings
    if (durable && seen.config.place === 'unread')
      throw failure(ref, 'CONFLICT', `${formatRef(ref)}: ${NOT_DURABLE.unread ?? ''}`, true)
    if (!isClosed) return to
    const isMarked = seen.config.weight === 0 || seen.config.place === 'unknown'
    const isOurs = isMarked ? before?.configured?.weight !== 0 : (before?.weight ?? 0) > 0
    if (!durable || !isOurs) throw weightless(ref)
    if (isMarked) weightFor(seen, before)
    return to
  }

  /** Writes the marks that belong to a hold. A server that is not configured needs none. */
  async set({ ref, found, config }: Seen, to: 'drain' | 'maint', ctx: CallContext): Promise<void> {
    if (hasNoLine(config)) return
    // It runs with a weight: what the API tells of a mark may be its memory alone, after a reload that failed.
    const isDoubtful = weightOf(found) > 0
    const mark = (line: ConfigServer): Record<string, unknown> | undefined => {
      const isThere = line['weight'] === 0 && (to === 'drain' || isMaint(line))
      if (isThere && !isDoubtful) return undefined
      return { ...line, weight: 0, ...(to === 'maint' ? { maintenance: 'enabled' } : {}) }
    }
    try {
      await this.#tools.writer.edit(ref, mark, ctx)
    } catch (error) {
      throw to === 'maint' && found.verdict.own === 'drain' ? unsealable(error) : error
    }
  }

  /**
   * Takes back the marks that an undo leaves behind.
   *
   * @param anew - whether the line is written where the API tells of no mark too: after a reload that failed it goes on
   *   telling what it had in memory, and the next write takes all of that to the file (2.9.25, 3.0.21, 3.2.13, 3.4.2)
   */
  async takeBack(
    seen: Seen,
    { to, native }: ChangeOf<'restore'>,
    ctx: CallContext,
    anew: boolean,
  ): Promise<void> {
    if (to === 'maint' || hasNoLine(seen.config)) return
    const before = readNative(native)
    if (to === 'ready') return this.#clear(seen, before, ctx, anew)
    if (seen.found.verdict.own === 'maint') await this.#leaveMaintenance(seen, before, ctx)
    // found so: the marks that came with a raise go with it
    if (before?.own === to) await this.#clear(seen, before, ctx, anew)
  }

  /**
   * The API applies a maintenance that is taken back as "ready". With the weight still 0 that is as closed as the drain,
   * which is set once more; unless it was held by its weight alone before.
   */
  async #leaveMaintenance(
    { ref }: Seen,
    before: Native | undefined,
    ctx: CallContext,
  ): Promise<void> {
    const { writer, api } = this.#tools
    if (before?.configured?.maintenance === 'enabled') return // it was not ours
    const unmark = (line: ConfigServer): Record<string, unknown> | undefined =>
      isMaint(line) ? { ...line, weight: 0, maintenance: 'disabled' } : undefined
    if (!(await writer.edit(ref, unmark, ctx)) || before?.runs === 'ready') return
    try {
      await putServer(api, ref, { admin_state: 'drain' }, ctx)
    } catch (error) {
      throw new Half(known(error, ctx), 'its maintenance is out of the configuration')
    }
  }

  /**
   * Takes back every mark. A line that had no weight gets the weight it was running with: taking the key out again might
   * cost a reload.
   */
  async #clear(
    seen: Seen,
    before: Native | undefined,
    ctx: CallContext,
    anew: boolean,
  ): Promise<void> {
    const { writer, lastGood } = this.#tools
    const { ref, found, view } = seen
    const unmark = (line: ConfigServer): Record<string, unknown> | undefined =>
      cleared(seen, line, before) ?? (anew ? { ...line } : undefined)
    let written = await writer.edit(ref, unmark, ctx)
    if (!written && found.row.weight === 0 && (before?.weight ?? 0) > 0) {
      // The file has a weight, and the process runs with 0: a reload began with the file of before our last write.
      // The API applies what differs from the file alone, so the mark is written once more.
      await writer.edit(ref, (line) => ({ ...line, weight: 0 }), ctx)
      written = await writer.edit(ref, unmark, ctx)
    }
    if (written) await lastGood.cleared(ref, before?.process, view.info, ctx)
  }
}

/**
 * Other clients write all the time: what is drained stays so, and is not raised. The tries were made, and an idle that
 * waits for more of them waits for its timeout.
 */
function unsealable(error: unknown): unknown {
  if (!isDrainableError(error, 'CONFLICT') || !error.retryable) return error
  const words = `${error.message}; it stays drained, and is not raised to maint`
  return extended(error, words, false)
}

/** Whether it is known that there is no line that this API can write. */
function hasNoLine({ place }: Seen['config']): boolean {
  return place === 'run time' || place === 'listen' || place === 'template'
}

function isMaint(line: ConfigServer): boolean {
  return line['maintenance'] === 'enabled'
}

/** The line without our marks; undefined where it has none. */
function cleared(
  seen: Seen,
  line: ConfigServer,
  before: Native | undefined,
): Record<string, unknown> | undefined {
  const was = before?.configured
  const isWeighed = line['weight'] === 0 && was?.weight !== 0
  const isHeld = isMaint(line) && was?.maintenance !== 'enabled'
  if (!isWeighed && !isHeld) return undefined
  return {
    ...line,
    // without the key the API reloads
    weight: isWeighed ? weightFor(seen, before) : (line['weight'] ?? weightOf(seen.found)),
    ...(isHeld ? { maintenance: 'disabled' } : {}),
  }
}

/**
 * The weight it had; without a record of that, the one that it was given at run time since, or the one
 * that all others of its backend have.
 */
function weightFor({ ref, found, view }: Seen, before: Native | undefined): number {
  const had = before?.configured?.weight ?? before?.weight ?? 0
  if (had > 0) return had
  const runs = weightOf(found)
  if (runs > 0) return runs
  const others = [...(view.pools.get(ref.pool) ?? [])].filter(([member]) => member !== ref.member)
  const weights = new Set(others.map(([, one]) => weightOf(one)).filter((weight) => weight > 0))
  const [only] = weights
  if (only !== undefined && weights.size === 1) return only
  const words = `${formatRef(ref)} has weight 0 in the configuration, and its weight before a durable drain is not known here: restore with the drain's ticket, or set the weight`
  throw failure(ref, 'CONFLICT', words, false)
}

/** Weight 0 keeps it out, and what would take that back is not ours to change here. */
function weightless(ref: MemberRef): Error {
  const words =
    'would get no work when it is ready: its weight is 0; give it a weight, or, if a durable drain left weight 0 behind, use a provider with durable: true'
  return failure(ref, 'UNSUPPORTED', `${formatRef(ref)} ${words}`)
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
    const isIn = since === undefined ? await hasReloaded(this.#api, ctx) : since !== process
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
}
