import type { CallContext, MemberRef } from '../../../provider/contract.js'
import { refKey } from '../../../provider/member-ref.js'
import { nameOf, type ProcessInfo } from '../codec/replies.js'
import { readReloads } from '../session/reload.js'
import type { DataplaneApi } from '../session/session.js'

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
