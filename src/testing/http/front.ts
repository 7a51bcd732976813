import { Failures } from '../failures.js'
import {
  toRemembered,
  type HttpFakeFailure,
  type HttpFakeRequest,
  type IncomingRequest,
} from './request.js'
import { HttpServer, type HttpAddress, type HttpAnswer } from './server.js'

/** What a product's own HTTP side is like. */
export interface FrontOptions<F extends HttpFakeFailure, R extends HttpFakeRequest> {
  /** What is remembered of a request besides what every fake remembers. */
  readonly remember: (base: HttpFakeRequest, request: IncomingRequest, name: string) => R
  /** The answer of `status`, in the product's words. */
  readonly error: (failure: F) => HttpAnswer
  /** The answer of `garbage`. */
  readonly garbage: HttpAnswer
  /** Whether a failure is for the address of this name. @default for all of them */
  readonly isFor?: (failure: F, name: string) => boolean
}

/**
 * The HTTP side of a fake: its addresses, what came to them, and what is made to go wrong there. The only place
 * where a fake listens, reads, remembers and fails.
 */
export class HttpFront<F extends HttpFakeFailure, R extends HttpFakeRequest> {
  /** Every request at every address, oldest first. */
  readonly requests: R[] = []
  readonly #options: FrontOptions<F, R>
  readonly #failures = new Failures<F>()
  readonly #servers = new Map<string, HttpServer>()

  constructor(options: FrontOptions<F, R>) {
    this.#options = options
  }

  /** Another address; it listens from {@link HttpFront.open} on. */
  add(name: string, address: HttpAddress): HttpServer {
    const server = new HttpServer(address, (request) => this.#receive(name, request))
    this.#servers.set(name, server)
    return server
  }

  /** Listens at every address. Where one can't be had, none is kept. */
  async open(): Promise<void> {
    try {
      for (const server of this.#servers.values()) await server.listen()
    } catch (error) {
      await this.close()
      throw error
    }
  }

  get peak(): number {
    return Math.max(0, ...[...this.#servers.values()].map(({ peak }) => peak))
  }

  get sockets(): number {
    return [...this.#servers.values()].reduce((sum, { sockets }) => sum + sockets, 0)
  }

  /** Cuts every connection; new ones are taken. */
  hangUp(): void {
    for (const server of this.#servers.values()) server.hangUp()
  }

  /** Lets requests go wrong; the returned function ends that. */
  fail(what: F): () => Promise<void> {
    const { isFor = () => true } = this.#options
    const meant = [...this.#servers].filter(([name]) => isFor(what, name))
    return this.#failures.begin(
      what,
      meant.map(([, server]) => server),
    )
  }

  /** Cuts every connection, and listens no more. */
  async close(): Promise<void> {
    this.#failures.close()
    await Promise.all([...this.#servers.values()].map((server) => server.close()))
  }

  #receive(name: string, request: IncomingRequest) {
    const { remember, error, garbage, isFor = () => true } = this.#options
    const base = toRemembered(request)
    const kept: { status: number } & R = remember(base, request, name)
    this.requests.push(kept)
    const failure = this.#failures.take(base.line, (what) => isFor(what, name))
    const instead =
      failure?.how === 'status'
        ? withHeaders(error(failure), failure)
        : failure?.how === 'garbage'
          ? garbage
          : undefined
    const answered = (status: number): void => {
      kept.status = status
    }
    return { failure, instead, answered }
  }
}

function withHeaders(answer: HttpAnswer, { headers }: HttpFakeFailure): HttpAnswer {
  return headers === undefined ? answer : { ...answer, headers: { ...answer.headers, ...headers } }
}
