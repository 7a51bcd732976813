import { abortable, within, type Bound, type Waits } from '../../provider/abort.js'
import type { Clock } from '../../provider/clock.js'
import { DrainableError, isDrainableError, wordsOf } from '../../provider/error.js'
import type { TicketStore } from './store.js'
import { lineOf } from './writing/line.js'

/** How long a store or `onTicket` may take for an answer before anything is changed, in milliseconds. */
export const FIRST_ANSWER = 30_000

/** How long it may take later: a member that is held must not wait for its ticket, in milliseconds. */
export const LATER_ANSWER = 2_000

/** How a store is asked. */
export type Asked = Pick<Bound, 'clock' | 'limit' | 'signals' | 'waiting'>

/** The store, for people. */
export const STORE = 'the ticket store'

/** How a store is asked before anything is changed. */
export function askedFirst({
  clock,
  signal,
  limit = FIRST_ANSWER,
  waits,
}: {
  readonly clock: Clock
  readonly signal: AbortSignal | undefined
  readonly limit?: number
  /** Told that it is waited for. */
  readonly waits?: Waits | undefined
}): Asked {
  return {
    clock,
    limit,
    signals: signal === undefined ? [] : [signal],
    waiting: waits && (() => waits.begin('ticket', () => STORE)),
  }
}

/** The bound of a call of a store. */
export function storeBound(asked: Asked): Bound {
  return {
    ...asked,
    peer: () => STORE,
    late: (words) => new DrainableError('TICKET_INVALID', words, { retryable: true }),
  }
}

/** The part of Keyv 4 to 6 that lists what it holds. */
interface KeyvLike {
  readonly namespace?: string
  iterator?(namespace?: string): AsyncIterable<unknown>
}

/** Whether it can be gone through. A text can, letter by letter, and is no list; nothing at all is no empty one. */
function isList<T>(items: unknown): items is Iterable<T> | AsyncIterable<T> {
  if (typeof items !== 'object' || items === null) return false
  return Symbol.iterator in items || Symbol.asyncIterator in items
}

function kindOf(value: unknown): string {
  if (value === undefined || value === null) return 'nothing'
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`
}

/** Whether a store lists what it holds. */
export function canList(store: TicketStore): boolean {
  return typeof store.keys === 'function' || typeof (store as KeyvLike).iterator === 'function'
}

/**
 * The calls of a caller's store. Each has its limit; when a signal fires, the present one is given up and no other one
 * begins. A change that was given up may still be carried out: see {@link TicketLine.change}.
 */
export class StoreCalls {
  readonly #store: TicketStore
  readonly #bound: Bound

  constructor(store: TicketStore, asked: Asked) {
    this.#store = store
    this.#bound = storeBound(asked)
  }

  get(key: string): Promise<unknown> {
    return this.#ask(() => this.#store.get(key))
  }

  set(key: string, value: unknown): Promise<unknown> {
    return this.#change(key, () => this.#store.set(key, value))
  }

  delete(key: string): Promise<unknown> {
    return this.#change(key, () => this.#store.delete(key))
  }

  /** What the store lists by itself: keys, or the entries of Keyv. `undefined` if it lists nothing. */
  list(): { keys: AsyncIterable<string> } | { entries: AsyncIterable<unknown> } | undefined {
    const store = this.#store
    if (typeof store.keys === 'function') return { keys: this.#each<string>(() => store.keys?.()) }
    const keyv = store as KeyvLike
    if (!canList(store)) return undefined
    return { entries: this.#each(() => keyv.iterator?.(keyv.namespace)) }
  }

  async *#each<T>(open: () => unknown): AsyncGenerator<T, void, undefined> {
    const items = await this.#ask(open)
    if (!isList<T>(items)) {
      const words = `${STORE} gave ${kindOf(items)} in place of a list of its keys`
      throw new DrainableError('TICKET_INVALID', words)
    }
    if (Symbol.iterator in items) {
      yield* items
      return
    }
    const iterator = items[Symbol.asyncIterator]()
    try {
      for (;;) {
        const step = await this.#ask(() => iterator.next())
        if (step.done === true) return
        yield step.value
      }
    } finally {
      // Not waited for: it may be the one that does not answer.
      iterator.return?.().then(undefined, () => undefined)
    }
  }

  #ask<T>(call: () => PromiseLike<T> | T): Promise<T> {
    return within(this.#bound, call)
  }

  #change(key: string, call: () => PromiseLike<unknown>): Promise<unknown> {
    return within(this.#bound, (signal) =>
      lineOf(this.#store, key).change(call, (ending) => abortable(ending, signal)),
    )
  }
}

/** Why a ticket could not be saved or deleted; `retryable` where only the answer is missing. */
export function notKept(verb: 'saved' | 'deleted', cause: unknown): DrainableError {
  const retryable = isDrainableError(cause, 'TICKET_INVALID') && cause.retryable
  const words = `the ticket could not be ${verb}: ${wordsOf(cause)}`
  return new DrainableError('TICKET_INVALID', words, { cause, retryable })
}

/** Whether a store says that what it has under a key is damaged, and not that it gave no answer. */
export function isDamaged(error: unknown): boolean {
  return isDrainableError(error, 'TICKET_INVALID') && !error.retryable
}

/** Several calls of a store as one: the limit is for all of them together. */
export async function askStore<T>(
  store: TicketStore,
  asked: Asked,
  ask: (calls: StoreCalls) => Promise<T>,
): Promise<T> {
  const { clock, limit } = asked
  const over = new AbortController()
  try {
    return await within(storeBound(asked), (signal) =>
      ask(new StoreCalls(store, { clock, limit, signals: [signal, over.signal] })),
    )
  } finally {
    over.abort() // a list that nobody waits for any more
  }
}
