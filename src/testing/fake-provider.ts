import { randomUUID } from 'node:crypto'
import { pause, type Clock } from '../provider/clock.js'
import { closedError, DrainableError } from '../provider/error.js'
import type {
  AdminState,
  CallContext,
  Capabilities,
  Change,
  ChangeResult,
  DrainableProvider,
  Health,
  MemberRef,
  PoolReading,
  ProviderInfo,
  Reading,
  Snapshot,
} from '../provider/contract.js'
import { formatRef } from '../provider/member-ref.js'
import { checkCount, checkOneOf, readFakeOptions } from './check-fake.js'
import { FakeBalancer, type FakeScope } from './fake-balancer.js'

export type { FakeScope } from './fake-balancer.js'

/** Options of {@link fakeProvider}. */
export interface FakeProviderOptions {
  /** Member names by pool. Each gets a made-up address. */
  readonly pools: Readonly<Record<string, readonly string[]>>
  /** The clock of `latency` and of calls that hang. Default: the clock of each call. */
  readonly clock?: Clock
  /**
   * Changes to the default capabilities: ready, drain and maint; maint is gentle; terminate, remove and add; a removal
   * keeps work; counts requests, completely and without delay; forgets admin states at a reload.
   */
  readonly capabilities?: Partial<Capabilities>
  /** How long each call takes, in milliseconds. Default 0: no timer at all. */
  readonly latency?: number
  /** The names of the processes that can hold work. Default: one, `worker`. */
  readonly scopes?: readonly string[]
  /** The value of {@link DrainableProvider.instance}. Default: a new one for each fake. */
  readonly instance?: string
  /** What the product does when no member serves. Default `refuse`. */
  readonly whenNone?: PoolReading['whenNone']
}

/** One call that a {@link FakeProvider} got. */
export interface FakeCall {
  readonly verb: 'describe' | 'observe' | 'apply'
  /** The time, by the clock of the call. */
  readonly at: number
  /** The refs of an `observe`. */
  readonly refs?: readonly MemberRef[] | 'all'
  /** The changes of an `apply`. */
  readonly changes?: readonly Change[]
}

/**
 * How a call fails.
 *
 * - `throw`: the connection is lost before anything is done
 * - `throw-after`: everything is done, then the connection is lost
 * - `hang`: no answer until the caller gives up
 * - `hang-after`: no answer until the caller gives up; the changes are done `late` ms after the call
 * - `reject`: every change is refused as a value (`apply` only)
 * - `unknown`: every change is done and reported as unknown (`apply` only)
 */
export type FakeFailure = 'throw' | 'throw-after' | 'hang' | 'hang-after' | 'reject' | 'unknown'

const FAILURES: readonly FakeFailure[] = [
  'throw',
  'throw-after',
  'hang',
  'hang-after',
  'reject',
  'unknown',
]

/** Options of {@link FakeProvider.failNext}: which calls fail, and how. */
export interface FakeFailureOptions {
  /** Only calls of this verb. Default: calls of any verb. */
  readonly verb?: FakeCall['verb']
  /** How many calls. Default 1. */
  readonly times?: number
  /** The error, in place of the default one. */
  readonly error?: DrainableError
  /** `hang-after`: how long after the call the changes are done, in milliseconds. Default 0. */
  readonly late?: number
  /**
   * How many changes an `apply` does, and reports by {@link CallContext.result}, before it throws or hangs. Default
   * 0.
   */
  readonly handedUp?: number
}

/** A provider with an in-memory balancer that the test controls completely. */
export interface FakeProvider extends DrainableProvider {
  /** Every call so far, oldest first. */
  readonly requests: readonly FakeCall[]
  /** Puts `n` requests in flight on a member; the returned function ends them. */
  occupy(ref: MemberRef, n?: number, scope?: string): () => void
  /** Queues `n` requests for a member; the returned function removes them. */
  queue(ref: MemberRef, n?: number, scope?: string): () => void
  /** Counts `n` requests that came and went between two looks. */
  arrive(ref: MemberRef, n?: number, scope?: string): void
  /** Changes the member as another client would. */
  setBehind(ref: MemberRef, to: AdminState | 'gone'): void
  /** Sets the state that the member inherits from its parent; `undefined` removes it. */
  setInherited(ref: MemberRef, to: AdminState | undefined): void
  /** Sets the result of the balancer's health checks. */
  setHealth(ref: MemberRef, health: Health): void
  /** Puts another machine under the same name. */
  setIdentity(ref: MemberRef, identity: string): void
  /**
   * Sets the processes. A process that is left out is listed as `ended`, as the contract requires. A name stands for
   * the process as it was, or for a new one in which everything works.
   */
  setScopes(scopes: readonly (string | FakeScope)[]): void
  /**
   * Reloads: replaces every process. The new process has the old name and a new incarnation, and counts from 0; admin
   * states are kept if the capability says so. Work in flight stays in an old process, listed as `<name>-old-<n>`,
   * which ends with the last work of any member in it; `cut` ends it at once.
   */
  reload(options?: { readonly cut?: boolean }): void
  /** Makes the next call fail. */
  failNext(how: FakeFailure, options?: FakeFailureOptions): void
  /** Makes every call throw `UNREACHABLE`, until {@link FakeProvider.connect}. */
  disconnect(): void
  /** Ends {@link FakeProvider.disconnect}. */
  connect(): void
  /** Returns the member's true own state. */
  state(ref: MemberRef): AdminState | 'gone'
  /** Returns the member's true work, in flight and queued, over all processes. */
  load(ref: MemberRef): number
}

