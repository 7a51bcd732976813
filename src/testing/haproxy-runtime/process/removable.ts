import type { Server } from './server.js'
import type { Worker } from './worker.js'

/** Why `del server` refuses; in the product's own order. */
export function whyKept(worker: Worker, server: Server): string | undefined {
  if (worker.isReferenced(server)) {
    return 'This server cannot be removed at runtime due to other configuration elements pointing to it.\n'
  }
  if (!server.inMaint) return 'Only servers in maintenance mode can be deleted.\n'
  // 2.6 counts the pooled connections too.
  const pooled = worker.config.version === '2.6' ? server.pooled() : 0
  if (server.sessions.size + server.queue.length + pooled > 0) {
    return 'Server still has connections attached to it, cannot remove it.\n'
  }
  return undefined
}
