import { closedError, isDrainableError } from '../provider/error.js'
import type { CallContext } from '../provider/contract.js'
import { HttpClient, type HttpCall, type HttpOptions, type HttpReply } from './http.js'
import { Credentials, type CredentialsOptions, type LoginContext } from './login.js'
import { Spending } from './look-cost.js'

/** One address of an appliance, and its user. */
export interface ApplianceOptions {
  /** Name of the provider, for errors. */
  readonly provider: string
  readonly url: string
  /** Its name in errors. */
  readonly subject: string
  readonly settings: Pick<HttpOptions, 'tls' | 'dispatcher' | 'callTimeout'> &
    Pick<CredentialsOptions, 'username' | 'password'>
  /** What the other addresses of its pair or group say of the password. */
  readonly trials: CredentialsOptions['trials'] | undefined
}

/** When a call ends, and what becomes of an answer that comes too late for its caller. */
export type CallLimits = Pick<CallContext, 'clock' | 'signal' | 'until'> &
  Partial<Pick<LoginContext, 'late'>>

/** One request. */
export type Request = Pick<HttpCall, 'method' | 'path' | 'headers' | 'body' | 'timeout'>

/** The HTTP calls to one address of an appliance, its user's password, and the end of both. */
export class ApplianceClient {
  readonly origin: string
  readonly credentials: Credentials
  /** What its requests take. */
  readonly spending = new Spending()
  readonly #options: ApplianceOptions
  readonly #http: HttpClient
  #closed = false

  constructor(options: ApplianceOptions) {
    const { provider, url, subject, settings, trials } = options
    const { tls, dispatcher, callTimeout, username, password } = settings
    this.#options = options
    this.#http = new HttpClient({
      provider,
      url,
      tls,
      dispatcher,
      connections: 2, // a change without an answer, and a look beside it
      ...(callTimeout === undefined ? {} : { callTimeout }),
    })
    this.origin = this.#http.origin
    const user = { provider, subject, username, password }
    this.credentials = new Credentials(trials === undefined ? user : { ...user, trials })
  }

  /** @throws `CONNECTION_LOST` once it is closed */
  assertOpen(): void {
    const { provider, subject } = this.#options
    if (this.#closed) throw closedError(provider, subject)
  }

  /** Sends a request. One that the close has ended says so. */
  async call(request: Request, { clock, signal, until, late }: CallLimits): Promise<HttpReply> {
    try {
      const limits = { clock, signal, until, ...(late === undefined ? {} : { late }) }
      return await this.#http.call({ ...request, ...limits })
    } catch (error) {
      const { provider, subject } = this.#options
      if (this.#closed && isDrainableError(error)) throw closedError(provider, subject, error)
      throw error
    }
  }

  /** The same, for what tells how long the appliance takes. */
  async timed(request: Request, limits: CallLimits): Promise<HttpReply> {
    const before = limits.clock.now()
    const reply = await this.call(request, limits)
    this.spending.note(limits.clock.now() - before, reply.text.length)
    return reply
  }

  /**
   * Closes every socket. What is still under way ends.
   *
   * @param logOut - what is sent before
   */
  async close(logOut: () => Promise<void>): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    await logOut()
    await this.#http.close()
  }
}
