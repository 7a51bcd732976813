import { failure, Refusal, toAnswer, type Answer } from './answer.js'
import type { HttpAnswer } from '../http/server.js'
import type { IncomingRequest } from '../http/request.js'
import type { Api } from './call.js'
import { routesOf, type Route } from './routes.js'

/** How long a request may wait for HAProxy before the API gives up and closes the connection without a word. */
const GIVE_UP = 30_000

/** Whom the API lets in. */
export interface Credentials {
  readonly username: string
  password: string
}

/** The API past its HTTP server: credentials, routes, the header that every answer carries. */
export class Gate {
  readonly #api: Api
  readonly #credentials: Credentials
  readonly #routes: readonly Route[]

  constructor(api: Api, credentials: Credentials) {
    this.#api = api
    this.#credentials = credentials
    this.#routes = routesOf(api.generation)
  }

  /** Undefined: the API gave up. */
  async answer(request: IncomingRequest): Promise<HttpAnswer | undefined> {
    const limit = Promise.withResolvers<undefined>()
    const timer = setTimeout(() => limit.resolve(undefined), GIVE_UP)
    try {
      const answer = await Promise.race([this.#answered(request), limit.promise])
      return answer && toAnswer(answer, this.#api.store.version)
    } finally {
      clearTimeout(timer)
    }
  }

  async #answered(request: IncomingRequest): Promise<Answer> {
    try {
      return await this.#route(request)
    } catch (error) {
      if (error instanceof Refusal) return error.answer
      return failure(500, error instanceof Error ? error.message : String(error))
    }
  }

  async #route(request: IncomingRequest): Promise<Answer> {
    const { method, path, text } = request
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

  #denied(request: IncomingRequest): Answer | undefined {
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
    if (user === this.#credentials.username && password === this.#credentials.password)
      return undefined
    // 2.9 and 3.0 repeat what they were sent
    return { ...failure(401, early ? `invalid password: ${password}` : 'unauthorized'), headers }
  }
}

function notAllowed(method: string, path: string, route: Route, chi: boolean): Answer {
  const methods = Object.keys(route.methods)
  const words = chi
    ? `method ${method} is not allowed for path ${path}`
    : `method ${method} is not allowed, but [${methods.join(',')}] are`
  return { ...failure(405, words), headers: { Allow: methods.join(chi ? ', ' : ',') } }
}
