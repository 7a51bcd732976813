import type {
  CallContext,
  Change,
  ChangeResult,
  DrainableProvider,
  MemberRef,
  ProviderInfo,
  Snapshot,
} from 'drainable'
import { DrainableError } from 'drainable'
import type { BalancerProcess } from './balancer-process.js'
import type { ApplyFate, ControlPlane } from './control-plane.js'
import type { Judge } from '../judge/judge.js'
import type { Samples } from '../judge/samples.js'
import type { SentChange } from '../judge/sent-change.js'
import { keyOf } from './member.js'
import type { UserProcess } from '../user/user-process.js'

/** One answered look, as it was given to the library. */
export interface Delivery {
  readonly askedAt: number
  /** When it was read. */
  readonly readAt: number
  readonly at: number
  readonly snapshot: Snapshot
}

const MEMORY = 30

/** A provider of one user process over the hidden balancer, true to the contract. */
export class ModelProvider implements DrainableProvider {
  readonly specVersion = 1
  readonly name = 'model'
  readonly instance: string
  readonly #plane: ControlPlane
  readonly #samples: Samples
  readonly #judge: Judge
  readonly #process: UserProcess
  /** The newest looks that were answered, oldest first. */
  readonly deliveries: Delivery[] = []

  constructor(
    instance: string,
    plane: ControlPlane,
    samples: Samples,
    judge: Judge,
    process: UserProcess,
  ) {
    this.instance = instance
    this.#plane = plane
    this.#samples = samples
    this.#judge = judge
    this.#process = process
  }

  describe(ctx: CallContext): Promise<ProviderInfo> {
    const { lie, capabilities } = this.#plane.truth.product
    const said =
      lie === 'blind' || lie === 'lateBound' ? { ...capabilities, [lie]: 0 } : capabilities
    return this.#answer(ctx, () => ({ product: 'model', version: '1', capabilities: said }))
  }

