import type { DrainableProvider, MemberRef, Reading } from '../../provider/contract.js'
import { systemClock } from '../../provider/clock.js'
import { refKey } from '../../provider/member-ref.js'
import { balancerOf } from '../balancer/balancer.js'
import type { ClaimedMember } from '../member/claimed.js'
import { isClosed } from '../../provider/error.js'
import { onLeftIdle } from './run/account.js'
import type { Look } from '../balancer/look/look.js'
import { searchPause } from '../balancer/look/cadence.js'
import { Run } from './run/run.js'
import { schedulerOf, type Scheduler, type Subscription } from '../balancer/look/scheduler.js'
import { parsePolicy, type ResolvedPolicy } from './policy.js'
import { baseSpec, newKeeper } from './drain-run.js'
import { watchPolicy } from './watch-policy.js'

const SETTLE = 1_000

/**
 * Watches members that other clients drain, for listeners on the provider itself: looks at everything from time to
 * time, and runs a watch on each drained member. It never changes anything and does not keep the process alive.
 */
export class Discovery {
  readonly #provider: DrainableProvider
  readonly #unheard: () => boolean
  readonly #scheduler: Scheduler
  readonly #resolved: ResolvedPolicy
  readonly #watches = new Map<string, Run>()
  /** Members that our own drains left idle since the last search: that idle was reported already. */
  readonly #left = new Map<string, ClaimedMember>()
  #subscription: Subscription | undefined
  /** How long the last search took, ms. */
  #took: number | undefined
  /** Whether a search has seen the members: what is found later was taken out while somebody listened. */
  #searched = false
  #stopped = false

  /** @param unheard - asked before each search: whether no listener is left and the search was stopped */
  constructor(provider: DrainableProvider, unheard: () => boolean) {
    this.#provider = provider
    this.#unheard = unheard
    this.#scheduler = schedulerOf(provider, systemClock)
    const policy = parsePolicy({}, 'withEvents()')
    this.#resolved = { ...policy, data: { ...policy.data, timeout: null } }
    onLeftIdle(provider, (claimed) => this.#left.set(refKey(claimed.ref), claimed))
    this.#search()
  }

  #search(): void {
    if (this.#stopped) return
    this.#subscription = this.#scheduler.join({
      refs: () => 'all',
      background: true,
      see: (look) => this.#found(look),
    })
  }

  stop(): void {
    this.#stopped = true
    onLeftIdle(this.#provider, undefined)
    this.#left.clear()
    this.#subscription?.leave()
    for (const run of this.#watches.values()) void run.release()
    this.#watches.clear()
  }

  #found(look: Look): void {
    if (this.#stopped || this.#unheard()) return
    if (look.error !== undefined && isClosed(look.error)) {
      this.stop()
      return
    }
    for (const reading of look.snapshot?.readings ?? []) this.#meet(reading)
    this.#searched ||= look.snapshot !== undefined
    this.#left.clear()
    this.#subscription?.next(searchPause(look.took, this.#took))
    this.#took = look.took
  }

  #meet(reading: Reading): void {
    const key = refKey(reading.ref)
    const known = this.#watches.get(key)
    const drained = reading.present && (closed(reading.own) || closed(reading.inherited))
    const isClaimed = balancerOf(this.#provider, systemClock).isClaimed(reading.ref)
    if (drained && !isClaimed) {
      if (known === undefined) this.#watch(key, reading.ref)
    } else if (known !== undefined && (isClaimed || hasSaidAll(known))) {
      this.#watches.delete(key)
      void known.release()
    }
  }

  #watch(key: string, ref: MemberRef): void {
    const { clock } = this.#resolved
    const left = this.#left.get(key)
    const keeper = newKeeper(this.#resolved, this.#provider)
    const run = new Run({
      ...baseSpec(this.#provider, this.#resolved, 'withEvents()', () => undefined),
      side: 'watch',
      background: true,
      ...(!this.#searched && { alreadyOut: true }),
      keeper: () => keeper,
      prepare: async ({ scheduler, signal, limit }) => {
        const info = await scheduler.describe(signal, limit())
        const policy = watchPolicy(info.capabilities, SETTLE)
        const goal = { kind: 'watch' } as const
        const known = left === undefined ? {} : { phase: left.claim.phase, proof: left.claim.proof }
        const start = { goal, policy, startedAt: clock.now(), deadline: null, ...known }
        return { claims: [{ ref, start }], keeper: undefined }
      },
    })
    this.#watches.set(key, run)
    void run.done.then(() => {
      if (this.#watches.get(key) === run) this.#watches.delete(key)
    })
  }
}

/**
 * Whether a watch has nothing left to report of a member that is no longer drained. This look can be newer than the
 * watch's own: a member that it reported as draining or idle must still be reported as open or gone.
 */
function hasSaidAll(watch: Run): boolean {
  return watch.report().members.every(({ phase }) => phase === 'active')
}

function closed(state: string | undefined): boolean {
  return state === 'drain' || state === 'maint'
}
