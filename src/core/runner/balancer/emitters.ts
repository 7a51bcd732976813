import type { DrainableProvider } from '../../../provider/contract.js'
import { Listeners } from '../../emitter.js'
import { DRAIN_EVENTS, type DrainEvent } from '../../events.js'

/** Where the events of every drain on a provider go as well. */
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

/** Emits on the provider, where there is a listener. */
export function emitOn(provider: DrainableProvider, event: DrainEvent): void {
  emitters.get(provider)?.emit(event)
}
