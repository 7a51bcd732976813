import { Agent, request } from 'node:http'
import type { IncomingHttpHeaders } from 'node:http'
import { connect } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'

/** How often a persistent client comes back to its server. */
const STICKY_PAUSE = 3_000

/** Everybody who wants something of the servers, and the book of what they got. */
export class Clients {
  /** Begun, of every kind. */
  requests = 0
  /** In words; none of them should be there. */
  readonly errors: string[] = []
  /** A connection was closed while it rested, just when it was used again: sent once more, as HTTP wants it. */
  resent = 0
  readonly #port: number
  #running = true
  readonly #loops: Promise<void>[] = []

  constructor(port: number) {
    this.#port = port
  }

  /** Clients that keep their connection, and ask for something small again and again. */
  browse(clients: number): void {
    for (let i = 0; i < clients; i++) this.#loops.push(this.#browse())
  }

  /** Persistent clients of a server: they come back to it every few seconds, while they are let in. */
  visit(server: string): void {
    this.#loops.push(this.#visit(server))
  }

  /** A slow answer of one server. */
  slow(server: string, ms: number): Promise<void> {
    return this.#book(this.#get(`/slow?ms=${ms}`, { cookie: `SRV=${server}` }), 'slow', server)
  }

  /** An upgraded connection that talks to one server for a while. */
  upgraded(server: string, ms: number): Promise<void> {
    return this.#book(this.#talk(server, ms), 'upgraded', server)
  }

  /** No more new requests; resolves when the last one has ended. */
  async stop(): Promise<void> {
    this.#running = false
    await Promise.all(this.#loops)
  }

  /** Whether new requests are still begun. */
  isRunning(): boolean {
    return this.#running
  }

  async #browse(): Promise<void> {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    while (this.#running) {
      await this.#book(this.#get('/', {}, agent), 'keep-alive')
      await pause(40 + Math.random() * 40)
    }
    agent.destroy()
  }

  async #visit(server: string): Promise<void> {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    while (this.#running) {
      await this.#book(this.#get('/', { cookie: `SRV=${server}` }, agent), 'persistent', server)
      for (let left = STICKY_PAUSE; left > 0; left -= 100) {
        if (!this.isRunning()) break
        await pause(100)
      }
    }
    agent.destroy()
  }

  async #book(work: Promise<void>, kind: string, server?: string): Promise<void> {
    this.requests++
    try {
      await work
    } catch (error) {
      const text = error instanceof Error ? error.message : String(error)
      this.errors.push(`${kind}${server === undefined ? '' : ` on ${server}`}: ${text}`)
    }
  }

  async #get(path: string, headers: Record<string, string>, agent?: Agent): Promise<void> {
    for (;;) {
      const { status, text, left } = await this.#send(path, headers, agent)
      if (left) {
        this.resent++
        continue
      }
      if (status !== 200) throw new Error(`status ${status}`)
      if (!text.endsWith('done')) throw new Error('the answer is cut short')
      return
    }
  }

  #send(
    path: string,
    headers: IncomingHttpHeaders,
    agent: Agent | undefined,
  ): Promise<{ status: number; text: string; left: boolean }> {
    return new Promise((resolve, reject) => {
      const options = { host: '127.0.0.1', port: this.#port, path, headers, agent: agent ?? false }
      const asked = request(options, (response) => {
        let text = ''
        response.setEncoding('utf8')
        response.on('data', (chunk: string) => (text += chunk))
        response.on('end', () => resolve({ status: response.statusCode ?? 0, text, left: false }))
        response.on('error', reject)
      })
      asked.on('error', (error) => {
        // Nothing of an answer came on a connection that had rested: it was closed, not the request lost.
        if (asked.reusedSocket) resolve({ status: 0, text: '', left: true })
        else reject(error)
      })
      asked.end()
    })
  }

  #talk(server: string, ms: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const socket = connect(this.#port, '127.0.0.1')
      let said = 0
      let heard = -1
      let ending = false
      const timer = setInterval(() => {
        said++
        socket.write('.')
      }, 100)
      const until = setTimeout(() => {
        ending = true
        clearInterval(timer)
        socket.end()
      }, ms)
      socket.write(`GET /echo HTTP/1.1\r\nhost: demo\r\ncookie: SRV=${server}\r\n`)
      socket.write('connection: upgrade\r\nupgrade: echo\r\n\r\n')
      socket.setEncoding('utf8')
      socket.on('data', (chunk: string) => {
        if (heard >= 0) heard += chunk.length
        else if (chunk.includes(' 101 ')) heard = chunk.length - chunk.indexOf('\r\n\r\n') - 4
        else reject(new Error(`not upgraded: ${chunk.slice(0, 30)}`))
      })
      socket.on('error', reject)
      socket.on('close', () => {
        clearInterval(timer)
        clearTimeout(until)
        if (ending && heard === said) resolve()
        else reject(new Error(`cut: ${heard} of ${said} answered`))
      })
    })
  }
}
