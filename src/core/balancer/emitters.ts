import type { DrainableProvider } from '../../provider/contract.js'
import { Listeners } from '../emitter.js'
import { DRAIN_EVENTS, type ProviderEvent } from '../events.js'

/** The listeners of each provider, which get the events of every drain on it. */
const emitters = new WeakMap<DrainableProvider, Listeners<ProviderEvent>>()

/** The listeners of a provider. */
export function listenersOf(provider: DrainableProvider): Listeners<ProviderEvent> {
  let listeners = emitters.get(provider)
  if (listeners === undefined) {
    listeners = new Listeners(DRAIN_EVENTS)
    emitters.set(provider, listeners)
  }
  return listeners
}

/** Emits an event on the provider, if there is a listener. */
export function emitOn(provider: DrainableProvider, event: ProviderEvent): void {
  emitters.get(provider)?.emit(event)
}