const DEFAULTS: Capabilities = {
  ladder: ['ready', 'drain', 'maint'],
  maint: 'gentle',
  terminate: true,
  remove: true,
  removal: 'keeps',
  add: true,
  counts: 'requests',
  freshness: 0,
  blind: 0,
  lateBound: 0,
  survivesReload: false,
  countsAfterRemove: true,
}

/**
 * Makes an in-memory balancer for tests of code that drains: it follows the provider contract exactly, and fails only
 * on request.
 *
 * @example
 * ```ts
 * import { drain } from 'drainable'
 * import { fakeProvider } from 'drainable/testing'
 *
 * const lb = fakeProvider({ pools: { web: ['web1', 'web2'] } })
 * await drain(lb, { pool: 'web', member: 'web1' }, { timeout: '5s', settle: '0ms' })
 * console.log(lb.state({ pool: 'web', member: 'web1' })) // maint: drained, then sealed
 * ```
 */
export function fakeProvider(options: FakeProviderOptions): FakeProvider {
  return new InMemoryProvider(options)
}

interface PlannedFailure extends FakeFailureOptions {
  readonly how: FakeFailure
  left: number
}

class InMemoryProvider implements FakeProvider {
  readonly specVersion = 1
  readonly name = 'fake'
  readonly instance: string
  readonly #info: ProviderInfo
  readonly #balancer: FakeBalancer
  readonly #clock: Clock | undefined
  readonly #latency: number
  readonly #calls: FakeCall[] = []
  readonly #failures: PlannedFailure[] = []
  /** Aborts whatever is under way when the provider is closed. */
  readonly #closing = new AbortController()
  #connected = true

