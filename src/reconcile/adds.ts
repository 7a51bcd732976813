import { isDeepStrictEqual } from 'node:util'
import type { Scheduler } from '../core/balancer/look/scheduler.js'
import type { ResolvedPolicy } from '../core/calls/policy.js'
import { LATER_ANSWER } from '../core/tickets/calls.js'
import { settledWithin } from '../provider/abort.js'
import { wallOf } from '../provider/clock.js'
import type {
  Capabilities,
  Change,
  ChangeResult,
  DrainableProvider,
  MemberRef,
} from '../provider/contract.js'
import { DrainableError, toDrainableError } from '../provider/error.js'
import type { Additions } from './additions.js'
import { Backoff } from './backoff.js'

/** A single change of ours that is no drain: an addition, or a removal without a wait. */
export interface Single {
  readonly ref: MemberRef
  readonly kind: 'add' | 'remove'
  readonly change: Change
  readonly backoff: Backoff
  /** ISO 8601: when it was sent first. */
  readonly since: string
  busy: boolean
  /** Why it failed; it is tried again. */
  held: string | null
}

/** What they are sent with. */
export interface SinglesSpec {
  readonly provider: DrainableProvider
  readonly scheduler: Scheduler
  readonly policy: ResolvedPolicy
  readonly additions: Additions
  readonly subject: string
  readonly capabilities: Pick<Capabilities, 'lateBound'>
  readonly changed: (soon: boolean) => void
  readonly fault: (error: DrainableError) => void
}

/** Told of what was sent. */
export interface SinglesHooks {
  readonly ended: (key: string) => void
  /** A member is out. */
  readonly removed: (key: string) => void
}

/** Additions, and removals without a wait. */
export class Singles {
  readonly all = new Map<string, Single>()
  readonly #spec: SinglesSpec
  readonly #hooks: SinglesHooks
  readonly #leave = new AbortController()
  readonly #sending = new Set<Promise<void>>()
  /** Until when a removal without an answer may still be carried out, by member. */
  readonly #late = new Map<string, number>()

  constructor(spec: SinglesSpec, hooks: SinglesHooks) {
    this.#spec = spec
    this.#hooks = hooks
  }

  get isBusy(): boolean {
    return [...this.all.values()].some(({ busy }) => busy)
  }

  /** Until when a member may still be taken out by a removal of ours; undefined where it can't be. */
  lateUntil(key: string): number | undefined {
    const until = this.#late.get(key)
    if (until === undefined || until > this.#now()) return until
    this.#late.delete(key)
    return undefined
  }

  /** What is not planned any more is not tried again; nor is a removal where a drain makes it. */
  keepOnly(planned: ReadonlyMap<string, { readonly change: Change }>, waits: boolean): void {
    for (const [key, { busy, kind }] of this.all) {
      const isPlanned = planned.get(key)?.change.kind === kind && !(waits && kind === 'remove')
      if (!busy && !isPlanned) this.all.delete(key)
    }
  }

  send(key: string, change: Change): void {
    const kind = change.kind === 'add' ? 'add' : 'remove'
    const known = this.all.get(key)
    // What failed says nothing of another change: one with another address is sent at once.
    const isKnown = known?.busy === true || isDeepStrictEqual(known?.change, change)
    const single: Single =
      known?.kind === kind && isKnown
        ? known
        : {
            ref: change.ref,
            kind,
            change,
            backoff: new Backoff(),
            since: this.#iso(),
            busy: false,
            held: null,
          }
    this.all.set(key, single)
    if (single.busy || this.#now() < single.backoff.notBefore) return
    single.busy = true
    const sending = this.#send(key, change, single).finally(() => this.#sending.delete(sending))
    this.#sending.add(sending)
  }

  /** Waits for what is being written or sent, for a moment, and for the list of what was added. */
  async end(): Promise<void> {
    this.#leave.abort()
    const { additions, policy } = this.#spec
    const ended = Promise.all(this.#sending).then(() => additions.written())
    await settledWithin(ended, policy.clock, LATER_ANSWER)
  }

  async #send(key: string, change: Change, single: Single): Promise<void> {
    const { additions, changed, fault, capabilities } = this.#spec
    let result: ChangeResult
    try {
      const answered = change.kind === 'add' ? await additions.announce(change) : undefined
      result = await this.#sent(change)
      answered?.(result.status)
    } catch (thrown) {
      result = { ref: change.ref, status: 'rejected', error: this.#toError(thrown) }
    }
    single.busy = false
    this.#hooks.ended(key)
    const isLate = single.kind === 'remove' && result.status === 'unknown'
    if (isLate) this.#late.set(key, this.#now() + capabilities.lateBound)
    if (!('error' in result)) {
      this.all.delete(key)
      this.#late.delete(key)
      if (single.kind === 'remove') this.#hooks.removed(key)
    } else {
      single.held = result.error.message
      single.backoff.fail(this.#now())
      if (!this.#leave.signal.aborted) fault(result.error)
    }
    changed(true)
  }

  /** Sends it, unless it is over by now: the store may have taken its time. */
  async #sent(change: Change): Promise<ChangeResult> {
    const { scheduler, policy } = this.#spec
    const { ref } = change
    if (this.#leave.signal.aborted) return { ref, status: 'rejected', error: closed(ref) }
    const leave = this.#leave.signal
    let result: ChangeResult | undefined
    try {
      const giveUp = new AbortController().signal
      const take = (_: number, told: ChangeResult): void => void (result = told)
      await scheduler.send([change], { leave, giveUp }, take, policy.term?.permit)
    } catch (thrown) {
      return { ref, status: 'unknown', error: this.#toError(thrown) }
    }
    return result ?? { ref, status: 'unknown', error: closed(ref) }
  }

  #toError(thrown: unknown): DrainableError {
    const { provider, subject } = this.#spec
    return toDrainableError(thrown, provider.name, subject)
  }

  #iso(): string {
    return new Date(wallOf(this.#spec.policy.clock)).toISOString()
  }

  #now(): number {
    return this.#spec.policy.clock.now()
  }
}

function closed(ref: MemberRef): DrainableError {
  return new DrainableError('CONFLICT', 'it was closed: nothing is sent', { ref })
}
