import type { Lane, Place } from '../../data-plane/lane.js'
import type { Backend } from './backend.js'
import type { ProcessGroup } from './process-group.js'
import type { Server, Session } from './server.js'
import type { Worker } from './worker.js'

/** Tries after a refused connect, and the pause before each: for so long the request is in no counter. */
const RETRIES = 3
const TURN_AROUND = 1_000

/** A client connection belongs to the process that accepted it, also after a reload. */
export function openLane(group: ProcessGroup, pool: string, client: object): Lane {
  const worker = group.current
  const backend = worker.backend(pool)
  worker.clients.add(client)
  worker.counters.connections++
  return {
    get leaving() {
      return worker.isOld
    },
    claim: (wanted, found) => {
      worker.counters.requests++
      if (!backend) {
        found(undefined)
        return () => undefined
      }
      return backend.claim({
        ...(wanted !== undefined && { wanted }),
        start: (server) => {
          const place = new ServerPlace(worker, backend, server)
          // The claim is answered when the session is counted, not before.
          queueMicrotask(() => found(place))
          return place
        },
        refuse: () => found(undefined),
      })
    },
    close: () => {
      worker.clients.delete(client)
      worker.release()
    },
    onEnd: (fn) => worker.onEnd(fn),
  }
}

/** A session that real traffic stands behind. */
class ServerPlace implements Place, Session {
  readonly name: string
  readonly host: string
  readonly port: number
  tunnel = false
  readonly since = Date.now()
  readonly #worker: Worker
  readonly #backend: Backend
  readonly #server: Server
  #cut = (): void => undefined
  #timer: NodeJS.Timeout | undefined
  #tries = 0
  #over = false

  constructor(worker: Worker, backend: Backend, server: Server) {
    this.#worker = worker
    this.#backend = backend
    this.#server = server
    const { host, port } = server.config.to
    this.name = server.name
    // Where the address was changed by hand, that is where it goes.
    const moved = server.address !== server.config.address || server.port !== server.config.port
    this.host = moved ? server.address : host
    this.port = moved ? server.port : port
    server.counters.requests++
  }

  cut(): void {
    this.#over = true
    clearTimeout(this.#timer)
    this.#server.hidden.delete(this)
    this.#cut()
    this.#worker.release()
  }

  end(): void {
    if (this.#over) return
    this.#over = true
    clearTimeout(this.#timer)
    this.#server.hidden.delete(this)
    this.#backend.end(this.#server, this)
    this.#worker.release()
  }

  onCut(fn: () => void): void {
    this.#cut = fn
    if (this.#over) fn()
  }

  retry(again: () => void): boolean {
    if (this.#over || this.#tries >= RETRIES) return false
    this.#tries++
    this.#server.counters.wretr++
    this.#server.hidden.set(this, 'retry')
    this.#backend.end(this.#server, this)
    // Then the same server again, whatever state it has been given meanwhile.
    this.#timer = setTimeout(() => {
      this.#server.hidden.delete(this)
      if (this.#over) return
      this.#server.begin(this)
      again()
    }, TURN_AROUND)
    return true
  }

  count(what: 'connect' | 'reuse' | 'client-abort' | 'refused'): void {
    const { counters } = this.#server
    if (what === 'connect') counters.connects++
    else if (what === 'reuse') counters.reuses++
    else if (what === 'client-abort') counters.clientAborts++
    else counters.econ++
  }

  answered(status: number): void {
    this.tunnel = status === 101
    const kind = Math.floor(status / 100) - 1
    const { hrsp } = this.#server.counters
    if (kind === 0 || kind === 1 || kind === 2 || kind === 3 || kind === 4) hrsp[kind]++
    else hrsp[5]++
  }

  bytes(fromClient: number, toClient: number): void {
    this.#server.counters.bin += fromClient
    this.#server.counters.bout += toClient
  }
}
