import { once } from 'node:events'
import { createServer, type Server } from 'node:net'
import { until } from './haproxy.js'

/** An agent that always says the same, and that HAProxy has asked once. */
export class Agent implements AsyncDisposable {
  readonly #server: Server

  private constructor(server: Server) {
    this.#server = server
  }

  static async start(port: number, says: string): Promise<Agent> {
    let asked = 0
    const server = createServer((socket) => {
      asked += 1
      socket.on('error', () => undefined).end(`${says}\n`)
    })
    server.listen(port, '127.0.0.1')
    await once(server, 'listening')
    // HAProxy spreads the first checks of all servers over the longest interval.
    await until(() => asked > 0, 'the agent is asked')
    return new Agent(server)
  }

  async stop(): Promise<void> {
    if (!this.#server.listening) return
    this.#server.close()
    await once(this.#server, 'close')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
  }
}
