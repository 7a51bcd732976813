import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'

/** What lies between the proxies and their management server: it can be cut. */
export interface Relay extends AsyncDisposable {
  readonly port: number
  /** How many connections were taken and never answered. */
  readonly taken: number
  /** Ends every connection; new ones are taken. */
  cut(): void
}

/** @param target - where a connection goes; `silent`: it is taken and never answered; undefined: it is refused */
export async function startRelay(target: () => number | 'silent' | undefined): Promise<Relay> {
  let taken = 0
  const sockets = new Set<Socket>()
  const keep = (socket: Socket): Socket => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    socket.on('error', () => socket.destroy())
    return socket
  }
  const server = createServer((client) => {
    keep(client)
    const port = target()
    if (port === 'silent') {
      taken += 1
      return
    }
    if (port === undefined) {
      client.destroy()
      return
    }
    const upstream = keep(connect(port, '127.0.0.1'))
    client.pipe(upstream).pipe(client)
    client.on('close', () => upstream.destroy())
    upstream.on('close', () => client.destroy())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const cut = (): void => {
    for (const socket of sockets) socket.destroy()
  }
  return {
    port: (server.address() as AddressInfo).port,
    cut,
    get taken() {
      return taken
    },
    [Symbol.asyncDispose]: async () => {
      server.close()
      cut()
      await once(server, 'close')
    },
  }
}
