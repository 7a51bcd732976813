import { connect, createServer } from 'node:net'
import type { AddressInfo, Server, Socket } from 'node:net'
import type { Accept, Frontend, Place } from './lane.js'

/** Forwards TCP connections, each to one member for as long as it lasts; half-closes are passed on. */
export async function tcpFrontend(options: {
  readonly port: number
  readonly accept: Accept
}): Promise<Frontend> {
  const clients = new Set<Socket>()
  const server = createServer({ allowHalfOpen: true }, (client) => {
    clients.add(client)
    client.on('close', () => clients.delete(client))
    forward(client, options.accept)
  })
  await listen(server, options.port)
  return {
    port: (server.address() as AddressInfo).port,
    pooled: () => 0,
    flush: () => undefined,
    close: () => {
      for (const client of clients) client.destroy()
      return new Promise((resolve) => server.close(() => resolve()))
    },
  }
}

/** Listens on 127.0.0.1 only. */
export function listen(server: Server, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', () => {
      server.off('error', reject)
      resolve()
    })
  })
}

function forward(client: Socket, accept: Accept): void {
  const lane = accept(client)
  let withdraw = (): void => undefined
  let place: Place | undefined
  const over = (): void => {
    withdraw()
    place?.end()
    place = undefined
  }
  client.on('error', () => undefined)
  client.on('close', () => {
    over()
    lane.close()
  })
  lane.onEnd(() => client.destroy())
  const start = (found: Place | undefined): void => {
    if (!found) {
      client.destroy()
      return
    }
    place = found
    join(client, found, over)
  }
  withdraw = lane.claim(undefined, start)
}

function join(client: Socket, place: Place, over: () => void): void {
  const upstream = connect({ host: place.host, port: place.port, allowHalfOpen: true })
  let connected = false
  place.onCut(() => {
    upstream.destroy()
    client.destroy()
  })
  upstream.once('connect', () => {
    connected = true
    place.count('connect')
    pass(client, upstream, place)
  })
  upstream.on('error', () => {
    if (!connected && !client.destroyed && place.retry(() => join(client, place, over))) return
    if (!connected) place.count('refused')
    client.destroy()
  })
  upstream.on('close', () => {
    if (connected) client.destroySoon()
  })
  client.on('close', () => {
    upstream.destroy()
    over()
  })
}

/** Pumps both ways and counts. */
export function pass(client: Socket, upstream: Socket, place: Place): void {
  client.on('data', (chunk) => place.bytes(chunk.length, 0))
  upstream.on('data', (chunk) => place.bytes(0, chunk.length))
  client.pipe(upstream)
  upstream.pipe(client)
}
