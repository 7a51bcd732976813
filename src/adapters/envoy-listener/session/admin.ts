import { HttpClient, parseHttpUrl } from '../../../kit/http.js'
import { formatSocket } from '../../../provider/address.js'
import type { CallContext } from '../../../provider/contract.js'
import { DrainableError } from '../../../provider/error.js'
import { quote } from '../../../provider/quote.js'
import { PROVIDER } from '../codec/server.js'

/** What of the admin API is needed; Envoy compares `allow_paths` with the query too, so each as a prefix. */
export const PATHS = [
  '/server_info',
  '/stats',
  '/config_dump',
  '/healthcheck/fail',
  '/healthcheck/ok',
] as const

const TIMEOUT = 3_000

export interface AdminAddress {
  readonly url: string
  readonly socketPath?: string
  /** As a member is called: `127.0.0.1:9901`, `/run/envoy/admin.sock`. */
  readonly member: string
  /** Of the machine, where it has one. */
  readonly host?: string
}

/**
 * Where an admin API listens: `http://127.0.0.1:9901`, or `unix:/run/envoy/admin.sock` (an absolute path means the same).
 *
 * @throws `INVALID_OPTIONS`
 */
export function parseAdminAddress(address: string): AdminAddress {
  const path = address.startsWith('unix:') ? address.slice(5).replace(/^\/\//, '') : address
  if (path.startsWith('/')) return { url: 'http://localhost', socketPath: path, member: path }
  const { origin, hostname, port, protocol } = parseHttpUrl(address, 'admin')
  const host = hostname.replace(/^\[|\]$/g, '')
  const socket = formatSocket(host, Number(port) || (protocol === 'https:' ? 443 : 80))
  return { url: origin, member: socket, host }
}

/** The call that a look is taken for. */
export type Call = Pick<CallContext, 'signal' | 'clock'>

/**
 * Runs one look over a connection of its own. A connection that is kept stays with its process: after a hot restart it
 * would go on showing the old one, and change nothing in the new one.
 */
export async function connected<T>(
  address: AdminAddress,
  call: Call,
  fn: (link: AdminLink) => Promise<T>,
): Promise<T> {
  const link = new AdminLink(address, call)
  try {
    return await fn(link)
  } finally {
    await link.close()
  }
}

/** One connection to an admin API, one request after another. */
export class AdminLink {
  readonly name: string
  readonly #http: HttpClient
  readonly #call: Call

  constructor({ url, socketPath, member }: AdminAddress, call: Call) {
    this.name = member
    this.#call = call
    this.#http = new HttpClient({
      provider: PROVIDER,
      url,
      socketPath,
      connections: 1,
      connectTimeout: 2_000,
      callTimeout: TIMEOUT,
      maxReply: 64 * 1024 * 1024,
    })
  }

  async get(path: string): Promise<string> {
    return this.#answer('GET', path)
  }

  /** A command: carried out once, where it is answered with 200. */
  async post(path: string): Promise<void> {
    await this.#answer('POST', path)
  }

  /**
   * Whether a command may be given, found without giving it: Envoy carries commands out for POST alone.
   *
   * @throws `FORBIDDEN` where `allow_paths` keeps it from us
   */
  async mayPost(path: string): Promise<void> {
    const { status, text } = await this.#send('GET', path)
    if (status !== 405) throw this.#refused(path, status, text)
  }

  close(): Promise<void> {
    return this.#http.close()
  }

  async #answer(method: 'GET' | 'POST', path: string): Promise<string> {
    const { status, text } = await this.#send(method, path)
    if (status === 200) return text
    throw this.#refused(path, status, text)
  }

  #send(
    method: 'GET' | 'POST',
    path: string,
  ): Promise<{ readonly status: number; readonly text: string }> {
    return this.#http.call({ method, path, signal: this.#call.signal, clock: this.#call.clock })
  }

  #refused(path: string, status: number, text: string): DrainableError {
    const what = `${path.split('?')[0] ?? path} at ${this.name}`
    const said = quote(text)
    if (status === 403) {
      return new DrainableError(
        'FORBIDDEN',
        `${what}: '${said}'; the bootstrap's admin.allow_paths must allow ${PATHS.join(', ')}, each as a prefix`,
        { provider: PROVIDER },
      )
    }
    return new DrainableError(
      status >= 500 ? 'UNREACHABLE' : 'MALFORMED_REPLY',
      `${what}: status ${status}, '${said}'; expected the admin API of an Envoy there`,
      { provider: PROVIDER },
    )
  }
}
