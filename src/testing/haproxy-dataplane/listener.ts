import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import { Refusal, failure, type Answer } from './answer.js'
import type { Api } from './call.js'
import type { FakeFailure, FakeRequest } from './options.js'
import { routesOf, type Route } from './routes.js'

/** How long a request may wait for HAProxy before the API gives up and closes the connection without a word. */
const GIVE_UP = 30_000
const LARGEST_BODY = 4 * 1024 * 1024

/** What the listener needs to know. */
export interface ListenerOptions {
  readonly host: string
  readonly port: number
  readonly tls: { readonly cert: string; readonly key: string } | undefined
  readonly username: string
  password: string
}

/** The API's HTTP side: credentials, routes, the header that every answer carries, and faults on request. */
export class Listener {
  readonly requests: FakeRequest[] = []
  readonly #api: Api
  readonly #options: ListenerOptions
  readonly #routes: readonly Route[]
  readonly #failures: (FakeFailure & { skip: number; left: number })[] = []
  readonly #sockets = new Set<Socket>()
  #server: Server | undefined
  #port: number

  constructor(api: Api, options: ListenerOptions) {
    this.#api = api
    this.#options = options
    this.#routes = routesOf(api.generation)
    this.#port = options.port
  }

  get port(): number {
    return this.#port
  }

  fail(what: FakeFailure): void {
    this.#failures.push({ ...what, skip: what.skip ?? 0, left: what.times ?? Infinity })
  }

  heal(): void {
    this.#failures.length = 0
  }

  async listen(): Promise<void> {
    const handler = (request: IncomingMessage, response: ServerResponse): void => {
      void this.#serve(request, response)
    }
    const { tls, host } = this.#options
    const server = tls === undefined ? createServer(handler) : createTlsServer(tls, handler)
    server.on('connection', (socket: Socket) => {
      this.#sockets.add(socket)
      socket.on('close', () => this.#sockets.delete(socket))
      socket.on('error', () => undefined)
    })
    server.on('clientError', (_error, socket) => socket.destroy())
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen(this.#port, host, resolve)
    })
    this.#port = (server.address() as AddressInfo).port
    this.#server = server
  }

