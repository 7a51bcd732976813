import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { systemClock, type Clock } from '../../provider/clock.js'
import { readText, type HttpFakeFailure, type IncomingRequest } from './request.js'

/** What is sent back, byte for byte. */
export interface HttpAnswer {
  readonly status: number
  readonly reason?: string | undefined
  readonly headers?: Readonly<Record<string, string>>
  readonly text?: string
}

/** One address of a fake. */
export interface HttpAddress {
  /** 0 takes a free one. */
  readonly port: number
  readonly host: string
  /** A Unix socket in place of host and port. */
  readonly socket?: string | undefined
  readonly tls?: { readonly key: string; readonly cert: string } | undefined
  /** Milliseconds before every answer. */
  readonly latency: number
  /** The clock of that. @default the real one */
  readonly clock?: Pick<Clock, 'setTimeout'>
  /** What to send; undefined closes the connection without a word. */
  readonly answer: (
    request: IncomingRequest,
  ) => HttpAnswer | undefined | Promise<HttpAnswer | undefined>
}

/** What a server asks for each request: what to do wrong with it, and whom to tell what was answered. */
export interface Received {
  readonly failure: HttpFakeFailure | undefined
  /** The answer of the failures `status` and `garbage`. */
  readonly instead: HttpAnswer | undefined
  readonly answered: (status: number) => void
}

function wait(clock: Pick<Clock, 'setTimeout'>, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const cancel = clock.setTimeout(() => {
      signal.removeEventListener('abort', stop)
      resolve()
    }, ms)
    const stop = (): void => {
      cancel()
      reject(new Error('closed'))
    }
    signal.addEventListener('abort', stop, { once: true })
  })
}

/** An HTTP server that reads requests whole, misbehaves where it is told to, and can stop and listen again. */
export class HttpServer {
  readonly #address: HttpAddress
  readonly #receive: (request: IncomingRequest) => Received
  readonly #server: Server
  /** By the client's port: what TLS wraps can only be reset underneath. */
  readonly #sockets = new Map<number | Socket, Socket>()
  readonly #abort = new AbortController()
  #port: number
  #closed: Promise<void> | undefined
  #underWay = 0
  /** The most requests that were in the works at one time. */
  peak = 0

