import { guarded, Listeners, type TypedEvents } from './emitter.js'

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
