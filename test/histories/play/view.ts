import {
  DrainableError,
  type CallContext,
  type Change,
  type ChangeResult,
  type Clock,
  type DrainableProvider,
  type MemberRef,
  type ProviderInfo,
  type Snapshot,
} from 'drainable'
import type { Balancer } from './balancer.js'
import type { Lines } from './lines.js'
import { sayChange } from './say.js'
import type { UserProcess } from './user-process.js'

/** A way to a balancer: what it shows can be less than what another one shows. */
export interface ViewOptions {
  /** The processes that can be read through it. Left out: all. */
  readonly sees?: readonly string[]
}

/** How long a call is under way to the balancer, and back. */
const WAY = 1

/** A provider object of one process: what it sends is said, and its calls end with the process. */
export class View implements DrainableProvider {
  readonly specVersion = 1
  readonly name = 'scripted'
  readonly instance: string
  readonly #balancer: Balancer
  readonly #process: UserProcess
  readonly #lines: Lines
  readonly #sees: readonly string[] | undefined
  readonly #closing = new AbortController()

  constructor(
    instance: string,
    balancer: Balancer,
    process: UserProcess,
    lines: Lines,
    { sees }: ViewOptions,
  ) {
    this.instance = instance
    this.#balancer = balancer
    this.#process = process
    this.#lines = lines
    this.#sees = sees
  }

  describe(ctx: CallContext): Promise<ProviderInfo> {
    return this.#read(ctx, (signal) => this.#balancer.fake.describe({ ...ctx, signal }))
  }

  observe(refs: readonly MemberRef[] | 'all', ctx: CallContext): Promise<Snapshot> {
    return this.#read(ctx, async (signal) => {
      const snapshot = await this.#balancer.fake.observe(refs, { ...ctx, signal })
      return this.#balancer.edit(snapshot, this.#sees)
    })
  }

  apply(changes: readonly Change[], ctx: CallContext): Promise<readonly ChangeResult[]> {
    if (this.#process.alive && !this.#closing.signal.aborted)
      for (const change of changes)
        this.#lines.say(this.#process.name, `${this.#to}send ${sayChange(change)}`)
    return this.#call(ctx, (signal) =>
      this.#balancer.take(changes, this.#process.name, signal, (index, result) => {
        if (this.#process.alive) ctx.result?.(index, result)
      }),
    )
  }

  close(): Promise<void> {
    this.#closing.abort(closed())
    return Promise.resolve()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  /** Where there are several balancers, the one that is asked. */
  get #to(): string {
    return this.#balancer.name === DEFAULT_BALANCER ? '' : `${this.#balancer.name}: `
  }

  #read<T>(ctx: CallContext, read: (signal: AbortSignal) => Promise<T>): Promise<T> {
    return this.#call(ctx, async (signal) => {
      await this.#balancer.untilLooksGo(signal)
      if (this.#balancer.looks === 'fail')
        throw new DrainableError('UNREACHABLE', 'the balancer does not answer')
      return read(signal)
    })
  }

  async #call<T>(ctx: CallContext, call: (signal: AbortSignal) => Promise<T>): Promise<T> {
    await this.#process.untilHistoryEnds()
    const signal = AbortSignal.any([ctx.signal, this.#closing.signal])
    signal.throwIfAborted()
    try {
      await pause(ctx.clock, WAY, signal)
      const value = await call(signal)
      await pause(ctx.clock, WAY, signal)
      return value
    } finally {
      await this.#process.untilHistoryEnds()
    }
  }
}

/** The balancer of a history that names none. */
export const DEFAULT_BALANCER = 'lb'

/** What every call of a closed provider ends with. */
function closed(): DrainableError {
  const data = { retryable: false }
  return new DrainableError('CONNECTION_LOST', 'the provider is closed', data)
}

function pause(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      cancel()
      reject(signal.reason)
    }
    const cancel = clock.setTimeout(() => {
      signal.removeEventListener('abort', stop)
      resolve()
    }, ms)
    if (signal.aborted) stop()
    else signal.addEventListener('abort', stop, { once: true })
  })
}
