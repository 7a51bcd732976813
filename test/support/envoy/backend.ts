import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createTcp, type AddressInfo, type Socket } from 'node:net'

/** A server behind Envoy: `/hold` is answered when it is let go, everything else at once. */
export interface Backend extends AsyncDisposable {
  readonly port: number
  readonly member: string
  /** When each request came in. */
  readonly requests: readonly number[]
  readonly held: number
  /** WebSockets that are open. */
  readonly tunnels: number
  /** Lets every held request go. */
  release(): void
  /** Lets the one that came first go. */
  releaseOne(): void
}

export async function startBackend(): Promise<Backend> {
  const requests: number[] = []
  const held = new Set<ServerResponse>()
  const tunnels = new Set<Socket>()
  const sockets = new Set<Socket>()
  const server = createServer((req: IncomingMessage, res) => {
    requests.push(performance.now())
    res.setHeader('x-port', String((server.address() as AddressInfo).port))
    if (req.url?.startsWith('/hold') === true) {
      held.add(res)
      res.on('close', () => held.delete(res))
      if (req.url.startsWith('/hold-stream')) res.write('begun')
    } else res.end('ok')
  })
  server.on('upgrade', (req, socket: Socket) => {
    requests.push(performance.now())
    tunnels.add(socket)
    socket.on('close', () => tunnels.delete(socket))
    socket.write(
      'HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\n\r\n',
    )
    socket.on('data', (data) => socket.write(data))
    socket.on('end', () => socket.end())
    socket.on('error', () => undefined)
  })
  server.keepAliveTimeout = 60_000
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    port,
    member: `127.0.0.1:${port}`,
    requests,
    get held() {
      return held.size
    },
    get tunnels() {
      return tunnels.size
    },
    release: () => {
      for (const res of held) res.end('done')
    },
    releaseOne: () => {
      const [first] = held
      if (first === undefined) return
      held.delete(first)
      first.end('done')
    },
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy()
      if (!server.listening) return
      server.close()
      await once(server, 'close')
    },
  }
}

/** An echo server for raw TCP. */
export async function startEcho(): Promise<
  AsyncDisposable & { readonly port: number; readonly member: string }
> {
  const sockets = new Set<Socket>()
  const server = createTcp((socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined)
    socket.on('data', (data) => socket.write(data))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    port,
    member: `127.0.0.1:${port}`,
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}
