import type { DrainableProvider } from '../../provider/contract.js'
import { Listeners } from '../emitter.js'
import { DRAIN_EVENTS, type DrainEvent } from '../events.js'

/** The listeners of each provider, which get the events of every drain on it. */
const emitters = new WeakMap<DrainableProvider, Listeners<DrainEvent>>()

/** The listeners of a provider. */
export function listenersOf(provider: DrainableProvider): Listeners<DrainEvent> {
  let listeners = emitters.get(provider)
  if (listeners === undefined) {
    listeners = new Listeners(DRAIN_EVENTS)
    emitters.set(provider, listeners)
  }
  return listeners
}

/** Emits an event on the provider, if there is a listener. */
export function emitOn(provider: DrainableProvider, event: DrainEvent): void {
  emitters.get(provider)?.emit(event)
}