  constructor(given: FakeProviderOptions) {
    const options = readFakeOptions(given)
    const capabilities = { ...DEFAULTS, ...options.capabilities }
    this.instance = options.instance ?? `fake-${randomUUID()}`
    this.#info = { product: 'fake', version: '1.0', capabilities }
    this.#balancer = new FakeBalancer(
      options.pools,
      options.scopes ?? ['worker'],
      capabilities,
      options.whenNone ?? 'refuse',
    )
    this.#clock = options.clock
    this.#latency = options.latency ?? 0
  }

  get requests(): readonly FakeCall[] {
    return this.#calls
  }

  describe(ctx: CallContext): Promise<ProviderInfo> {
    return this.#call(ctx, { verb: 'describe', at: ctx.clock.now() }, () => this.#info)
  }

  observe(refs: readonly MemberRef[] | 'all', ctx: CallContext): Promise<Snapshot> {
    const at = ctx.clock.now()
    return this.#call(ctx, { verb: 'observe', at, refs }, () => this.#snapshot(refs, at))
  }

  apply(changes: readonly Change[], ctx: CallContext): Promise<readonly ChangeResult[]> {
    const call: FakeCall = { verb: 'apply', at: ctx.clock.now(), changes }
    const results: ChangeResult[] = []
    const goOn = (end: number, failure?: PlannedFailure): readonly ChangeResult[] => {
      for (const change of changes.slice(results.length, end)) {
        const result = this.#change(change, failure)
        results.push(result)
        if (!isLost(failure)) ctx.result?.(results.length - 1, result)
      }
      return results
    }
    return this.#call(
      ctx,
      call,
      (failure) => goOn(changes.length, failure),
      (failure) => goOn(failure.handedUp ?? 0),
    )
  }

  close(): Promise<void> {
    this.#closing.abort(closedError(this.name, this.instance))
    return Promise.resolve()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  occupy(ref: MemberRef, n = 1, scope?: string): () => void {
    checkCount('occupy()', n)
    return this.#balancer.work(ref, { active: n, queued: 0 }, scope)
  }

  queue(ref: MemberRef, n = 1, scope?: string): () => void {
    checkCount('queue()', n)
    return this.#balancer.work(ref, { active: 0, queued: n }, scope)
  }

  arrive(ref: MemberRef, n = 1, scope?: string): void {
    checkCount('arrive()', n)
    this.#balancer.work(ref, { active: n, queued: 0 }, scope)()
  }

  setBehind(ref: MemberRef, to: AdminState | 'gone'): void {
    checkOneOf('setBehind()', to, ['ready', 'drain', 'maint', 'gone'])
    if (to === 'gone') this.#balancer.drop(ref)
    else this.#balancer.revive(ref).own = to
  }

  setInherited(ref: MemberRef, to: AdminState | undefined): void {
    this.#balancer.member(ref).inherited = to
  }

  setHealth(ref: MemberRef, health: Health): void {
    checkOneOf('setHealth()', health, ['up', 'down', 'unchecked', 'unknown'])
    this.#balancer.member(ref).health = health
  }

  setIdentity(ref: MemberRef, identity: string): void {
    this.#balancer.member(ref).identity = identity
  }

  setScopes(scopes: readonly (string | FakeScope)[]): void {
    this.#balancer.setScopes(scopes)
  }

  reload(options: { readonly cut?: boolean } = {}): void {
    this.#balancer.reload(options.cut ?? false)
  }

  failNext(how: FakeFailure, options: FakeFailureOptions = {}): void {
    checkOneOf('failNext()', how, FAILURES)
    this.#failures.push({ ...options, how, left: options.times ?? 1 })
  }

  disconnect(): void {
    this.#connected = false
  }

  connect(): void {
    this.#connected = true
  }

  state(ref: MemberRef): AdminState | 'gone' {
    return this.#balancer.find(ref)?.own ?? 'gone'
  }

  load(ref: MemberRef): number {
    return this.#balancer.load(ref)
  }

  #change(change: Change, failure: PlannedFailure | undefined): ChangeResult {
    if (failure?.how === 'reject') return refused(change, failure.error)
    const result = this.#balancer.apply(change)
    return failure?.how === 'unknown' ? unknown(change.ref, failure) : result
  }

  #snapshot(refs: readonly MemberRef[] | 'all', at: number): Snapshot {
    const asked = refs === 'all' ? this.#balancer.refs() : refs
    const readings: Reading[] = asked.map((ref) => this.#balancer.read(ref, at))
    const pools = refs === 'all' ? this.#balancer.pools() : new Set(refs.map(({ pool }) => pool))
    return { readings, pools: this.#balancer.readPools(pools) }
  }

  /**
   * Everything that a call has in common: the log, the abort, the latency and the failure planned for it.
   *
   * @param begin - what is done before a failure that is in the middle of the call
   */
  async #call<T>(
    ctx: CallContext,
    call: FakeCall,
    work: (failure: PlannedFailure | undefined) => T,
    begin: (failure: PlannedFailure) => unknown = () => undefined,
  ): Promise<T> {
    ctx.signal.throwIfAborted()
    this.#closing.signal.throwIfAborted()
    this.#calls.push(call)
    const clock = this.#clock ?? ctx.clock
    // Only made where the call waits: it costs as much as the rest of a look, and a drain has 100 a second.
    const ending = (): AbortSignal => AbortSignal.any([ctx.signal, this.#closing.signal])
    const failure = this.#takeFailure(call.verb)
    if (failure?.how === 'hang' || failure?.how === 'hang-after') {
      begin(failure)
      if (failure.how === 'hang-after') {
        // Not cleared by an abort: a frozen balancer executes later what its client gave up.
        clock.setTimeout(() => void work(failure), failure.late ?? 0)
      }
      await untilAborted(ending())
    }
    if (this.#latency > 0) await pause(clock, this.#latency, ending())
    if (!this.#connected) {
      throw new DrainableError('UNREACHABLE', `The balancer ${this.instance} is disconnected`, {
        provider: this.name,
      })
    }
    if (isLost(failure)) begin(failure)
    if (failure?.how === 'throw') throw lost(failure)
    const result = work(failure)
    if (failure?.how === 'throw-after') throw lost(failure)
    return result
  }

  #takeFailure(verb: FakeCall['verb']): PlannedFailure | undefined {
    const found = this.#failures.find((f) => f.verb === undefined || f.verb === verb)
    if (found && --found.left <= 0) this.#failures.splice(this.#failures.indexOf(found), 1)
    return found
  }
}

/** Whether the answer to a call does not come, whatever was done of it. */
function isLost(failure: PlannedFailure | undefined): failure is PlannedFailure {
  return failure !== undefined && failure.how !== 'reject' && failure.how !== 'unknown'
}

function untilAborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const stop = (): void => reject(signal.reason)
    if (signal.aborted) stop()
    else signal.addEventListener('abort', stop, { once: true })
  })
}

function lost(failure: PlannedFailure): DrainableError {
  return failure.error ?? new DrainableError('CONNECTION_LOST', 'The fake lost its connection')
}

function refused({ ref }: Change, error: DrainableError | undefined): ChangeResult {
  const text = `${formatRef(ref)}: the fake was told to refuse this change`
  return { ref, status: 'rejected', error: error ?? new DrainableError('REJECTED', text, { ref }) }
}

function unknown(ref: MemberRef, failure: PlannedFailure): ChangeResult {
  return { ref, status: 'unknown', error: lost(failure) }
}
