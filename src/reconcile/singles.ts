import type { Scheduler } from '../core/runner/look/scheduler.js'
import type { ResolvedPolicy } from '../core/verbs/policy.js'
import { canonicalAddress } from '../provider/address.js'
import type {
  Change,
  ChangeResult,
  DrainableProvider,
  MemberRef,
  PresentReading,
} from '../provider/contract.js'
import type { DrainableError } from '../provider/error.js'
import { toDrainableError } from '../provider/thrown.js'
import { Backoff } from './backoff.js'

/** A single change of ours that is no drain: an addition, or a removal without a wait. */
export interface Single {
  readonly ref: MemberRef
  readonly kind: 'add' | 'remove'
  readonly backoff: Backoff
  busy: boolean
  /** Why it failed; it is tried again. */
  held: string | null
}

/** What they are sent with. */
export interface SinglesSpec {
  readonly provider: DrainableProvider
  readonly scheduler: Scheduler
  readonly policy: ResolvedPolicy
  readonly subject: string
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
  /**
   * Members that we added, with the identity that they were first seen with. By their place: a product may
   * give them another name than the one that was asked for (BIG-IP: the partition before it).
   */
  readonly #added = new Map<string, string | null>()

  constructor(spec: SinglesSpec, hooks: SinglesHooks) {
    this.#spec = spec
    this.#hooks = hooks
  }

  get isBusy(): boolean {
    return [...this.all.values()].some(({ busy }) => busy)
  }

  /** Whether a member is one that we added. */
  added({ ref, identity, address, port }: PresentReading): boolean {
    if (address === undefined) return false
    const place = placeOf(ref, address, port)
    const known = this.#added.get(place)
    if (known === null) this.#added.set(place, identity)
    return known === null || known === identity
  }

  /** What is not planned any more is not tried again. */
  keepOnly(planned: ReadonlyMap<string, unknown>): void {
    for (const [key, { busy }] of this.all) if (!busy && !planned.has(key)) this.all.delete(key)
  }

  send(key: string, change: Change): void {
    const kind = change.kind === 'add' ? 'add' : 'remove'
    const known = this.all.get(key)
    const single: Single =
      known?.kind === kind
        ? known
        : { ref: change.ref, kind, backoff: new Backoff(), busy: false, held: null }
    this.all.set(key, single)
    if (single.busy || this.#now() < single.backoff.notBefore) return
    single.busy = true
    void this.#send(key, change, single)
  }

  async #send(key: string, change: Change, single: Single): Promise<void> {
    const { scheduler, policy, changed, fault, provider, subject } = this.#spec
    const leave = policy.signal ?? new AbortController().signal
    let result: ChangeResult | undefined
    try {
      const take = (_: number, told: ChangeResult): void => void (result = told)
      await scheduler.send([change], { leave, giveUp: leave }, take, policy.term?.permit)
    } catch (thrown) {
      const error = toDrainableError(thrown, provider.name, subject)
      result = { ref: change.ref, status: 'unknown', error }
    }
    single.busy = false
    this.#hooks.ended(key)
    // Also where the answer was lost: it may be there, and nobody else gives that name.
    if (change.kind === 'add' && result?.status !== 'rejected')
      this.#added.set(placeOf(change.ref, change.address, change.port), null)
    if (result === undefined || !('error' in result)) {
      this.all.delete(key)
      if (single.kind === 'remove') this.#hooks.removed(key)
    } else {
      single.held = result.error.message
      single.backoff.fail(this.#now())
      fault(result.error)
    }
    changed(true)
  }

  #now(): number {
    return this.#spec.policy.clock.now()
  }
}

function placeOf({ pool }: MemberRef, address: string, port: number | undefined): string {
  return `${pool}\0${canonicalAddress(address)}\0${port ?? ''}`
}
