/**
 * Pod addresses for servers that are added at run time: `add server` takes no `socks4` (HAProxy 2.6 to 3.4), and the API
 * server takes no loopback addresses. In a CLI of HAProxy, or Envoy's admin API, these are other addresses on the one
 * side than on the other.
 */
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { Transform } from 'node:stream'

export interface Nets {
  /** What the client sees, `10.1.0.`. */
  readonly pods: string
  /** What the balancer has; of the same length where lengths are sent, too. */
  readonly loopback: string
}

/**
 * Makes a socket that is another one with these addresses in place of its own.
 *
 * @param at - a path, or a port on 127.0.0.1; so is the target
 */
export async function relayCli(
  at: string | number,
  target: string | number,
  { pods, loopback }: Nets,
): Promise<AsyncDisposable> {
  const sockets = new Set<Socket>()
  const keep = (socket: Socket): Socket => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    socket.on('error', () => socket.destroy())
    return socket
  }
  const server = createServer((client) => {
    const upstream = keep(connect(placeOf(target)))
    keep(client).pipe(replacing(pods, loopback)).pipe(upstream)
    upstream.pipe(replacing(loopback, pods)).pipe(client)
    client.on('close', () => upstream.destroy())
  })
  server.listen(placeOf(at))
  await once(server, 'listening')
  return {
    [Symbol.asyncDispose]: async () => {
      server.close()
      for (const socket of sockets) socket.destroy()
      await once(server, 'close')
    },
  }
}

function placeOf(at: string | number) {
  return typeof at === 'string' ? { path: at } : { port: at, host: '127.0.0.1' }
}

/** Replaces a text, also where it comes in two pieces. */
function replacing(from: string, to: string): Transform {
  let rest = ''
  return new Transform({
    transform(chunk: Buffer, _, done) {
      const text = (rest + chunk.toString('latin1')).replaceAll(from, to)
      let begun = from.length - 1
      while (!text.endsWith(from.slice(0, begun))) begun -= 1
      rest = text.slice(text.length - begun)
      done(null, Buffer.from(text.slice(0, text.length - begun), 'latin1'))
    },
    flush(done) {
      done(null, Buffer.from(rest, 'latin1'))
    },
  })
}
