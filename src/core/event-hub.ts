import { EventEmitter } from 'eventemitter3'
import { DrainableError } from '../provider/error.js'
import { quote } from '../provider/quote.js'

/** Most events that wait for one reader. A slow reader loses `load` events first: the next one supersedes them. */
const MOST_WAITING = 1_000

interface Event {
  readonly type: string
}

class EventQueue<E extends Event> implements AsyncIterator<E> {
  readonly #waiting: E[] = []
  readonly #last: E['type']
  readonly #leave: () => void
  readonly #wakes = new Set<() => void>()
  #closed = false

  constructor(last: E['type'], leave: () => void) {
    this.#last = last
    this.#leave = leave
  }

  push(event: E): void {
    if (this.#closed) return
    if (this.#waiting.length >= MOST_WAITING) {
      const load = this.#waiting.findIndex((waiting) => waiting.type === 'load')
      if (load >= 0) this.#waiting.splice(load, 1)
    }
    this.#waiting.push(event)
    if (event.type === this.#last) this.#closed = true
    this.#wake()
  }

  async next(): Promise<IteratorResult<E>> {
    for (;;) {
      const event = this.#waiting.shift()
      if (event !== undefined) return { done: false, value: event }
      if (this.#closed) return { done: true, value: undefined }
      await new Promise<void>((resolve) => void this.#wakes.add(resolve))
    }
  }

  /** Wakes all waiting readers, in the order in which they asked. */
  #wake(): void {
    for (const wake of this.#wakes) wake()
    this.#wakes.clear()
  }

  return(): Promise<IteratorResult<E>> {
    this.#closed = true
    this.#waiting.length = 0
    this.#wake()
    this.#leave()
    return Promise.resolve({ done: true, value: undefined })
  }
}

/** The events of one handle, handed to every listener. */
export class Hub<E extends Event> {
  readonly listeners: Listeners<E>
  readonly #queues = new Set<EventQueue<E>>()
  readonly #onEvent: ((e: E) => void) | undefined
  readonly #last: E['type']
  readonly #telemetry: { event(event: E): void } | undefined
  #end: E | undefined

  /**
   * @param types - the name of every event
   * @param last - the event that ends an iteration
   * @param telemetry - where every event is published too
   */
  constructor(
    onEvent: ((e: E) => void) | undefined,
    types: Readonly<Record<E['type'], true>>,
    last: E['type'],
    telemetry?: { event(event: E): void },
  ) {
    this.#onEvent = onEvent
    this.#telemetry = telemetry
    this.#last = last
    this.listeners = new Listeners(types)
  }

  emit(event: E): void {
    // After the end, only events about the held drain are passed on.
    const ends = event.type === this.#last
    if (this.#end !== undefined && (ends || event.type === 'load')) return
    if (ends) this.#end = event
    this.#telemetry?.event(event)
    if (this.#onEvent !== undefined) guarded(() => this.#onEvent?.(event))
    this.listeners.emit(event)
    for (const queue of this.#queues) queue.push(event)
  }

  /** The event that ended it; undefined while it goes on. */
  get end(): E | undefined {
    return this.#end
  }

  /** Reads the events from now on; after the end, only the end event. */
  read(): AsyncIterator<E> {
    const queue: EventQueue<E> = new EventQueue(this.#last, () => this.#queues.delete(queue))
    if (this.#end === undefined) this.#queues.add(queue)
    else queue.push(this.#end)
    return queue
  }
}

/** The events of a handle: listeners by name, and the same events as an async iterator. */
export class HubHandle<E extends Event> implements TypedEvents<E>, AsyncIterable<E> {
  readonly #hub: Hub<E>

  constructor(hub: Hub<E>) {
    this.#hub = hub
  }

  on(event: string, listener: unknown): this {
    this.#hub.listeners.on(event, listener)
    return this
  }

  once(event: string, listener: unknown): this {
    this.#hub.listeners.once(event, listener)
    return this
  }

  off(event: string, listener: unknown): this {
    this.#hub.listeners.off(event, listener)
    return this
  }

  removeListener(event: string, listener: unknown): this {
    return this.off(event, listener)
  }

  [Symbol.asyncIterator](): AsyncIterator<E> {
    return this.#hub.read()
  }

  /** Whether it has ended. */
  protected get hasEnded(): boolean {
    return this.#hub.end !== undefined
  }
}

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
