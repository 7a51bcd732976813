import { EventEmitter } from 'eventemitter3'
import { DrainableError } from '../provider/error.js'
import { quote } from '../provider/quote.js'

/** An emitter whose events are known by name: a handle, or a provider of our factories. */
export interface TypedEvents<E extends { readonly type: string }> {
  /**
   * Listens to one kind of event.
   *
   * @throws `INVALID_OPTIONS` where there is no event of that name, or the listener is no function
   */
  on<K extends E['type']>(event: K, listener: (event: Extract<E, { type: K }>) => void): this
  /** Listens to the next event of one kind only. With it `events.once` of Node works too. */
  once<K extends E['type']>(event: K, listener: (event: Extract<E, { type: K }>) => void): this
  /** Stops listening. */
  off<K extends E['type']>(event: K, listener: (event: Extract<E, { type: K }>) => void): this
  /** The same as {@link TypedEvents.off}, by the name that `events.once` of Node calls. */
  removeListener<K extends E['type']>(
    event: K,
    listener: (event: Extract<E, { type: K }>) => void,
  ): this
}

/** `events.once` of Node listens to it beside the one it waits for. It never comes: a failure is a `fault` or an outcome. */
const NODES_OWN = 'error'

/** Holds the listeners of typed events (eventemitter3), and keeps what one throws away from the others. */
export class Listeners<E extends { readonly type: string }> {
  readonly #emitter = new EventEmitter()
  readonly #types: Readonly<Record<E['type'], true>>

  /** @param types - the name of every event; another one is refused */
  constructor(types: Readonly<Record<E['type'], true>>) {
    this.#types = types
  }

  /** Whether no listener is there. */
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

  /** Hands an event to every listener. What a listener throws surfaces as an uncaught error and harms no other. */
  emit(event: E): void {
    for (const listener of this.#emitter.listeners(event.type)) {
      // Called one by one, so those for one event are taken off by hand, before the call.
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

/** Runs a caller's function; what it throws surfaces as an uncaught error of the process. */
export function guarded(run: () => unknown): void {
  try {
    run()
  } catch (error) {
    queueMicrotask(() => {
      throw error
    })
  }
}
