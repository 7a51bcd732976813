import { EventEmitter } from 'eventemitter3'
import type { DrainableProvider } from '../../provider/contract.js'
import type { DrainEvent } from '../events.js'

/** Drain events by their type. */
export type DrainEvents = {
  [K in DrainEvent['type']]: (event: Extract<DrainEvent, { type: K }>) => void
}

/** Where the events of every drain on a provider go as well. */
const emitters = new WeakMap<DrainableProvider, EventEmitter>()

/** The emitter of a provider. */
export function emitterOf(provider: DrainableProvider): EventEmitter {
  let emitter = emitters.get(provider)
  if (emitter === undefined) {
    emitter = new EventEmitter()
    emitters.set(provider, emitter)
  }
  return emitter
}

/** Emits on the provider, where anybody listens. */
export function emitOn(provider: DrainableProvider, event: DrainEvent): void {
  const emitter = emitters.get(provider)
  if (emitter !== undefined) shout(emitter, event)
}

/** Emits one event. What a listener throws is the listener's: it surfaces as an uncaught error and harms no drain. */
export function shout(emitter: EventEmitter, event: DrainEvent): void {
  for (const listener of emitter.listeners(event.type)) {
    guarded(() => (listener as (e: DrainEvent) => void).call(emitter, event))
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