  constructor(address: HttpAddress, receive: (request: IncomingRequest) => Received) {
    this.#address = address
    this.#port = address.port
    this.#receive = receive
    const onRequest = (message: IncomingMessage, response: ServerResponse): void => {
      void this.#serve(message, response)
    }
    const { tls } = address
    this.#server =
      tls === undefined
        ? createServer(onRequest)
        : createTlsServer({ key: tls.key, cert: tls.cert }, onRequest)
    this.#server.on('connection', (socket: Socket) => {
      const key = socket.remotePort ?? socket
      this.#sockets.set(key, socket)
      socket.on('close', () => {
        if (this.#sockets.get(key) === socket) this.#sockets.delete(key)
      })
      socket.on('error', () => socket.destroy())
    })
  }

  get url(): string {
    const { host, tls, socket } = this.#address
    if (socket !== undefined) return `unix:${socket}`
    const shown = host.includes(':') ? `[${host}]` : host === '0.0.0.0' ? '127.0.0.1' : host
    return `${tls === undefined ? 'http' : 'https'}://${shown}:${this.#port}`
  }

  get port(): number {
    return this.#port
  }

  /** Listens, after {@link HttpServer.stop} at the same address again. */
  async listen(): Promise<void> {
    await this.#closed
    this.#closed = undefined
    const { host, socket } = this.#address
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject)
      const listening = (): void => {
        this.#server.off('error', reject)
        resolve()
      }
      if (socket === undefined) this.#server.listen(this.#port, host, listening)
      else this.#server.listen(socket, listening)
    })
    if (socket === undefined) this.#port = (this.#server.address() as AddressInfo).port
  }

  /** Connections that are open at present. */
  get sockets(): number {
    return this.#sockets.size
  }

  /** Cuts every connection. */
  hangUp(): void {
    for (const socket of this.#sockets.values()) socket.destroy()
  }

  /** From this call on nothing listens, and every connection is cut; resolves when all of it has ended. */
  stop(): Promise<void> {
    if (this.#closed === undefined && this.#server.listening) {
      this.#closed = new Promise((resolve) => this.#server.close(() => resolve()))
    }
    this.hangUp()
    return this.#closed ?? Promise.resolve()
  }

  /** For good. */
  async close(): Promise<void> {
    this.#abort.abort()
    await this.stop()
  }

  async #serve(message: IncomingMessage, response: ServerResponse): Promise<void> {
    const text = await readText(message)
    if (text === undefined) {
      message.socket.destroy()
      return
    }
    this.#underWay += 1
    this.peak = Math.max(this.peak, this.#underWay)
    response.once('close', () => (this.#underWay -= 1))
    const { method = 'GET', url: path = '/', headers } = message
    const connection = message.socket
    const request = { method, path, headers, text, underWay: this.#underWay, connection }
    const received = this.#receive(request)
    try {
      const { latency, clock } = this.#address
      const { signal } = this.#abort
      if (latency > 0 && clock !== undefined) await wait(clock, latency, signal)
      else if (latency > 0) await sleep(latency, undefined, { signal, ref: false })
      await this.#finish(request, received, message, response)
    } catch {
      // The fake was closed meanwhile, or is itself wrong: its client sees a cut connection.
      message.socket.destroy()
    }
  }

  async #finish(
    request: IncomingRequest,
    { failure, instead, answered }: Received,
    message: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const { answer } = this.#address
    const { execute = false, executeAfter = 0 } = failure ?? {}
    const later = execute && executeAfter > 0
    if (later) void this.#answerLater(request, executeAfter)
    const carriedOut = failure === undefined || (execute && !later) || failure.how === 'cut'
    const due = carriedOut ? await answer(request) : undefined
    switch (failure?.how) {
      case 'silent':
        return
      case 'refuse':
      case 'reset':
        this.#reset(message.socket)
        return
      case 'cut':
        cutShort(due, message.socket, response)
        return
      case 'status':
      case 'garbage':
      case undefined: {
        const sent = instead ?? due
        if (sent === undefined) {
          message.socket.destroy()
          return
        }
        answered(sent.status)
        send(sent, response, request.method === 'HEAD')
      }
    }
  }

  /** Carries a request out once its client has an answer. */
  async #answerLater(request: IncomingRequest, ms: number): Promise<void> {
    const { answer, clock = systemClock } = this.#address
    try {
      await wait(clock, ms, this.#abort.signal)
      await answer(request)
    } catch {
      // The fake was closed meanwhile.
    }
  }

  #reset(socket: Socket): void {
    const raw = this.#sockets.get(socket.remotePort ?? socket)
    // Only TCP has a reset.
    if (this.#address.socket === undefined && raw !== undefined) raw.resetAndDestroy()
    else socket.destroy()
  }
}

/** Half of an answer whose head says how long all of it is. */
function cutShort(due: HttpAnswer | undefined, socket: Socket, response: ServerResponse): void {
  const text = Buffer.from(due?.text ?? '')
  if (due === undefined || text.length < 2) {
    socket.destroy()
    return
  }
  const headers = Object.entries(due.headers ?? {}).filter(
    ([name]) => name.toLowerCase() !== 'content-length',
  )
  response.writeHead(due.status, {
    ...Object.fromEntries(headers),
    'content-length': text.length,
  })
  response.write(text.subarray(0, text.length >> 1), () => socket.end())
}

function send(sent: HttpAnswer, response: ServerResponse, headOnly: boolean): void {
  const headers = sent.headers ?? {}
  if (sent.reason === undefined) response.writeHead(sent.status, headers)
  else response.writeHead(sent.status, sent.reason, headers)
  response.end(headOnly ? undefined : sent.text)
}
