/** Ten servers on addresses of their own, and clients in front of whatever balances them. */
import { once } from 'node:events'
import { Agent, createServer, get, type Server } from 'node:http'
import type { Socket } from 'node:net'

/** How long a server needs to listen again, in milliseconds. */
const LISTENS_AFTER = 3_000

/** One server that can be restarted, and notes what it cut by that. */
export class FleetServer implements AsyncDisposable {
  readonly address: string
  readonly port: number
  /** Requests and upgraded connections under way. */
  active = 0
  /** Requests and upgraded connections that a restart has cut. */
  cut = 0
  restarts = 0
  #server: Server | undefined
  readonly #sockets = new Set<Socket>()

  private constructor(address: string, port: number) {
    this.address = address
    this.port = port
  }

  static async start(address: string, port: number): Promise<FleetServer> {
    const one = new FleetServer(address, port)
    await one.#listen()
    return one
  }

  async #listen(): Promise<void> {
    const server = createServer((request, response) => {
      this.active += 1
      response.on('close', () => (this.active -= 1))
      response.setHeader('x-server', this.address)
      if (request.url !== '/stream') return void response.end('ok')
      response.write('first;')
      setTimeout(() => response.end('last'), 300) // the work of a streaming answer
    })
    server.keepAliveTimeout = 60_000
    server.on('connection', (socket) => {
      this.#sockets.add(socket)
      socket.on('error', () => undefined)
      socket.on('close', () => this.#sockets.delete(socket))
    })
    server.on('upgrade', (_, socket) => {
      this.active += 1
      socket.on('close', () => (this.active -= 1))
      socket.on('end', () => socket.end())
      socket.write(
        'HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n',
      )
      socket.on('data', (chunk: Buffer) => socket.write(chunk))
    })
    server.listen(this.port, this.address)
    await once(server, 'listening')
    this.#server = server
  }

  async #stop(): Promise<void> {
    const server = this.#server
    if (server === undefined) return
    this.#server = undefined
    const closed = once(server, 'close')
    server.close()
    for (const socket of this.#sockets) socket.destroy()
    await closed
  }

  /** What a deploy does: it is stopped at once, and takes its time to come back. */
  async restart(): Promise<void> {
    this.restarts += 1
    this.cut += this.active
    await this.#stop()
    await new Promise((resolve) => setTimeout(resolve, LISTENS_AFTER))
    await this.#listen()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stop()
  }
}

/** A client that asks again and again on one connection. */
export class FleetClient implements AsyncDisposable {
  /** What went wrong, in words. */
  readonly failures: string[] = []
  requests = 0
  #over = false
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 })
  readonly #done: Promise<void>

  constructor(port: number, path: '/' | '/stream') {
    this.#done = this.#run(port, path)
  }

  async #run(port: number, path: string): Promise<void> {
    while (!this.#over) {
      const answer = await this.#ask(port, path)
      this.requests += 1
      const whole = path === '/' ? 'ok' : 'first;last'
      if (answer !== whole) this.failures.push(`${port}${path}: ${answer}`)
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }

  /** A connection that was closed between two requests is no failure: every client opens another one. */
  async #ask(port: number, path: string): Promise<string> {
    for (;;) {
      const answer = await new Promise<string | undefined>((resolve) => {
        const sent = get({ host: '127.0.0.1', port, path, agent: this.#agent }, (reply) => {
          let body = reply.statusCode === 200 ? '' : `status ${String(reply.statusCode)} `
          reply.setEncoding('utf8')
          reply.on('data', (chunk: string) => (body += chunk))
          reply.on('end', () => resolve(reply.complete ? body : `cut after '${body}'`))
          reply.on('error', () => resolve(`cut after '${body}'`))
        })
        sent.on('error', (error) => {
          resolve(sent.reusedSocket ? undefined : `no answer: ${error.message}`)
        })
      })
      if (answer !== undefined) return answer
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#over = true
    await this.#done
    this.#agent.destroy()
  }
}
