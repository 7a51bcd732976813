import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo, Server, Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { BigipFakeFailure, BigipFakeRequest } from './options.js'
import { html, type Answer } from './replies.js'

/** A request read whole. */
export interface WireRequest {
  readonly method: string
  readonly path: string
  readonly headers: IncomingMessage['headers']
  readonly text: string
}

export interface ListenerOptions {
  readonly unit: string
  readonly host: string
  readonly port: number
  readonly tls: { readonly key: string; readonly cert: string } | undefined
  readonly latency: number
  readonly record: (request: BigipFakeRequest) => void
  readonly handle: (request: WireRequest) => Answer
}

/** The web server of one unit: reads requests, misbehaves where told to, writes answers. */
export class Listener {
  readonly #options: ListenerOptions
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  readonly #abort = new AbortController()
  #failures: { readonly what: BigipFakeFailure; skip: number; left: number }[] = []
  #port = 0
  #busy = 0
  /** The most requests that were in the works at one time. */
  peak = 0

  constructor(options: ListenerOptions) {
    this.#options = options
    const onRequest = (message: IncomingMessage, response: ServerResponse): void => {
      void this.#serve(message, response)
    }
    this.#server =
      options.tls === undefined
        ? createServer(onRequest)
        : createTlsServer({ key: options.tls.key, cert: options.tls.cert }, onRequest)
    this.#server.on('connection', (socket: Socket) => {
      this.#sockets.add(socket)
      socket.on('close', () => this.#sockets.delete(socket))
      socket.on('error', () => socket.destroy())
    })
    this.#server.on('tlsClientError', () => undefined)
  }

  get url(): string {
    const { host, tls } = this.#options
    const shown = host.includes(':') ? `[${host}]` : host === '0.0.0.0' ? '127.0.0.1' : host
    return `${tls === undefined ? 'http' : 'https'}://${shown}:${this.#port}`
  }

  async listen(): Promise<void> {
    const { host, port } = this.#options
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject)
      this.#server.listen(this.#port === 0 ? port : this.#port, host, () => {
        this.#server.off('error', reject)
        this.#port = (this.#server.address() as AddressInfo).port
        resolve()
      })
    })
  }

  fail(what: BigipFakeFailure): void {
    this.#failures.push({ what, skip: what.skip ?? 0, left: what.times ?? Infinity })
    if (what.how === 'refuse' && what.match === undefined && what.times === undefined)
      this.#hangUp()
  }

  /** Ends every misbehaviour. */
  async recover(): Promise<void> {
    this.#failures = []
    if (!this.#server.listening) await this.listen()
  }

  async close(): Promise<void> {
    this.#abort.abort()
    this.#hangUp()
    await Promise.resolve()
  }

  #hangUp(): void {
    if (this.#server.listening) this.#server.close()
    for (const socket of this.#sockets) socket.destroy()
  }

  async #serve(message: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = []
    try {
      for await (const chunk of message) chunks.push(chunk as Buffer)
    } catch {
      return // the client hung up in mid-request
    }
    const request: WireRequest = {
      method: message.method ?? 'GET',
      path: message.url ?? '/',
      headers: message.headers,
      text: Buffer.concat(chunks).toString(),
    }
    const entry = toEntry(this.#options.unit, request)
    this.#options.record(entry)
    this.#busy += 1
    this.peak = Math.max(this.peak, this.#busy)
    try {
      if (this.#options.latency > 0) {
        await sleep(this.#options.latency, undefined, { signal: this.#abort.signal, ref: false })
      }
      this.#answer(request, entry, message, response)
    } catch {
      message.socket.destroy()
    } finally {
      this.#busy -= 1
    }
  }

  #answer(
    request: WireRequest,
    entry: BigipFakeRequest,
    message: IncomingMessage,
    response: ServerResponse,
  ): void {
    const failure = this.#take(entry.line)
    if (failure === undefined) {
      send(response, entry, this.#options.handle(request))
      return
    }
    if (failure.execute === true) this.#options.handle(request)
    switch (failure.how) {
      case 'status':
        send(response, entry, failureAnswer(failure))
        return
      case 'garbage':
        send(response, entry, { status: 200, text: '<html>{"entries":', type: 'application/json' })
        return
      case 'silent':
        return
      case 'refuse':
      case 'reset':
        message.socket.destroy()
        return
      default:
        failure.how satisfies never
    }
  }

  #take(line: string): BigipFakeFailure | undefined {
    const hit = this.#failures.find(
      (failure) =>
        failure.left > 0 && (failure.what.match?.test(line) ?? true) && failure.skip-- <= 0,
    )
    if (hit === undefined) return undefined
    hit.left -= 1
    return hit.what
  }
}

function failureAnswer(failure: BigipFakeFailure): Answer {
  const status = failure.status ?? 503
  if (typeof failure.body === 'string') return { status, text: failure.body, type: 'text/html' }
  if (failure.body !== undefined) return { status, json: failure.body }
  return html(status, status === 503 ? 'Configuration Utility restarting...' : `${status} Error`)
}

function send(response: ServerResponse, entry: BigipFakeRequest, answer: Answer): void {
  entry.status = answer.status
  const text = answer.text ?? (answer.json === undefined ? '' : JSON.stringify(answer.json))
  response.writeHead(answer.status, {
    'content-type': answer.type ?? 'application/json; charset=UTF-8',
    'content-length': Buffer.byteLength(text),
    server: 'Jetty(9.2.22.v20170606)',
    'cache-control': 'no-store, no-cache, must-revalidate',
    ...answer.headers,
  })
  response.end(text)
}

function toEntry(unit: string, request: WireRequest): BigipFakeRequest {
  const { headers } = request
  const auth =
    headers['x-f5-auth-token'] !== undefined
      ? 'token'
      : headers.authorization !== undefined
        ? 'basic'
        : 'none'
  const shown = Object.fromEntries(
    Object.entries(headers).filter(
      ([name]) => name !== 'authorization' && name !== 'x-f5-auth-token',
    ),
  )
  return {
    line: `${request.method} ${request.path}`,
    unit,
    method: request.method,
    path: request.path,
    ...(request.text === '' ? {} : { body: masked(request.text) }),
    auth,
    headers: shown,
    status: 0,
  }
}

function masked(text: string): unknown {
  try {
    return JSON.parse(text, (key, value: unknown) => (key === 'password' ? '***' : value))
  } catch {
    return text
  }
}
