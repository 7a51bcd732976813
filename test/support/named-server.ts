/** A server known by name, before a real HAProxy that asks a name server of the test. */
import { Backend } from './haproxy-traffic.js'
import { type Haproxy, type HaproxyOptions, until } from './haproxy.js'
import { NameServer } from './name-server.js'

export const NAMED_SERVER = { pool: 'web', member: 's1' }
const ADDRESS = '127.0.0.2'

export const NAMED: HaproxyOptions['config'] = (port) => `
resolvers here
  nameserver one 127.0.0.1:${port('dns')}
  timeout resolve 100ms
  timeout retry 100ms
  hold valid 100ms
  hold nx 100ms
  hold obsolete 0s
frontend f_web
  bind 127.0.0.1:${port('web')}
  default_backend web
backend web
  server s1 web.test:${port('server')} resolvers here init-addr none
  server s2 127.0.0.1:${port('server')} weight 0
`

/** The bit of its mask that says that its name does not resolve. */
export const UNRESOLVED = 0x20

export class Named implements AsyncDisposable {
  readonly #haproxy: Haproxy
  readonly #names: NameServer
  readonly server: Backend

  private constructor(haproxy: Haproxy, names: NameServer, server: Backend) {
    this.#haproxy = haproxy
    this.#names = names
    this.server = server
  }

  /** Its name resolves. */
  static async start(haproxy: Haproxy): Promise<Named> {
    const names = await NameServer.start(haproxy.port('dns'), [])
    const server = await Backend.start(haproxy.port('server'), 's1', ADDRESS)
    const named = new Named(haproxy, names, server)
    await named.find()
    return named
  }

  mask(): Promise<number> {
    return this.#haproxy.mask('web', 's1')
  }

  async find(): Promise<void> {
    this.#names.addresses = [ADDRESS]
    await until(async () => ((await this.mask()) & UNRESOLVED) === 0, 'its name resolves')
  }

  async lose(): Promise<void> {
    this.#names.addresses = []
    await until(async () => ((await this.mask()) & UNRESOLVED) !== 0, 'its name is lost')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.server[Symbol.asyncDispose]()
    await this.#names[Symbol.asyncDispose]()
  }
}
