/**
 * One real HTTP backend, in a process of its own so that it can be killed: `node backend-process.ts <name> <port>`.
 *
 * It counts for itself what it has in hand; that count is what the demo believes, not the balancer's and not ours.
 */
import { createServer } from 'node:http'
import type { Socket } from 'node:net'

/** What a backend says of itself. */
export interface Count {
  readonly active: number
  readonly total: number
  /** When its last response (or upgraded connection) ended; milliseconds since 1970. */
  readonly lastEndedAt: number
}

const [, , name = 'web', port = '0'] = process.argv
let active = 0
let total = 0
let lastEndedAt = Date.now()

const server = createServer((request, response) => {
  begin()
  response.on('close', end)
  response.setHeader('x-backend', `${name}/${process.pid}`)
  const url = new URL(request.url ?? '/', 'http://localhost')
  setTimeout(() => response.end('done'), Number(url.searchParams.get('ms') ?? 2))
})
server.keepAliveTimeout = 60_000
server.on('upgrade', (_request, socket: Socket) => {
  begin()
  socket.write('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n')
  socket.on('data', (chunk) => socket.write(chunk))
  socket.on('end', () => socket.end())
  socket.on('error', () => socket.destroy())
  socket.on('close', end)
})
server.listen(Number(port), '127.0.0.1', () => process.send?.('listening'))

process.on('message', (message) => {
  if (message === 'count') process.send?.({ active, total, lastEndedAt } satisfies Count)
})
process.on('disconnect', () => process.exit())

function begin(): void {
  active++
  total++
}

function end(): void {
  active--
  lastEndedAt = Date.now()
}