  async close(): Promise<void> {
    const server = this.#server
    this.#server = undefined
    if (server === undefined) return
    const closed = new Promise((resolve) => server.close(resolve))
    for (const socket of this.#sockets) socket.destroy()
    await closed
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const method = request.method ?? 'GET'
    const path = request.url ?? '/'
    const text = await readAll(request)
    if (text === undefined) return
    const log = { method, path, ...(text === '' ? {} : { body: text }) }
    this.requests.push(log)
    const fault = this.#fault(`${method} ${path}`)
    const socket = request.socket
    if (fault?.how === 'refuse' || fault?.how === 'reset') {
      socket.resetAndDestroy()
      return
    }
    if (fault?.how === 'silent') return
    const answer = await this.#answered(request, method, path, text, fault)
    if (answer === undefined || fault?.how === 'lost') {
      socket.destroy()
      return
    }
    if (typeof answer === 'string') {
      response.writeHead(200, { 'Content-Type': 'text/html' }).end(answer)
      return
    }
    send(response, answer, method, this.#api.store.version)
  }

  async #answered(
    request: IncomingMessage,
    method: string,
    path: string,
    text: string,
    fault: FakeFailure | undefined,
  ): Promise<Answer | string | undefined> {
    if (fault?.how === 'garbage') return '<html><body>a proxy in front says hello</body></html>'
    if (fault?.how === 'status') {
      const status = fault.status ?? 500
      return failure(status, fault.message ?? `made to fail with ${status}`)
    }
    const limit = Promise.withResolvers<undefined>()
    const timer = setTimeout(() => limit.resolve(undefined), GIVE_UP)
    try {
      return await Promise.race([this.#route(request, method, path, text), limit.promise])
    } catch (error) {
      if (error instanceof Refusal) return error.answer
      return failure(500, error instanceof Error ? error.message : String(error))
    } finally {
      clearTimeout(timer)
    }
  }

  async #route(
    request: IncomingMessage,
    method: string,
    path: string,
    text: string,
  ): Promise<Answer> {
    const { chi } = this.#api.generation
    const url = new URL(path, 'http://fake')
    const route = this.#routes.find((candidate) => candidate.path.test(url.pathname))
    const denied = this.#denied(request)
    if (chi && denied !== undefined) return denied
    if (route === undefined) {
      const root = chi && /^\/v\d\/?$/.test(url.pathname)
      return failure(
        404,
        root ? 'no matching operation was found' : `path ${url.pathname} was not found`,
      )
    }
    const handler = route.methods[method]
    if (handler === undefined) return notAllowed(method, url.pathname, route, chi)
    if (denied !== undefined) return denied
    const { accept } = request.headers
    if (accept !== undefined && !/application\/json|\*\/\*/.test(accept)) {
      return failure(406, 'unsupported media type requested, only [application/json] are available')
    }
    const type = request.headers['content-type'] ?? ''
    const raw = url.pathname.endsWith('/raw')
    if (
      (method === 'PUT' || method === 'POST') &&
      type !== '' &&
      !raw &&
      !/^application\/json\b/.test(type)
    ) {
      return failure(
        415,
        chi
          ? `header Content-Type has unexpected value "${type}"`
          : `unsupported media type "${type}", only [application/json] are allowed`,
      )
    }
    const [, ...names] = route.path.exec(url.pathname) ?? []
    const actions = String(request.headers['x-runtime-actions'] ?? '').split(';')
    return handler(this.#api, {
      method,
      path: url.pathname,
      query: url.searchParams,
      names: names.map(decodeURIComponent),
      actions: actions.filter((action) => action !== ''),
      text,
    })
  }

  #denied(request: IncomingMessage): Answer | undefined {
    const { chi, early } = this.#api.generation
    const given = /^Basic (.*)$/.exec(request.headers.authorization ?? '')?.[1]
    const headers = { 'Www-Authenticate': 'Basic realm="API"' }
    if (given === undefined) {
      const words = chi
        ? 'missing or invalid authorization'
        : 'unauthenticated for invalid credentials'
      return { ...failure(401, words), headers }
    }
    const [user, ...rest] = Buffer.from(given, 'base64').toString().split(':')
    const password = rest.join(':')
    if (user === this.#options.username && password === this.#options.password) return undefined
    // 2.9 and 3.0 repeat what they were sent
    return { ...failure(401, early ? `invalid password: ${password}` : 'unauthorized'), headers }
  }

  #fault(line: string): FakeFailure | undefined {
    const found = this.#failures.find(
      (failure) => failure.left > 0 && (failure.match?.test(line) ?? true) && failure.skip-- <= 0,
    )
    if (found !== undefined) found.left -= 1
    return found
  }
}

function notAllowed(method: string, path: string, route: Route, chi: boolean): Answer {
  const methods = Object.keys(route.methods)
  const words = chi
    ? `method ${method} is not allowed for path ${path}`
    : `method ${method} is not allowed, but [${methods.join(',')}] are`
  return { ...failure(405, words), headers: { Allow: methods.join(chi ? ', ' : ',') } }
}

function send(response: ServerResponse, answer: Answer, method: string, version: number): void {
  const headers: Record<string, string> = {
    'Configuration-Version': String(answer.configVersion ?? version),
    Vary: 'Origin',
    ...answer.headers,
  }
  if (answer.body === undefined) {
    response.writeHead(answer.status, headers).end()
    return
  }
  headers['Content-Type'] = typeof answer.body === 'string' ? 'text/plain' : 'application/json'
  const text = typeof answer.body === 'string' ? answer.body : `${JSON.stringify(answer.body)}\n`
  response.writeHead(answer.status, headers).end(method === 'HEAD' ? undefined : text)
}

async function readAll(request: IncomingMessage): Promise<string | undefined> {
  const chunks: Buffer[] = []
  let size = 0
  try {
    for await (const chunk of request as AsyncIterable<Buffer>) {
      size += chunk.length
      if (size > LARGEST_BODY) {
        request.socket.destroy()
        return undefined
      }
      chunks.push(chunk)
    }
  } catch {
    return undefined
  }
  return Buffer.concat(chunks).toString()
}
