import { LATER_ANSWER } from '../core/tickets/calls.js'
import { nodeUtil } from '../provider/builtins.js'
import { settledWithin } from '../provider/abort.js'
import { canonicalAddress } from '../provider/address.js'
import { wallOf } from '../provider/clock.js'
import type { Change, ChangeResult, MemberRef } from '../provider/contract.js'
import { DrainableError, toDrainableError } from '../provider/error.js'
import type { Add } from './additions.js'
import { Backoff } from './backoff.js'
import type { WorkSpec } from './work-spec.js'

/** What makes an addition whole that ended half-way. */
export type Opening = Extract<Change, { readonly kind: 'restore' }>

/** An addition or its opening that is under way, or was refused and is tried again. */
export interface Adding {
  readonly ref: MemberRef
  readonly change: Add | Opening
  readonly backoff: Backoff
  /** ISO 8601: when it was sent first. */
  readonly since: string
  busy: boolean
  /** Why it failed. */
  held: string | null
}

/** Adds members, and opens those whose addition ended before that. */
export class Adds {
  readonly all = new Map<string, Adding>()
  readonly #spec: WorkSpec
  readonly #ended: (key: string) => void
  readonly #leave = new AbortController()
  readonly #sending = new Set<Promise<void>>()

  /** @param ended - told of each answer */
  constructor(spec: WorkSpec, ended: (key: string) => void) {
    this.#spec = spec
    this.#ended = ended
  }

  get isBusy(): boolean {
    return [...this.all.values()].some(({ busy }) => busy)
  }

  /** What is not planned any more is not tried again. */
  keepOnly(planned: ReadonlyMap<string, { readonly change: { readonly kind: string } }>): void {
    for (const [key, { busy, change }] of this.all)
      if (!busy && planned.get(key)?.change.kind !== change.kind) this.all.delete(key)
  }

  /** Adds a member, or opens one that we added and nobody has seen open. */
  send(key: string, change: Add | Opening): void {
    if (change.kind === 'add' && this.#isOnItsWay(key, change)) return
    const known = this.all.get(key)
    // What failed says nothing of another change: one with another address is sent at once.
    const isKnown = known?.busy === true || nodeUtil().isDeepStrictEqual(known?.change, change)
    const { clock } = this.#spec.policy
    const since = new Date(wallOf(clock)).toISOString()
    const fresh = {
      ref: change.ref,
      change,
      backoff: new Backoff(),
      since,
      busy: false,
      held: null,
    }
    const adding: Adding = known !== undefined && isKnown ? known : fresh
    this.all.set(key, adding)
    if (adding.busy || clock.now() < adding.backoff.notBefore) return
    adding.busy = true
    const sending = this.#send(key, adding, change).finally(() => this.#sending.delete(sending))
    this.#sending.add(sending)
  }

  /**
   * Whether the same server is being added by another name: a plan gives it the plain one as soon as the member goes that had
   * it, and with both it would be in the pool twice. Once that one is answered, a look tells whether it is there.
   */
  #isOnItsWay(key: string, { ref, address, port }: Add): boolean {
    const place = canonicalAddress(address)
    for (const [other, { busy, change }] of this.all) {
      if (other === key || !busy || change.kind !== 'add') continue
      if (change.ref.pool !== ref.pool || change.port !== port) continue
      if (canonicalAddress(change.address) === place) return true
    }
    return false
  }

  /** Waits for what is being written or sent, for a moment, and for the list of what was added. */
  async end(): Promise<void> {
    this.#leave.abort()
    const { additions, policy } = this.#spec
    const ended = Promise.all(this.#sending).then(() => additions.written())
    await settledWithin(ended, policy.clock, LATER_ANSWER)
  }

  async #send(key: string, adding: Adding, change: Add | Opening): Promise<void> {
    const { changed, fault, policy } = this.#spec
    const result = await this.#announced(change)
    adding.busy = false
    this.#ended(key)
    if (!('error' in result)) this.all.delete(key)
    else {
      adding.held = result.error.message
      adding.backoff.fail(policy.clock.now())
      if (!this.#leave.signal.aborted) fault(result.error)
    }
    changed(true)
  }

  /** What is added is listed before: nothing is added that would stay for ever. */
  async #announced(change: Add | Opening): Promise<ChangeResult> {
    if (change.kind !== 'add') return this.#sent(change)
    try {
      const answered = await this.#spec.additions.announce(change)
      const result = await this.#sent(change)
      answered(result.status)
      return result
    } catch (thrown) {
      return { ref: change.ref, status: 'rejected', error: this.#toError(thrown) }
    }
  }

  /** Sends it, unless it is over by now: the store may have taken its time. */
  async #sent(change: Add | Opening): Promise<ChangeResult> {
    const { scheduler, policy } = this.#spec
    const { ref } = change
    const leave = this.#leave.signal
    if (leave.aborted) return { ref, status: 'rejected', error: closed(ref) }
    let result: ChangeResult = { ref, status: 'unknown', error: closed(ref) }
    const giveUp = new AbortController().signal
    const take = (_: number, told: ChangeResult): void => void (result = told)
    try {
      await scheduler.send([change], { leave, giveUp }, take, policy.term?.permit)
    } catch (thrown) {
      return { ref, status: 'unknown', error: this.#toError(thrown) }
    }
    return result
  }

  #toError(thrown: unknown): DrainableError {
    const { provider, subject } = this.#spec
    return toDrainableError(thrown, provider.name, subject)
  }
}

function closed(ref: MemberRef): DrainableError {
  return new DrainableError('CONFLICT', 'it was closed: nothing is sent', { ref })
}
