import { LATER_ANSWER } from '../core/tickets/calls.js'
import { nodeUtil } from '../provider/builtins.js'
import { settledWithin } from '../provider/abort.js'
import { canonicalAddress } from '../provider/address.js'
import { isoOf } from '../provider/clock.js'
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
    const { clock } = this.#spec.policy
    let adding = this.all.get(key)
    // What failed says nothing of another change: one with another address is sent at once.
    const isKnown = adding?.busy === true || nodeUtil().isDeepStrictEqual(adding?.change, change)
    if (adding === undefined || !isKnown) {
      const since = isoOf(clock)
      adding = { ref: change.ref, change, backoff: new Backoff(), since, busy: false, held: null }
      this.all.set(key, adding)
    }
    if (adding.busy || clock.now() < adding.backoff.notBefore) return
    adding.busy = true
    const sending = this.#send(key, adding).finally(() => this.#sending.delete(sending))
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

  async #send(key: string, adding: Adding): Promise<void> {
    const { changed, fault, policy } = this.#spec
    const error = await this.#tried(adding.change)
    adding.busy = false
    this.#ended(key)
    if (error === undefined) this.all.delete(key)
    else {
      adding.held = error.message
      adding.backoff.fail(policy.clock.now())
      if (!this.#leave.signal.aborted) fault(error)
    }
    changed(true)
  }

  /**
   * What is added is listed before: nothing is added that would stay for ever. It is not sent where it is over by then: the
   * store may have taken its time.
   *
   * @returns why it failed
   */
  async #tried(change: Add | Opening): Promise<DrainableError | undefined> {
    const { additions, scheduler, policy, provider, subject } = this.#spec
    const { ref } = change
    const leave = this.#leave.signal
    const giveUp = new AbortController().signal
    let answered: ((status: ChangeResult['status']) => void) | undefined
    let result: ChangeResult = { ref, status: 'unknown', error: closed(ref) }
    const take = (_: number, told: ChangeResult): void => void (result = told)
    try {
      if (change.kind === 'add') answered = await additions.announce(change)
      if (leave.aborted) take(0, { ref, status: 'rejected', error: closed(ref) })
      else await scheduler.send([change], { leave, giveUp }, take, policy.term?.permit)
    } catch (thrown) {
      take(0, { ref, status: 'unknown', error: toDrainableError(thrown, provider.name, subject) })
    }
    answered?.(result.status)
    return 'error' in result ? result.error : undefined
  }
}

function closed(ref: MemberRef): DrainableError {
  return new DrainableError('CONFLICT', 'it was closed: nothing is sent', { ref })
}
