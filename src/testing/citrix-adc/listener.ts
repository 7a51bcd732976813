import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import type { Faults } from './faults.js'
import type { Incoming } from './node.js'
import { NitroError, REASONS, type Reply, toBytes } from './reply.js'

/** One request, as it came. */
export interface RecordedRequest {
  /** `POST /nitro/v1/config/servicegroup?action=disable` */
  readonly line: string
  readonly method: string
  readonly path: string
  /** The parsed JSON body, or its text where it is none. */
  readonly body: unknown
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  /** The address it came to. */
  readonly node: string
}

export interface ListenerOptions {
  readonly host: string
  readonly port: number
  readonly tls: { readonly key: string; readonly cert: string } | undefined
  readonly faults: Faults
  readonly latency: number
  readonly maxRequests: number
  readonly withSeverity: boolean
  readonly record: (request: RecordedRequest) => void
  readonly node: () => string
  readonly answer: (incoming: Incoming) => Reply
}

/** One address of an appliance: bytes in and out, with the faults that a test wants. */
export class Listener {
  readonly #options: ListenerOptions
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  #port: number
  #underWay = 0
  /** The most requests that were ever under way at once. */
  peak = 0

  constructor(options: ListenerOptions) {
    this.#options = options
    this.#port = options.port
    const onRequest = (request: IncomingMessage, response: ServerResponse): void => {
      void this.#serve(request, response)
    }
    this.#server =
      options.tls === undefined ? createServer(onRequest) : createTlsServer(options.tls, onRequest)
    this.#server.on('connection', (socket: Socket) => {
      this.#sockets.add(socket)
      socket.once('close', () => this.#sockets.delete(socket))
    })
  }

  get url(): string {
    const { host, tls } = this.#options
    const name = host.includes(':') ? `[${host}]` : host
    return `${tls === undefined ? 'http' : 'https'}://${name}:${this.#port}`
  }

  get port(): number {
    return this.#port
  }

  listen(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject)
      this.#server.listen(this.#port, this.#options.host, () => {
        this.#server.off('error', reject)
        this.#port = (this.#server.address() as AddressInfo).port
        resolve()
      })
    })
  }

  /** Takes no more connections and cuts those there are; `listen()` opens the same port again. */
  shut(): Promise<void> {
    return new Promise((resolve) => {
      this.#server.close(() => {
        resolve()
      })
      for (const socket of this.#sockets) socket.destroy()
    })
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { options } = { options: this.#options }
    const method = request.method ?? 'GET'
    const target = request.url ?? '/'
    const line = `${method} ${target}`
    const text = await bodyOf(request)
    options.record({
      line,
      method,
      path: target.split('?')[0] ?? '',
      body: readable(text),
      headers: { ...request.headers },
      node: options.node(),
    })
    this.#underWay += 1
    this.peak = Math.max(this.peak, this.#underWay)
    response.once('close', () => (this.#underWay -= 1))
    const fault = options.faults.take(line)
    if (options.latency > 0) await new Promise((done) => setTimeout(done, options.latency))
    const incoming: Incoming = { method, target, headers: request.headers, text }
    switch (fault?.how) {
      case 'refuse':
      case 'reset':
        request.socket.destroy()
        return
      case 'silent':
        return
      case 'lost':
        options.answer(incoming)
        request.socket.destroy()
        return
      case 'garbage':
        this.#send(response, { status: 200, body: '<html><body>Please wait</body></html>' })
        return
      case 'empty':
        this.#send(response, { status: 200 })
        return
      case 'status':
        this.#send(response, statusReply(fault.status ?? 503, fault.errorcode, fault.message))
        return
      case undefined:
        this.#send(
          response,
          this.#underWay > options.maxRequests
            ? new NitroError(446).toReply()
            : options.answer(incoming),
        )
    }
  }

  #send(response: ServerResponse, reply: Reply): void {
    const bytes = Buffer.from(toBytes(reply.body, this.#options.withSeverity))
    const html = typeof reply.body === 'string'
    response.writeHead(reply.status, REASONS[reply.status], {
      server: 'Apache',
      'cache-control': 'no-store, no-cache, must-revalidate, post-check=0, pre-check=0',
      pragma: 'no-cache',
      'x-frame-options': 'SAMEORIGIN',
      'x-content-type-options': 'nosniff',
      'content-type': html ? 'text/html; charset=utf-8' : 'application/json; charset=utf-8',
      ...reply.headers,
      'content-length': String(bytes.length),
    })
    response.end(bytes)
  }
}

function statusReply(status: number, errorcode: number | undefined, message?: string): Reply {
  if (errorcode === undefined) return { status, body: `<html><body>${status}</body></html>` }
  const reply = new NitroError(errorcode, undefined, status).toReply()
  if (message === undefined || typeof reply.body !== 'object') return reply
  return { status, body: { ...reply.body, message } }
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  try {
    for await (const chunk of request) chunks.push(chunk as Buffer)
  } catch {
    // The client went away in the middle of its request.
  }
  return Buffer.concat(chunks).toString('utf8')
}

function readable(text: string): unknown {
  if (text === '') return undefined
  try {
    return JSON.parse(text) as unknown
  } catch {
    return text
  }
}