  observe(refs: readonly MemberRef[] | 'all', ctx: CallContext): Promise<Snapshot> {
    const askedAt = this.#plane.now
    const mayHide = (process: BalancerProcess): boolean => this.#knownToAll(process)
    let readAt = askedAt
    return this.#answer(
      ctx,
      () => {
        readAt = this.#plane.now
        this.#plane.truth.figures.add('looks')
        return this.#samples.look(refs, this.#plane.calm, mayHide)
      },
      (snapshot) => {
        this.deliveries.push({ askedAt, readAt, at: this.#plane.now, snapshot })
        if (this.deliveries.length > MEMORY) this.deliveries.shift()
      },
    )
  }

  apply(changes: readonly Change[], ctx: CallContext): Promise<readonly ChangeResult[]> {
    if (!this.#process.alive) return new Promise(() => undefined)
    ctx.signal.throwIfAborted()
    return new ApplyCall(this.#plane, this.#judge, this.#process, this, changes, ctx).answer
  }

  close(): Promise<void> {
    return Promise.resolve()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  /** Whether every drain that could miss a process has been shown it before. */
  #knownToAll(process: BalancerProcess): boolean {
    const calls = this.#judge.liveOn(this)
    return calls.every((call) =>
      this.deliveries.some(
        ({ askedAt, snapshot }) =>
          askedAt >= call.processStartedAt &&
          [...call.keys].every((key) =>
            snapshot.readings.some(
              ({ ref, scopes }) =>
                keyOf(ref) === key && scopes.some(({ scope }) => scope === process.name),
            ),
          ),
      ),
    )
  }

  /** A call that only reads: read half-way, answered at the end, given up at once. */
  #answer<T>(ctx: CallContext, read: () => T, answered?: (value: T) => void): Promise<T> {
    const process = this.#process
    const plane = this.#plane
    if (!process.alive) return new Promise(() => undefined)
    ctx.signal.throwIfAborted()
    const { clock } = plane.truth
    return new Promise((resolve, reject) => {
      const cancels: (() => void)[] = []
      const onAbort = (): void => {
        for (const cancel of cancels) cancel()
        if (process.alive) reject(ctx.signal.reason)
      }
      ctx.signal.addEventListener('abort', onAbort, { once: true })
      const later = (fn: () => void, ms: number): void =>
        void cancels.push(clock.setTimeout(fn, ms))
      const finish = (end: () => void): void => {
        ctx.signal.removeEventListener('abort', onAbort)
        if (process.alive) end()
      }
      const ask = (): void => {
        const wait = plane.frozenFor()
        if (wait > 0) {
          later(ask, wait + 1)
          return
        }
        if (plane.failsForGood()) {
          plane.truth.figures.add('looks that failed for good')
          finish(() => reject(refusedForGood(plane.random.pick(FOR_GOOD))))
          return
        }
        if (plane.observeFails()) {
          plane.truth.figures.add('failed looks')
          finish(() => reject(lostConnection('the look failed')))
          return
        }
        const value = read()
        later(() => {
          finish(() => {
            answered?.(value)
            resolve(value)
          })
        }, plane.latency() / 2)
      }
      later(ask, plane.latency() / 2)
    })
  }
}

/** What `ctx` offers from the new core on. */
type ResultContext = CallContext & {
  readonly result?: (index: number, result: ChangeResult) => void
}

/** One call that changes something, from the asking to the answer and beyond. */
class ApplyCall {
  readonly answer: Promise<readonly ChangeResult[]>
  readonly #plane: ControlPlane
  readonly #judge: Judge
  readonly #process: UserProcess
  readonly #ctx: ResultContext
  readonly #sent: readonly SentChange[]
  readonly #fate: ApplyFate
  #settle: { resolve: (r: readonly ChangeResult[]) => void; reject: (e: unknown) => void }
  #over = false
  #executing = false

  constructor(
    plane: ControlPlane,
    judge: Judge,
    process: UserProcess,
    provider: ModelProvider,
    changes: readonly Change[],
    ctx: ResultContext,
  ) {
    this.#plane = plane
    this.#judge = judge
    this.#process = process
    this.#ctx = ctx
    this.#sent = changes.map((change) => judge.sends(process, provider, change))
    this.#fate = plane.fate()
    if (this.#fate !== 'done') plane.truth.figures.add(`changes: ${this.#fate}`)
    const { promise, resolve, reject } = Promise.withResolvers<readonly ChangeResult[]>()
    this.answer = promise
    this.#settle = { resolve, reject }
    const onAbort = (): void => this.#giveUp()
    ctx.signal.addEventListener('abort', onAbort, { once: true })
    promise.then(
      () => ctx.signal.removeEventListener('abort', onAbort),
      () => ctx.signal.removeEventListener('abort', onAbort),
    )
    this.#later(() => this.#arrives(), plane.latency() / 2)
  }

  #later(fn: () => void, ms: number): void {
    this.#plane.truth.clock.setTimeout(fn, ms)
  }

  /** The request is at the balancer. */
  #arrives(): void {
    const wait = this.#plane.frozenFor()
    if (wait > 0) {
      this.#later(() => this.#arrives(), wait + 1 + (this.#over ? this.#plane.lateness() : 0))
      return
    }
    if (this.#executing) return
    this.#executing = true
    const fate = this.#fate
    switch (fate) {
      case 'done':
        this.#oneByOne(this.#sent.length, (results) => this.#end(() => this.#told(results)))
        return
      case 'half': {
        const half = Math.ceil(this.#sent.length / 2)
        this.#oneByOne(half, () => this.#lose())
        return
      }
      case 'answer-lost':
        this.#execute()
        this.#lose()
        return
      case 'not-done':
        this.#lose()
        return
      case 'late':
        this.#lose()
        this.#later(() => this.#execute(), this.#plane.lateness())
        return
      case 'hangs':
        // until it is given up; carried out or not, at once or late
        if (this.#plane.random.chance(0.5)) this.#execute()
        return
      case 'said-unknown':
        this.#sayUnknown()
        return
      case 'refused':
      case 'refused-for-now':
        this.#end(() => this.#told(this.#sent.map((sent) => this.#refusal(sent, fate))))
        return
      default:
        fate satisfies never
    }
  }

  /** The changes of a batch, each handed up as it ends. */
  #oneByOne(count: number, then: (results: readonly ChangeResult[]) => void): void {
    const results: ChangeResult[] = []
    const next = (): void => {
      const sent = this.#sent[results.length]
      if (results.length >= count || sent === undefined) {
        this.#later(() => then(results), this.#plane.latency() / 2)
        return
      }
      const result = this.#plane.truth.apply(sent)
      results.push(result)
      const { result: tell } = this.#ctx
      if (!this.#over && this.#process.alive && tell !== undefined) {
        const i = results.length - 1
        this.#process.run(() => tell(i, result)) // with the globals of its process
        this.#learned(sent)
      }
      if (results.length < count) this.#later(next, this.#plane.random.int(0, 5))
      else next()
    }
    next()
  }

  #execute(): void {
    for (const sent of this.#sent) {
      if (sent.executedAt === Infinity) this.#plane.truth.apply(sent)
    }
  }

  #sayUnknown(): void {
    const done = this.#plane.random.pick(['now', 'late', 'never'] as const)
    if (done === 'now') this.#execute()
    const error = lostConnection('it is not known')
    this.#end(() => {
      this.#lost()
      this.#settle.resolve(
        this.#sent.map(({ change }) => ({ ref: change.ref, status: 'unknown', error })),
      )
    })
    if (done === 'late') this.#later(() => this.#execute(), this.#plane.lateness())
  }

  #refusal({ change }: SentChange, fate: 'refused' | 'refused-for-now'): ChangeResult {
    const { ref } = change
    const code = fate === 'refused' ? 'REJECTED' : 'CONFLICT'
    const error = new DrainableError(code, `${keyOf(ref)}: the model refuses`, { ref })
    return { ref, status: 'rejected', error }
  }

  #told(results: readonly ChangeResult[]): void {
    this.#sent.forEach((sent, i) => {
      this.#learned(sent)
      const result = results[i]
      if (result?.status === 'rejected') this.#judge.refused(sent)
    })
    this.#settle.resolve(results)
  }

  #learned(sent: SentChange): void {
    if (sent.answer !== 'open') return
    sent.answer = 'told'
    sent.answeredAt = this.#plane.now
  }

  #lose(): void {
    this.#end(() => {
      this.#lost()
      this.#settle.reject(lostConnection('the connection was lost'))
    })
  }

  #lost(): void {
    for (const sent of this.#sent) {
      if (sent.answer !== 'open') continue
      sent.answer = 'lost'
      sent.answeredAt = this.#plane.now
    }
  }

  #end(end: () => void): void {
    if (this.#over) return
    this.#over = true
    if (this.#process.alive) end()
  }

  /** The library does not wait any longer; the balancer may still do it. */
  #giveUp(): void {
    if (this.#over) return
    this.#end(() => {
      this.#lost()
      this.#settle.reject(this.#ctx.signal.reason)
    })
    if (this.#fate === 'hangs' && this.#plane.random.chance(0.5))
      this.#later(() => this.#execute(), this.#plane.lateness())
  }
}

/** What keeps looks from ever succeeding until a person does something. */
const FOR_GOOD = ['UNREACHABLE', 'UNAUTHENTICATED', 'FORBIDDEN', 'MALFORMED_REPLY'] as const

function refusedForGood(code: (typeof FOR_GOOD)[number]): DrainableError {
  const data = { provider: 'model', retryable: false }
  return new DrainableError(code, 'model: the look is refused until a person mends it', data)
}

function lostConnection(text: string): DrainableError {
  return new DrainableError('CONNECTION_LOST', `model: ${text}`, { provider: 'model' })
}
