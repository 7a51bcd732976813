/** Ports for what a test or a script starts by itself: no two processes on this machine get the same one. */
import { once } from 'node:events'
import { createServer, type Server } from 'node:net'

/** Below the range that the system gives to outgoing connections: those take a port at any moment. */
const PORTS = { from: 10_000, to: 32_000 } as const
/** So many a process has for itself at a time. */
const BLOCK = 200

/** The first port of the block of this process, which is kept listening on: nobody else takes the others. */
let block: { readonly first: number; readonly lock: Server } | undefined
let next = 0

/**
 * A port that nothing listens on. Between this answer and the start of whoever is to have it, another process that asked
 * at random could be given the same one; so each takes a block of them first.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    if (block === undefined || next >= block.first + BLOCK) {
      block = await takeBlock()
      next = block.first + 1
    }
    const port = next
    next += 1
    const server = await listenOn(port)
    if (server === undefined) continue
    server.close()
    await once(server, 'close')
    return port
  }
}

async function takeBlock(): Promise<NonNullable<typeof block>> {
  for (;;) {
    const count = (PORTS.to - PORTS.from) / BLOCK
    const first = PORTS.from + BLOCK * Math.floor(Math.random() * count)
    const lock = await listenOn(first)
    if (lock !== undefined) return { first, lock: lock.unref() }
  }
}

/** Undefined where something listens there already. */
function listenOn(port: number): Promise<Server | undefined> {
  const server = createServer((socket) => socket.destroy())
  return new Promise((resolve) => {
    server.once('error', () => resolve(undefined))
    server.listen(port, '127.0.0.1', () => resolve(server))
  })
}
