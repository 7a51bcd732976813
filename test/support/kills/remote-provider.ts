import {
  DrainableError,
  type CallContext,
  type Change,
  type ChangeResult,
  type DrainableProvider,
  type MemberRef,
  type ProviderInfo,
  type Snapshot,
} from 'drainable'
import { die, type Points } from './points.js'
import { say } from './said.js'
import type { Answer, Ask, WireResult } from './wire.js'

interface Waiting {
  readonly result: (index: number, result: WireResult) => void
  readonly resolve: (value: unknown) => void
}

type Body<T> = T extends { readonly id: number } ? Omit<T, 'id'> : never

/** The parent's balancer, seen from the child: each call has points at its begin, on its way and at its end. */
export class RemoteProvider implements DrainableProvider {
  readonly specVersion = 1
  readonly name = 'fake'
  readonly instance: string
  /** Looks so far. */
  looks = 0
  /** Called at the end of each look. */
  looked: () => void = () => undefined
  readonly #points: Points
  readonly #waiting = new Map<number, Waiting>()
  #ids = 0

  constructor(instance: string, points: Points) {
    this.instance = instance
    this.#points = points
  }

  async describe(ctx: CallContext): Promise<ProviderInfo> {
    this.#points.pass('describe')
    const info = await this.#ask({ verb: 'describe' }, ctx.signal)
    this.#points.pass('describe end')
    return info as ProviderInfo
  }

  async observe(refs: readonly MemberRef[] | 'all', ctx: CallContext): Promise<Snapshot> {
    this.#points.pass('observe')
    const sampledAt = ctx.clock.now()
    const found = (await this.#ask({ verb: 'observe', refs }, ctx.signal)) as Snapshot
    this.#points.pass('observe end')
    this.looks += 1
    this.looked()
    return {
      ...found,
      readings: found.readings.map((reading) => ({
        ...reading,
        scopes: reading.scopes.map((scope) => ({ ...scope, sampledAt })),
      })),
    }
  }

  async apply(changes: readonly Change[], ctx: CallContext): Promise<readonly ChangeResult[]> {
    const what = changes.map((change) => nameOf(change)).join(' ')
    this.#points.pass(`apply ${what}`)
    const dying = this.#points.reach(`apply sent ${what}`)
    const results: ChangeResult[] = []
    await this.#ask({ verb: 'apply', changes, dying }, ctx.signal, (index, wire) => {
      this.#points.pass(`apply result ${nameOf(changes[index]!)}`)
      const result = unwire(wire)
      results[index] = result
      ctx.result?.(index, result)
    })
    this.#points.pass(`apply end ${what}`)
    return results
  }

  /** What the parent answers. */
  take(answer: Answer): void {
    const waiting = this.#waiting.get(answer.id)
    if ('index' in answer) {
      waiting?.result(answer.index, answer.result)
      return
    }
    this.#waiting.delete(answer.id)
    waiting?.resolve(answer.value)
  }

  close(): Promise<void> {
    return Promise.resolve()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  #ask(
    body: Body<Ask>,
    signal: AbortSignal,
    result: Waiting['result'] = () => undefined,
  ): Promise<unknown> {
    signal.throwIfAborted()
    const id = ++this.#ids
    return new Promise((resolve, reject) => {
      const onAbort = (): void => {
        this.#waiting.delete(id)
        reject(signal.reason)
      }
      signal.addEventListener('abort', onAbort, { once: true })
      this.#waiting.set(id, {
        result,
        resolve: (value) => {
          signal.removeEventListener('abort', onAbort)
          resolve(value)
        },
      })
      say({ ...body, id })
      if (body.verb === 'apply' && body.dying) die()
    })
  }
}

function nameOf(change: Change): string {
  const to = 'to' in change ? `:${change.to}` : ''
  return `${change.ref.member}:${change.kind}${to}`
}

function unwire(wire: WireResult): ChangeResult {
  if (!('rejected' in wire)) return wire
  const { ref, rejected } = wire
  const error = new DrainableError('CONFLICT', rejected, { ref, retryable: false })
  return { ref, status: 'rejected', error }
}
