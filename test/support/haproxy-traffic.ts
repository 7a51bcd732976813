/** Backends and clients that do exactly what a test tells them. */
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { Agent, createServer, get, type Server, type ServerResponse } from 'node:http'
import { createConnection, createServer as createTcpServer, type Socket } from 'node:net'
import { until } from './haproxy.ts'

/** An HTTP backend: `/hold` is answered when the test says so, `/stream` has sent a first part by then. */
export class Backend implements AsyncDisposable {
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  readonly #held: ServerResponse[] = []
  /** Requests and upgraded connections under way. */
  active = 0
  /** All of both, ever. */
  total = 0
  /** When the last of them came. */
  lastArrivalAt = -Infinity
  /** When the last byte of the last answer was written. */
  lastByteAt = 0

  private constructor(name: string) {
    this.#server = createServer((request, response) => {
      this.#arrived()
      response.on('close', () => {
        this.active -= 1
        this.lastByteAt = performance.now()
      })
      response.setHeader('x-server', name)
      const url = request.url ?? '/'
      if (url.startsWith('/stream')) {
        response.write('first;')
        this.#held.push(response)
      } else if (url.startsWith('/hold')) this.#held.push(response)
      else response.end('ok')
    })
    this.#server.keepAliveTimeout = 60_000
    this.#server.on('connection', (socket) => {
      this.#sockets.add(socket)
      socket.on('close', () => this.#sockets.delete(socket))
      socket.on('error', () => undefined)
    })
    this.#server.on('upgrade', (request, socket) => {
      this.#arrived()
      socket.write(
        `HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-accept: ${acceptKey(request.headers['sec-websocket-key'] ?? '')}\r\n\r\n`,
      )
      socket.on('data', (chunk: Buffer) => socket.write(chunk))
      socket.on('end', () => socket.end())
      socket.on('error', () => undefined)
      socket.on('close', () => {
        this.active -= 1
        this.lastByteAt = performance.now()
      })
    })
  }

  static async start(port: number, name = String(port), address = '127.0.0.1'): Promise<Backend> {
    const backend = new Backend(name)
    backend.#server.listen(port, address)
    await once(backend.#server, 'listening')
    return backend
  }

  #arrived(): void {
    this.active += 1
    this.total += 1
    this.lastArrivalAt = performance.now()
  }

  /** Answers that wait for {@link release}. */
  get held(): number {
    return this.#held.length
  }

  /** Ends the oldest answers, or all. */
  release(count = Infinity): void {
    for (const response of this.#held.splice(0, Math.min(count, this.#held.length))) {
      response.end('done')
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.release()
    const closed = once(this.#server, 'close')
    this.#server.close()
    for (const socket of this.#sockets) socket.destroy()
    await closed
  }
}

/** HAProxy checks it (RFC 6455, section 1.3). */
function acceptKey(key: string): string {
  return createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64')
}

/** A TCP backend that echoes. */
export class TcpBackend implements AsyncDisposable {
  readonly #sockets = new Set<Socket>()
  readonly #server = createTcpServer((socket) => {
    this.#sockets.add(socket)
    socket.on('data', (chunk) => socket.write(chunk))
    socket.on('error', () => undefined)
    socket.on('close', () => this.#sockets.delete(socket))
  })

  static async start(port: number): Promise<TcpBackend> {
    const backend = new TcpBackend()
    backend.#server.listen(port, '127.0.0.1')
    await once(backend.#server, 'listening')
    return backend
  }

  get active(): number {
    return this.#sockets.size
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.#server, 'close')
    this.#server.close()
    for (const socket of this.#sockets) socket.destroy()
    await closed
  }
}

export interface Answer {
  readonly status: number
  readonly server: string
  readonly body: string
  /** The connection broke before the end. */
  readonly cut: boolean
}

export interface RequestOptions {
  readonly cookie?: string
  readonly agent?: Agent
  readonly signal?: AbortSignal
}

/** One request; resolves also where the answer is cut. Status 0: no answer at all. */
export function request(port: number, path: string, options: RequestOptions = {}): Promise<Answer> {
  return new Promise((resolve) => {
    const headers: Record<string, string> =
      options.cookie === undefined ? {} : { cookie: `SRV=${options.cookie}` }
    const sent = get(
      {
        host: '127.0.0.1',
        port,
        path,
        headers,
        agent: options.agent ?? new Agent({ keepAlive: false }),
        ...(options.signal === undefined ? {} : { signal: options.signal }),
      },
      (reply) => {
        let body = ''
        const status = reply.statusCode ?? 0
        const server = String(reply.headers['x-server'] ?? '')
        reply.setEncoding('utf8')
        reply.on('data', (chunk: string) => (body += chunk))
        reply.on('end', () => resolve({ status, server, body, cut: !reply.complete }))
        reply.on('error', () => resolve({ status, server, body, cut: true }))
      },
    )
    sent.on('error', () => resolve({ status: 0, server: '', body: '', cut: true }))
  })
}

/** A plain or an upgraded connection that stays until the test ends it. */
export class Tunnel implements AsyncDisposable {
  readonly socket: Socket
  closed = false
  #text = ''

  private constructor(port: number) {
    this.socket = createConnection({ host: '127.0.0.1', port })
    this.socket.setEncoding('utf8')
    this.socket.on('data', (chunk: string) => (this.#text += chunk))
    this.socket.on('error', () => undefined)
    this.socket.on('close', () => (this.closed = true))
  }

  /** A raw TCP connection that has echoed once. */
  static async tcp(port: number): Promise<Tunnel> {
    const tunnel = new Tunnel(port)
    await tunnel.echo('hello')
    return tunnel
  }

  /** An upgraded HTTP connection. */
  static async websocket(port: number, cookie?: string): Promise<Tunnel> {
    const tunnel = new Tunnel(port)
    const persistence = cookie === undefined ? '' : `cookie: SRV=${cookie}\r\n`
    tunnel.socket.write(
      `GET /ws HTTP/1.1\r\nhost: x\r\n${persistence}upgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`,
    )
    await until(() => tunnel.#text.includes('101'), 'the upgrade')
    return tunnel
  }

  /** Sends and waits until it comes back. */
  async echo(text: string): Promise<void> {
    this.#text = ''
    this.socket.write(text)
    await until(() => this.#text.includes(text), `the echo of ${text}`)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.closed) return
    const closed = once(this.socket, 'close')
    this.socket.destroy()
    await closed
  }
}
