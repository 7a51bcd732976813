/** The admin API of an Envoy, for the adapter of its endpoints and for that of its listeners. */
import { formatSocket } from '../../provider/address.js'
import type { CallContext } from '../../provider/contract.js'
import { DrainableError, isDrainableError } from '../../provider/error.js'
import { quote } from '../../provider/quote.js'
import { HttpClient } from '../http.js'
import { parseHttpUrl } from '../options.js'

/** A host and a port. */
const BARE = /^(?:[\w.-]+|\[[\da-f:.]+\]):\d+$/i
/** Milliseconds that an answer may take. */
const TIMEOUT = 3_000

export interface AdminAddress {
  readonly url: string
  readonly socketPath?: string
  /** For people: `http://127.0.0.1:9901`, `unix:/run/envoy/admin.sock`. */
  readonly name: string
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
  if (path.startsWith('/')) {
    return { url: 'http://localhost', socketPath: path, name: `unix:${path}`, member: path }
  }
  if (BARE.test(address)) {
    throw new DrainableError(
      'INVALID_OPTIONS',
      `admin: expected a URL, found '${quote(address, 80)}': write 'http://${quote(address, 80)}'`,
    )
  }
  const { origin, hostname, port, protocol } = parseHttpUrl(address, 'admin')
  const host = hostname.replace(/^\[|\]$/g, '')
  const member = formatSocket(host, Number(port) || (protocol === 'https:' ? 443 : 80))
  return { url: origin, name: origin, member, host }
}

/** The call that a look is taken for. */
export type Call = Pick<CallContext, 'clock' | 'signal'>

export interface AdminLinkOptions {
  readonly provider: string
  /** How errors name it. */
  readonly name: string
  /** What the bootstrap's `admin.allow_paths` must allow, in words. */
  readonly paths: string
  /** Milliseconds that an answer may take. @default 3,000 */
  readonly timeout?: number | undefined
}

/** Runs one look over a connection of its own. */
export async function lookAt<T>(
  address: AdminAddress,
  call: Call,
  options: AdminLinkOptions,
  fn: (link: AdminLink) => Promise<T>,
): Promise<T> {
  const link = new AdminLink(address, call, options)
  try {
    return await fn(link)
  } finally {
    await link.close()
  }
}

/**
 * One connection to an admin API, one request after another. A connection that is kept stays with its process: after a hot
 * restart it would go on showing the old one, and change nothing in the new one. So each look has its own.
 */
export class AdminLink {
  readonly name: string
  readonly #options: AdminLinkOptions
  readonly #call: Call
  readonly #http: HttpClient

  constructor(address: AdminAddress, call: Call, options: AdminLinkOptions) {
    this.name = options.name
    this.#options = options
    this.#call = call
    this.#http = new HttpClient({
      provider: options.provider,
      url: address.url,
      socketPath: address.socketPath,
      connections: 1,
      connectTimeout: 2_000,
      callTimeout: options.timeout ?? TIMEOUT,
      maxReply: 256 * 1024 * 1024,
    })
  }

  /** @param take - takes the text piece by piece; then none is returned */
  async get(path: string, take?: (text: string) => Promise<void>): Promise<string> {
    const { status, text } = await this.#send('GET', path, take)
    if (status === 200) return text
    throw this.#refused(path, status, text)
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

  /** A command: carried out once, where it is answered with 200. */
  async post(path: string): Promise<void> {
    const { status, text } = await this.#send('POST', path)
    if (status !== 200) throw this.#refused(path, status, text)
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

  throwIfAborted(): void {
    this.#call.signal.throwIfAborted()
  }

  close(): Promise<void> {
    return this.#http.close()
  }

  #send(
    method: 'GET' | 'POST',
    path: string,
    take?: (text: string) => Promise<void>,
  ): Promise<{ readonly status: number; readonly text: string }> {
    const { clock, signal } = this.#call
    return this.#http.call({ ...(take && { take }), method, path, clock, signal })
  }

  #refused(path: string, status: number, text: string): DrainableError {
    const { provider, paths } = this.#options
    const what = `${path.split('?')[0] ?? path} at ${this.name}`
    const said = quote(text)
    if (status === 403) {
      const words = `${what}: '${said}'; the bootstrap's admin.allow_paths must allow ${paths}, each as a prefix`
      return new DrainableError('FORBIDDEN', words, { provider })
    }
    return new DrainableError(
      status >= 500 ? 'UNREACHABLE' : 'MALFORMED_REPLY',
      `${what}: status ${status}, '${said}'; expected the admin API of an Envoy there`,
      { provider },
    )
  }
}
