import { EventEmitter } from 'eventemitter3'
import { DrainableError } from '../provider/error.js'
import { quote } from '../provider/quote.js'

/** An emitter of typed events: a handle, or a provider from one of our factories. */
export interface TypedEvents<E extends { readonly type: string }> {
  /**
   * Listens to one kind of event.
   *
   * @throws `INVALID_OPTIONS` if there is no event of that name, or the listener is not a function
   */
  on<K extends E['type']>(event: K, listener: (event: Extract<E, { type: K }>) => void): this
  /** Listens to the next event of one kind only. Node's `events.once` uses it too. */
  once<K extends E['type']>(event: K, listener: (event: Extract<E, { type: K }>) => void): this
  /** Stops listening. */
  off<K extends E['type']>(event: K, listener: (event: Extract<E, { type: K }>) => void): this
  /** The same as {@link TypedEvents.off}, under the name that Node's `events.once` calls. */
  removeListener<K extends E['type']>(
    event: K,
    listener: (event: Extract<E, { type: K }>) => void,
  ): this
}

/** Node's `events.once` also listens to this event. It is never emitted: a failure is a `fault` or an outcome. */
const NODES_OWN = 'error'

/** Holds the listeners of typed events (eventemitter3), and isolates each from the errors of the others. */
export class Listeners<E extends { readonly type: string }> {
  readonly #emitter = new EventEmitter()
  readonly #types: Readonly<Record<E['type'], true>>

  /** @param types - the names of all events; others are refused */
  constructor(types: Readonly<Record<E['type'], true>>) {
    this.#types = types
  }

  /** Whether there is no listener. */
  get isEmpty(): boolean {
    return this.#emitter.eventNames().every((name) => name === NODES_OWN)
  }

  on(type: string, listener: unknown): void {
    this.#check('on', type, listener)
    this.#emitter.on(type, listener)
  }

  once(type: string, listener: unknown): void {
    this.#check('once', type, listener)
    this.#emitter.once(type, listener)
  }

  off(type: string, listener: unknown): void {
    this.#check('off', type, listener)
    this.#emitter.off(type, listener)
  }

  /**
   * Passes an event to every listener. An error that a listener throws becomes an uncaught error and does not affect
   * the others.
   */
  emit(event: E): void {
    for (const listener of this.#emitter.listeners(event.type)) {
      // Listeners are called one by one, so a `once` listener is removed here, before its call.
      this.#emitter.off(event.type, listener, undefined, true)
      guarded(() => (listener as (e: E) => void).call(this.#emitter, event))
    }
  }

  #check(verb: string, type: unknown, listener: unknown): asserts listener is () => void {
    if (typeof type !== 'string' || (!Object.hasOwn(this.#types, type) && type !== NODES_OWN)) {
      const names = Object.keys(this.#types).join(', ')
      const found = typeof type === 'string' ? `'${quote(type, 40)}'` : String(type)
      throw new DrainableError(
        'INVALID_OPTIONS',
        `${verb}(): there is no event ${found}, expected one of ${names}`,
      )
    }
    if (typeof listener === 'function') return
    throw new DrainableError(
      'INVALID_OPTIONS',
      `${verb}('${type}'): expected a function as its listener`,
    )
  }
}

/** Runs a caller's function; an error that it throws becomes an uncaught error of the process. */
export function guarded(run: () => unknown): void {
  try {
    run()
  } catch (error) {
    queueMicrotask(() => {
      throw error
    })
  }
}
