import { homeOf } from '../../balancer/home.js'
import type { TicketStore } from '../store.js'

/** What two stores that keep their tickets in one place have in common: a path, or the storage behind them. */
export type Place = object | string

const places = (): WeakMap<object, Place> => homeOf('places', () => new WeakMap<object, Place>())

/** Notes where a store keeps its tickets. */
export function keptIn(store: TicketStore, place: Place): TicketStore {
  places().set(store, place)
  return store
}

/** Where a store, or a callback, keeps its tickets; each has a place of its own where nothing else is known. */
export function placeOf(kept: object): Place {
  return places().get(kept) ?? kept
}
