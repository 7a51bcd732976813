import type { AdminState, MemberRef } from '../../provider/contract.js'
import { HttpFront } from '../http/front.js'
import type {
  HttpFake,
  HttpFakeFailure,
  HttpFakeRequest,
  IncomingRequest,
} from '../http/request.js'
import type { HttpAnswer, HttpServer } from '../http/server.js'
import { answerAdmin } from './admin.js'
import type { Settings } from './options.js'
import { Process } from './process.js'

const PLAIN = { 'content-type': 'text/plain' }
const GARBAGE = {
  status: 200,
  headers: PLAIN,
  text: 'http.in.downstream_rq_active: many\n{"version',
}

/** A running fake. Its `url` is the admin API's, for `admin` of `envoyListener()`. */
export interface EnvoyListenerFake extends HttpFake {
  /** As it is called as a member of `envoyListener()`. */
  readonly member: string
  /** Whether its health check fails now. */
  readonly failing: boolean
  /** Whether it was told to close its listeners, or to end. */
  readonly told: { readonly drain: boolean; readonly quit: boolean }
  /** A request from a client comes in, whichever member of its pool is named; the returned function ends it. */
  occupy(ref?: MemberRef): Promise<() => Promise<void>>
  /**
   * A client connects: `idle` keeps a connection without a request, `upgrade` holds a WebSocket, `tcp` goes through a
   * TCP proxy, `slow` has its answer and does not read it, so that the response stays in the fake's buffers. The returned
   * function ends it.
   */
  connect(what: 'idle' | 'upgrade' | 'tcp' | 'slow'): () => void
  /** The balancer in front checks its health once more. @returns whether it is healthy */
  check(): boolean
  /** Another program fails its health check or undoes it; there is no `maint` and no `gone`. */
  setBehind(ref: MemberRef, to: AdminState | 'gone'): Promise<void>
  /**
   * Starts the next process; the present one goes on with its connections for `parentShutdown`, and answers only
   * connections to the admin API that it had before.
   */
  hotRestart(): void
}

/** Starts it; see the package's documentation. */
export async function openFake(settings: Settings): Promise<EnvoyListenerFake> {
  const fake = new Fake(settings)
  await fake.open()
  return fake
}

class Fake implements EnvoyListenerFake {
  readonly #settings: Settings
  readonly #front = new HttpFront<HttpFakeFailure, HttpFakeRequest>({
    remember: (base) => base,
    error: toError,
    garbage: GARBAGE,
  })
  readonly #server: HttpServer
  /** Which process a connection to the admin API was made to. */
  readonly #owners = new WeakMap<object, Process>()
  #bootAt = new Date()
  #process: Process
  #quit = false

  constructor(settings: Settings) {
    this.#settings = settings
    const { port, socket } = settings
    this.#server = this.#front.add('admin', {
      host: '127.0.0.1',
      port,
      socket,
      latency: 0,
      answer: (request) => this.#answer(request),
    })
    this.#process = this.#boot()
  }

  get url(): string {
    return this.#server.url
  }

  get member(): string {
    return this.#settings.socket ?? new URL(this.url).host
  }

  get failing(): boolean {
    return this.#process.failing
  }

  get told(): { readonly drain: boolean; readonly quit: boolean } {
    return { drain: this.#process.closesAt !== undefined, quit: this.#quit }
  }

  get sockets(): number {
    return this.#front.sockets
  }

  get requests(): readonly HttpFakeRequest[] {
    return this.#front.requests
  }

  async open(): Promise<void> {
    await this.#front.open()
  }

  occupy(ref?: MemberRef): Promise<() => Promise<void>> {
    if (ref !== undefined && ref.pool !== this.#settings.pool) return this.#unknown(ref)
    const end = this.#process.begin('requests')
    return Promise.resolve(() => {
      end()
      return Promise.resolve()
    })
  }

  connect(what: 'idle' | 'upgrade' | 'tcp' | 'slow'): () => void {
    return what === 'upgrade' ? this.#process.begin('requests', true) : this.#process.begin(what)
  }

  check(): boolean {
    return this.#process.check()
  }

  setBehind(ref: MemberRef, to: AdminState | 'gone'): Promise<void> {
    if (ref.pool !== this.#settings.pool) return this.#unknown(ref)
    if (to === 'gone' || to === 'maint') {
      return Promise.reject(new Error(`an Envoy has no ${to}: take it from the list, or close it`))
    }
    this.#process.setFailing(to === 'drain')
    return Promise.resolve()
  }

  hotRestart(): void {
    const parent = this.#process
    this.#process = this.#boot(parent)
    parent.succeed(this.#process)
  }

  fail(what: HttpFakeFailure): () => Promise<void> {
    return this.#front.fail(what)
  }

  restart(): Promise<void> {
    this.#process.stop()
    this.#front.hangUp()
    this.#process = this.#boot()
    return Promise.resolve()
  }

  async close(): Promise<void> {
    this.#process.stop()
    await this.#front.close()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  #unknown({ pool, member }: MemberRef): Promise<never> {
    return Promise.reject(new Error(`the fake has no ${pool}/${member}`))
  }

  #boot(parent?: Process): Process {
    // Two starts never have one moment.
    this.#bootAt = new Date(Math.max(Date.now(), this.#bootAt.getTime() + 1))
    return new Process(this.#settings, this.#bootAt, parent)
  }

  #answer({ method, path, connection }: IncomingRequest): HttpAnswer | undefined {
    const owner = this.#owners.get(connection) ?? this.#process
    this.#owners.set(connection, owner)
    if (!owner.running) return undefined
    const { status, text, quits } = answerAdmin(method, path, this.#settings, owner)
    if (quits === true) {
      this.#quit = true
      setImmediate(() => void this.close())
    }
    return { status, text, headers: PLAIN }
  }
}

function toError({ status = 503, body = 'upstream connect error' }: HttpFakeFailure): HttpAnswer {
  return { status, text: typeof body === 'string' ? body : JSON.stringify(body), headers: PLAIN }
}
