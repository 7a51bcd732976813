import { DrainableError } from '../../../provider/error.js'
import { quote } from '../../../provider/quote.js'
import { HttpClient, parseHttpUrl } from '../../../kit/http.js'

const NAME = 'envoy'

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
  const url = parseHttpUrl(address, 'admin')
  return { url: url.origin, name: url.origin }
}

/** One proxy's admin API: GET only. */
export class AdminClient {
  readonly name: string
  readonly #http: HttpClient

  constructor(address: string) {
    const { url, socketPath, name } = parseAdminAddress(address)
    this.name = name
    this.#http = new HttpClient({
      provider: NAME,
      url,
      socketPath,
      connections: 2,
      connectTimeout: 2_000,
      maxReply: 256 * 1024 * 1024,
    })
  }

  async get(path: string, signal: AbortSignal, timeout: number): Promise<string> {
    const reply = await this.#http.call({ method: 'GET', path, signal, timeout })
    if (reply.status === 200) return reply.text
    const what = `${path.split('?')[0] ?? path} at ${this.name}`
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

  close(): Promise<void> {
    return this.#http.close()
  }
}
