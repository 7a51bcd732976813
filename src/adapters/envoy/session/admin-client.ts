import type { CallContext } from '../../../provider/contract.js'
import { DrainableError, isDrainableError } from '../../../provider/error.js'
import { quote } from '../../../provider/quote.js'
import { HttpClient, parseHttpUrl } from '../../../kit/http.js'

const NAME = 'envoy'
/** A host and a port. */
const BARE = /^(?:[\w.-]+|\[[\da-f:.]+\]):\d+$/i

/**
 * Where an admin API listens: `http://127.0.0.1:9901`, or `unix:/run/envoy/admin.sock` (an absolute
 * path means the same).
 *
 * @throws `INVALID_OPTIONS`
 */
export function parseAdminAddress(address: string): {
  url: string
  socketPath?: string
  name: string
} {
  const path = address.startsWith('unix:') ? address.slice(5).replace(/^\/\//, '') : address
  if (path.startsWith('/')) {
    return { url: 'http://localhost', socketPath: path, name: `unix:${path}` }
  }
  if (BARE.test(address)) {
    throw new DrainableError(
      'INVALID_OPTIONS',
      `admin: expected a URL, found '${quote(address, 80)}': write 'http://${quote(address, 80)}'`,
    )
  }
  const url = parseHttpUrl(address, 'admin')
  return { url: url.origin, name: url.origin }
}

/** Milliseconds that an answer may take; less where the last look failed. */
const TIMEOUT = 3_000
const TIMEOUT_FAILING = 500

type Within = Pick<CallContext, 'clock' | 'signal'>

/** One proxy's admin API. */
export class AdminClient {
  readonly name: string
  readonly #address: ReturnType<typeof parseAdminAddress>
  readonly #open = new Set<AdminLink>()
  #failing = false

  constructor(address: string) {
    this.#address = parseAdminAddress(address)
    this.name = this.#address.name
  }

  /**
   * Runs one look over a connection of its own. A connection that is kept stays with its process: after
   * a hot restart it would go on showing the old one.
   */
  async look<T>(ctx: Within, fn: (link: AdminLink) => Promise<T>): Promise<T> {
    const link = new AdminLink(this.#address, ctx, this.#failing ? TIMEOUT_FAILING : TIMEOUT)
    this.#open.add(link)
    try {
      const value = await fn(link)
      this.#failing = false
      return value
    } catch (error) {
      // One that failed is asked with less patience, so that a frozen one does not set the pace.
      this.#failing = isDrainableError(error)
      throw error
    } finally {
      this.#open.delete(link)
      await link.close()
    }
  }

  async close(): Promise<void> {
    await Promise.all([...this.#open].map((link) => link.close()))
  }
}

/** One connection to an admin API: GET only, one request after another. */
export class AdminLink {
  readonly #http: HttpClient
  readonly #name: string
  readonly #timeout: number
  readonly #ctx: Within

  constructor(
    { url, socketPath, name }: ReturnType<typeof parseAdminAddress>,
    ctx: Within,
    timeout: number,
  ) {
    this.#name = name
    this.#ctx = ctx
    this.#timeout = timeout
    this.#http = new HttpClient({
      provider: NAME,
      url,
      socketPath,
      connections: 1,
      connectTimeout: 2_000,
      maxReply: 256 * 1024 * 1024,
    })
  }

  /** @param take - takes the text piece by piece; then none is returned */
  async get(path: string, take?: (text: string) => Promise<void>): Promise<string> {
    const { clock, signal } = this.#ctx
    const reply = await this.#http.call({
      ...(take === undefined ? {} : { take }),
      method: 'GET',
      path,
      clock,
      signal,
      timeout: this.#timeout,
    })
    if (reply.status === 200) return reply.text
    const what = `${path.split('?')[0] ?? path} at ${this.#name}`
    const said = quote(reply.text)
    if (reply.status === 403) {
      throw new DrainableError(
        'FORBIDDEN',
        `${what}: '${said}'; allow /clusters, /stats, /server_info and /config_dump in the bootstrap's admin.allow_paths`,
        { provider: NAME },
      )
    }
    throw new DrainableError(
      reply.status >= 500 ? 'UNREACHABLE' : 'MALFORMED_REPLY',
      `${what}: status ${reply.status}, '${said}'`,
      { provider: NAME },
    )
  }

  /** The reply, or undefined where the bootstrap's `allow_paths` keeps it from us. */
  async allowed(path: string): Promise<string | undefined> {
    try {
      return await this.get(path)
    } catch (error) {
      if (isDrainableError(error, 'FORBIDDEN')) return undefined
      throw error
    }
  }

  throwIfAborted(): void {
    this.#ctx.signal.throwIfAborted()
  }

  close(): Promise<void> {
    return this.#http.close()
  }
}
