/** Makes pod addresses reachable on loopback: HAProxy's servers keep them, and connect by way of this (`socks4`). */
import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'

export interface Socks extends AsyncDisposable {
  readonly port: number
}

const GRANTED = Buffer.from([0, 0x5a, 0, 0, 0, 0, 0, 0])
const REFUSED = Buffer.from([0, 0x5b, 0, 0, 0, 0, 0, 0])

/** @param portOf - where on loopback an address is; undefined: nothing listens there */
export async function startSocks(portOf: (address: string) => number | undefined): Promise<Socks> {
  const sockets = new Set<Socket>()
  const keep = (socket: Socket): Socket => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    socket.on('error', () => socket.destroy())
    return socket
  }
  const relay = (client: Socket, request: Buffer): void => {
    // Version, command, port, address, then a user that ends with zero.
    const port = portOf([...request.subarray(4, 8)].join('.'))
    if (request[0] !== 4 || request[1] !== 1 || port === undefined) {
      client.end(REFUSED)
      return
    }
    const upstream = keep(connect(port, '127.0.0.1'))
    upstream.once('connect', () => {
      client.write(GRANTED)
      client.pipe(upstream).pipe(client)
    })
    client.on('close', () => upstream.destroy())
    upstream.on('close', () => client.destroy())
  }
  const server = createServer((client) => {
    keep(client)
    let request = Buffer.alloc(0)
    const read = (part: Buffer): void => {
      request = Buffer.concat([request, part])
      const end = request.indexOf(0, 8)
      if (request.length <= 8 || end < 0) return
      client.off('data', read)
      client.pause()
      relay(client, request)
    }
    client.on('data', read)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      const closed = once(server, 'close')
      server.close()
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
}
