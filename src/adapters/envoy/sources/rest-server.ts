import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { isObject, type JsonObject } from '../../../kit/json.js'
import { DrainableError } from '../../../provider/error.js'
import type { Listening } from './served-sink.js'

/** What becomes of one poll. */
export type Answer =
  | { readonly status: 200; readonly body: JsonObject }
  | { readonly status: 304 }
  /** @param why - what was expected, for whoever sent it */
  | { readonly status: 400 | 404 | 413 | 503; readonly why: string }

/** What one client may take of a server. */
export interface RestLimits {
  readonly connections: number
  /** Milliseconds until a whole request is in. */
  readonly request: number
  /** Milliseconds until a client has read its whole answer. */
  readonly answer: number
}

const LIMITS: RestLimits = { connections: 10_000, request: 30_000, answer: 30_000 }
/** Envoy sends its whole node with each poll: 77 KB. */
const MAX_REQUEST = 4 * 1024 * 1024
/** Envoy keeps its connection between two polls. */
const KEEP_ALIVE = 75_000
/** For a client that does not read why it is sent away, ms. */
const GOODBYE = 1_000
const PATH = '/v3/discovery:endpoints'

/**
 * Listens for polls of Envoy (REST xDS), within limits: whatever a client sends, or does not read, ends its own
 * connection and nothing else.
 *
 * @throws `INVALID_OPTIONS` where the address cannot be had
 */
export async function listenRest(
  answer: (body: JsonObject, socket: Socket) => Answer,
  at: { readonly host: string; readonly port: number },
  limits: RestLimits = LIMITS,
): Promise<Listening> {
  const connectionsCheckingInterval = Math.min(5_000, limits.request)
  const refused = new WeakSet<Socket>()
  // Not imported: that reads every name of node:http, which loads Node's own undici, 20 ms that only a listener needs.
  const { createServer } = process.getBuiltinModule('node:http')
  const server = createServer({ connectionsCheckingInterval }, (request, response) => {
    if (refused.has(request.socket)) return
    readPoll(request)
      .then((read) => ('body' in read ? answer(read.body, request.socket) : read.refusal))
      .then((given) => send(given, response, limits.answer))
      .catch(() => response.destroy())
  })
  server.requestTimeout = limits.request
  server.headersTimeout = limits.request
  server.keepAliveTimeout = KEEP_ALIVE
  refuseMore(server, limits.connections, refused)
  await listening(server, at)
  const found = server.address()
  const isKnown = typeof found === 'object' && found !== null
  return {
    address: isKnown ? { host: found.address, port: found.port } : at,
    close: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** Node's own `maxConnections` says nothing to who is one too many. */
function refuseMore(server: Server, most: number, refused: WeakSet<Socket>): void {
  const sockets = new Set<Socket>()
  server.prependListener('connection', (socket: Socket) => {
    if (sockets.size >= most) {
      refused.add(socket)
      const limit = setTimeout(() => socket.destroy(), GOODBYE).unref()
      socket.once('close', () => clearTimeout(limit))
      socket.end(refusalOf(`more than ${most} connections`))
      return
    }
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
}

function refusalOf(why: string): string {
  const head = ['HTTP/1.1 503 Service Unavailable', 'connection: close', 'content-type: text/plain']
  return [...head, `content-length: ${why.length}`, '', why].join('\r\n')
}

function listening(
  server: Server,
  { host, port }: { readonly host: string; readonly port: number },
): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (cause) =>
      reject(
        new DrainableError(
          'INVALID_OPTIONS',
          `restEndpoints(): cannot listen on ${host}:${port}: ${cause.message}`,
          { cause },
        ),
      ),
    )
    server.listen(port, host, () => {
      server.on('error', () => undefined) // one connection that could not be taken
      resolve()
    })
  })
}

function send(answer: Answer, response: ServerResponse, within: number): void {
  // Until it is read the answer is kept: a client that never reads would keep it for ever.
  const limit = setTimeout(() => response.destroy(), within).unref()
  response.once('close', () => clearTimeout(limit))
  if (answer.status === 304) {
    response.writeHead(304).end()
    return
  }
  if (answer.status === 200) {
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer.body))
    return
  }
  response.writeHead(answer.status, { 'content-type': 'text/plain', connection: 'close' })
  response.end(answer.why)
}

async function readPoll(
  request: IncomingMessage,
): Promise<{ readonly body: JsonObject } | { readonly refusal: Answer }> {
  const path = (request.url ?? '').split('?')[0]
  if (request.method !== 'POST' || path !== PATH) {
    return { refusal: { status: 404, why: `expected POST ${PATH}` } }
  }
  const chunks: Buffer[] = []
  let size = 0
  // What is left unread of one that is too large must not end the connection before its answer.
  const parts = request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>
  for await (const chunk of parts) {
    size += chunk.length
    if (size > MAX_REQUEST) {
      return { refusal: { status: 413, why: `a request of more than ${MAX_REQUEST} bytes` } }
    }
    chunks.push(chunk)
  }
  try {
    const value: unknown = JSON.parse(Buffer.concat(chunks).toString('utf8'))
    if (isObject(value)) return { body: value }
  } catch {
    // Answered below.
  }
  return { refusal: { status: 400, why: 'expected a DiscoveryRequest in JSON' } }
}
