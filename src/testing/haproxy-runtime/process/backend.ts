import type { Series } from '../options.js'
import type { Server, Session, Waiting } from './server.js'

/** A client that wants a server. */
export interface Claim {
  /** The server that a cookie names. */
  readonly wanted?: string
  /** A place was found: the work begins now. */
  readonly start: (server: Server) => Session
  /** There is no server for it. */
  readonly refuse: () => void
}

/** How long a request waits for a place, as by `timeout queue` (which is `timeout connect` by default). */
const QUEUE_TIMEOUT = 5_000

/** A backend as one process knows it: who serves, who waits. */
export class Backend {
  readonly id: number
  readonly name: string
  readonly mode: 'http' | 'tcp'
  readonly cookie: string | undefined
  readonly servers: Server[] = []
  readonly #version: Series
  /** Requests that any server may take. */
  readonly #queue: { readonly claim: Claim; readonly timer: NodeJS.Timeout }[] = []
  readonly counters = { smax: 0, qmax: 0, stot: 0 }

  constructor(
    id: number,
    name: string,
    version: Series,
    mode: 'http' | 'tcp',
    cookie: string | undefined,
  ) {
    this.id = id
    this.name = name
    this.mode = mode
    this.cookie = cookie
    this.#version = version
  }

  get queued(): number {
    return this.#queue.length
  }

  /** The requests that wait for any server. */
  get waiting(): readonly object[] {
    return this.#queue
  }

  find(name: string): Server | undefined {
    const byId = /^#(\d+)$/.exec(name)
    if (byId) return this.servers.find((server) => server.id === Number(byId[1]))
    return this.servers.find((server) => server.name === name)
  }

  /** Finds a place for a request, or lets it wait for one. The returned function withdraws what still waits. */
  claim(claim: Claim): () => void {
    const wanted = this.servers.find((server) => server.name === claim.wanted)
    if (wanted?.takesPersistent) return this.#claimOn(wanted, claim)
    const free = this.#queue.length > 0 ? undefined : this.#next()
    if (free) {
      this.#start(free, claim)
      return () => undefined
    }
    if (!this.#serving().length && this.#version !== '2.6') {
      claim.refuse()
      return () => undefined
    }
    return this.#wait(claim)
  }

  /** The session ends, and another request may have the place. */
  end(server: Server, session: Session): void {
    server.end(session)
    this.serveQueues(server)
  }

  /** Gives the free places of a server to those who wait for it, then to those who wait for any. */
  serveQueues(server: Server): void {
    while (server.queue.length > 0 && server.hasRoom) server.queue.shift()?.start(server)
    while (server.hasRoom && this.#serving().includes(server)) {
      const waiting = this.#queue.shift()
      if (!waiting) return
      clearTimeout(waiting.timer)
      this.#start(server, waiting.claim)
    }
  }

  /**
   * After a change of state: what waits for this server, and what waits for any.
   *
   * @param takes - whether it takes what waits: one that only leaves drain does not
   */
  stateChanged(server: Server, takes = true): void {
    if (server.inMaint && server.config.cutOnDown) server.cutSessions()
    // 2.6 serves what is queued even in maint; later versions move it at once.
    if (server.inMaint && this.#version !== '2.6') {
      for (const waiting of server.queue.splice(0)) waiting.leave()
    }
    if (takes) this.serveQueues(server)
    if (this.#version !== '2.6' && this.#serving().length === 0) this.refuseQueue()
  }

  refuseQueue(): void {
    for (const { claim, timer } of this.#queue.splice(0)) {
      clearTimeout(timer)
      claim.refuse()
    }
  }

  #claimOn(server: Server, claim: Claim): () => void {
    if (server.hasRoom) {
      this.#start(server, claim)
      return () => undefined
    }
    const waiting: Waiting = {
      start: (found) => this.#start(found, claim),
      leave: () => {
        const { start, refuse } = claim
        this.claim({ start, refuse })
      },
    }
    server.queue.push(waiting)
    server.counters.qmax = Math.max(server.counters.qmax, server.queue.length)
    return () => {
      const at = server.queue.indexOf(waiting)
      if (at >= 0) server.queue.splice(at, 1)
    }
  }

  #wait(claim: Claim): () => void {
    const remove = (): void => {
      clearTimeout(timer)
      const at = this.#queue.findIndex((waiting) => waiting.timer === timer)
      if (at >= 0) this.#queue.splice(at, 1)
    }
    const timer = setTimeout(() => {
      remove()
      claim.refuse()
    }, QUEUE_TIMEOUT)
    this.#queue.push({ claim, timer })
    this.counters.qmax = Math.max(this.counters.qmax, this.queued)
    return remove
  }

  #start(server: Server, claim: Claim): void {
    server.begin(claim.start(server))
    const open = this.servers.reduce((sum, s) => sum + s.sessions.size, 0)
    this.counters.stot++
    this.counters.smax = Math.max(this.counters.smax, open)
  }

  #serving(): readonly Server[] {
    const first = this.servers.filter((server) => server.serves && !server.config.backup)
    return first.length > 0 ? first : this.servers.filter((server) => server.serves)
  }

  /** Smooth weighted round robin over those with room. */
  #next(): Server | undefined {
    const serving = this.#serving().filter((server) => server.hasRoom)
    let best: Server | undefined
    let total = 0
    for (const server of serving) {
      server.credit += server.weight
      total += server.weight
      if (!best || server.credit > best.credit) best = server
    }
    if (best) best.credit -= total
    return best
  }
}
