import type { TicketStore } from '../core/tickets/store.js'

/**
 * Tickets for as long as the process lives, where the caller gave no store: a drain that is begun anew, with
 * another level or for a removal, has to know what the one before it changed.
 */
export function memoryTickets(): TicketStore {
  const kept = new Map<string, unknown>()
  return {
    get: (key) => Promise.resolve(kept.get(key)),
    set: (key, value) => Promise.resolve(void kept.set(key, value)),
    delete: (key) => Promise.resolve(void kept.delete(key)),
    keys: () => kept.keys(),
  }
}
