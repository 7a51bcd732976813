/** A server with large responses, and clients that read them slowly. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import { connect, type AddressInfo } from 'node:net'

/** Bytes: more than the kernel takes of a client that does not read, and Envoy keeps besides. */
export const LARGE = 8 * 1024 * 1024

/** Answers every request with {@link LARGE} bytes. */
export async function startLarge(): Promise<AsyncDisposable & { readonly port: number }> {
  const body = Buffer.alloc(LARGE, 'x')
  const server = createServer((_, response) => response.end(body))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

export interface SlowClient {
  /** Bytes so far, those of the head too. */
  readonly got: number
  /** Reads one piece more. */
  read(): void
  /** Reads all that is left; resolves with the number of bytes when the response, or the connection, has ended. */
  finish(): Promise<number>
}

/** A client that asks for one response and reads it when it is told to. */
export async function slowClient(port: number): Promise<SlowClient> {
  const socket = connect(port, '127.0.0.1')
  let got = 0
  let isOver = false
  socket.on('error', () => undefined)
  socket.on('data', (piece) => {
    got += piece.length
    if (!isOver) socket.pause()
    else if (got > LARGE) socket.destroy()
  })
  socket.pause()
  await once(socket, 'connect')
  // Kept alive: Envoy itself cuts one that it is to close and that does not read for a second (delayed_close_timeout).
  socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n')
  return {
    get got() {
      return got
    },
    read: () => void socket.resume(),
    finish: async () => {
      isOver = true
      const closed = once(socket, 'close')
      socket.resume()
      await closed
      return got
    },
  }
}
