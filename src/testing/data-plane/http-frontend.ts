import { Agent, createServer, request } from 'node:http'
import type { ClientRequest, IncomingMessage, ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import type { Accept, Frontend, Lane, Place } from './lane.js'
import { listen, pass } from './tcp-frontend.js'

/** How long a client connection may rest between two requests, in milliseconds. */
const KEEP_ALIVE = 3_000
const HOP_BY_HOP = new Set(['connection', 'keep-alive', 'proxy-connection', 'transfer-encoding'])

const UNAVAILABLE = page(
  503,
  'Service Unavailable',
  'No server is available to handle this request.',
)
const BAD_GATEWAY = page(
  502,
  'Bad Gateway',
  'The server returned an invalid or incomplete response.',
)

/**
 * Forwards HTTP requests, each to a member of its own: keep-alive on both sides, bodies streamed both
 * ways, upgrades passed through, and a client kept on its member by a cookie if one is named.
 */
export async function httpFrontend(options: {
  readonly port: number
  readonly cookie: string | undefined
  readonly accept: Accept
}): Promise<Frontend> {
  const agents = new Map<string, Agent>()
  const agentOf = ({ host, port }: Place): Agent => {
    const key = `${host}:${port}`
    const agent = agents.get(key) ?? new Agent({ keepAlive: true, maxSockets: Infinity })
    agents.set(key, agent)
    return agent
  }
  const lanes = new WeakMap<Socket, Lane>()
  const clients = new Set<Socket>()
  const server = createServer({ keepAliveTimeout: KEEP_ALIVE }, (incoming, response) => {
    const lane = lanes.get(incoming.socket)
    if (lane) new Exchange(incoming, response, lane, options.cookie, agentOf).begin()
  })
  server.on('connection', (client: Socket) => {
    const lane = options.accept(client)
    lanes.set(client, lane)
    clients.add(client)
    client.on('close', () => {
      clients.delete(client)
      lane.close()
    })
    lane.onEnd(() => client.destroy())
  })
  server.on('upgrade', (incoming: IncomingMessage, client: Socket, head: Buffer) => {
    const lane = lanes.get(client)
    if (lane) upgrade(incoming, client, head, lane, options.cookie)
  })
  await listen(server, options.port)
  const idle = (host: string, port: number): readonly Socket[] => {
    const free = agents.get(`${host}:${port}`)?.freeSockets ?? {}
    return Object.values(free).flatMap((sockets) => sockets ?? [])
  }
  return {
    port: (server.address() as AddressInfo).port,
    pooled: (host, port) => idle(host, port).length,
    flush: (host, port) => idle(host, port).forEach((socket) => socket.destroy()),
    close: async () => {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      for (const client of clients) client.destroy()
      for (const agent of agents.values()) agent.destroy()
      await closed
    },
  }
}

/** One request and its response. */
class Exchange {
  readonly #incoming: IncomingMessage
  readonly #response: ServerResponse
  readonly #lane: Lane
  readonly #cookie: string | undefined
  readonly #agentOf: (place: Place) => Agent
  readonly #wanted: string | undefined
  #withdraw = (): void => undefined
  #place: Place | undefined
  #upstream: ClientRequest | undefined

  constructor(
    incoming: IncomingMessage,
    response: ServerResponse,
    lane: Lane,
    cookie: string | undefined,
    agentOf: (place: Place) => Agent,
  ) {
    this.#incoming = incoming
    this.#response = response
    this.#lane = lane
    this.#cookie = cookie
    this.#agentOf = agentOf
    this.#wanted = readCookie(incoming, cookie)
  }

  begin(): void {
    this.#response.on('close', () => {
      this.#withdraw()
      if (!this.#response.writableFinished) this.#place?.count('client-abort')
      this.#upstream?.destroy()
      this.#over()
    })
    this.#withdraw = this.#lane.claim(this.#wanted, (place) => {
      if (!place) this.#answer(UNAVAILABLE)
      else this.#send(place)
    })
  }

  #send(place: Place, isFresh = false): void {
    this.#place = place
    const { method, url, rawHeaders, headers } = this.#incoming
    const hasBody = headers['content-length'] !== undefined || 'transfer-encoding' in headers
    const upstream = request({
      agent: isFresh ? false : this.#agentOf(place),
      host: place.host,
      port: place.port,
      method,
      path: url,
      headers: [...forwarded(rawHeaders), 'connection', 'keep-alive'],
      setHost: false,
    })
    this.#upstream = upstream
    let answered = false
    place.onCut(() => {
      upstream.destroy()
      this.#response.destroy()
    })
    upstream.on('socket', (socket: Socket) => {
      if (!socket.connecting) place.count('reuse')
      else socket.once('connect', () => place.count('connect'))
    })
    upstream.on('response', (reply) => {
      answered = true
      this.#relay(reply, place)
    })
    upstream.on('error', (error: NodeJS.ErrnoException) => {
      if (answered || this.#response.destroyed) {
        this.#response.destroy()
        return
      }
      // A pooled connection that the server closed just then: nothing of this request was done.
      if (upstream.reusedSocket && !hasBody) {
        this.#send(place, true)
        return
      }
      const refused = error.code === 'ECONNREFUSED'
      if (refused && place.retry(() => this.#send(place))) return
      if (refused) place.count('refused')
      this.#answer(refused ? UNAVAILABLE : BAD_GATEWAY)
    })
    this.#incoming.on('data', (chunk: Buffer) => place.bytes(chunk.length, 0))
    if (hasBody) this.#incoming.pipe(upstream)
    else upstream.end()
  }

  #relay(reply: IncomingMessage, place: Place): void {
    const status = reply.statusCode ?? 502
    place.answered(status)
    const headers = forwarded(reply.rawHeaders)
    if (this.#cookie !== undefined && this.#wanted !== place.name) {
      headers.push('set-cookie', `${this.#cookie}=${place.name}; path=/`)
    }
    if (this.#lane.leaving) headers.push('connection', 'close')
    this.#response.writeHead(status, reply.statusMessage, headers)
    // A stream must not wait for its first byte of body to be seen to have begun.
    this.#response.flushHeaders()
    reply.on('data', (chunk: Buffer) => place.bytes(0, chunk.length))
    reply.on('error', () => this.#response.destroy())
    reply.on('aborted', () => this.#response.destroy())
    reply.pipe(this.#response)
  }

  #answer({ status, text, body }: Page): void {
    if (this.#response.headersSent) {
      this.#response.destroy()
      return
    }
    this.#response.writeHead(status, text, {
      'content-length': Buffer.byteLength(body),
      'cache-control': 'no-cache',
      'content-type': 'text/html',
      ...(this.#lane.leaving && { connection: 'close' }),
    })
    this.#response.end(body)
  }

  #over(): void {
    this.#place?.end()
    this.#place = undefined
  }
}

/** Passes an upgrade through: from then on the two connections are one. */
function upgrade(
  incoming: IncomingMessage,
  client: Socket,
  head: Buffer,
  lane: Lane,
  cookie: string | undefined,
): void {
  let place: Place | undefined
  let withdraw = (): void => undefined
  client.on('error', () => undefined)
  client.on('close', () => {
    withdraw()
    place?.end()
    place = undefined
  })
  const send = (found: Place): void => {
    place = found
    const { method, url, rawHeaders, headers } = incoming
    const upstream = request({
      agent: false,
      host: found.host,
      port: found.port,
      method,
      path: url,
      headers: [
        ...forwarded(rawHeaders),
        'connection',
        'upgrade',
        'upgrade',
        headers.upgrade ?? '',
      ],
      setHost: false,
    })
    found.onCut(() => {
      upstream.destroy()
      client.destroy()
    })
    client.on('close', () => upstream.destroy())
    upstream.on('socket', (socket: Socket) => socket.once('connect', () => found.count('connect')))
    upstream.on('upgrade', (reply, socket, rest) => {
      found.answered(101)
      client.write(headOf(reply))
      if (rest.length > 0) client.write(rest)
      if (head.length > 0) socket.write(head)
      socket.on('error', () => client.destroy())
      socket.on('close', () => client.destroySoon())
      client.on('close', () => socket.destroy())
      pass(client, socket, found)
    })
    upstream.on('response', (reply) => {
      found.answered(reply.statusCode ?? 502)
      client.write(headOf(reply, ['connection: close']))
      reply.pipe(client)
    })
    upstream.on('error', (error: NodeJS.ErrnoException) => {
      const refused = error.code === 'ECONNREFUSED'
      if (refused && !client.destroyed && found.retry(() => send(found))) return
      client.end(refused ? asText(UNAVAILABLE) : asText(BAD_GATEWAY))
    })
    upstream.end()
  }
  withdraw = lane.claim(readCookie(incoming, cookie), (found) => {
    if (found) send(found)
    else client.end(asText(UNAVAILABLE))
  })
}

interface Page {
  readonly status: number
  readonly text: string
  readonly body: string
}

function page(status: number, text: string, why: string): Page {
  return { status, text, body: `<html><body><h1>${status} ${text}</h1>\n${why}\n</body></html>\n` }
}

function asText({ status, text, body }: Page): string {
  const length = Buffer.byteLength(body)
  return `HTTP/1.1 ${status} ${text}\r\ncontent-length: ${length}\r\nconnection: close\r\n\r\n${body}`
}

function headOf(reply: IncomingMessage, extra: readonly string[] = []): string {
  const upgrades = reply.statusCode === 101
  const raw = upgrades ? reply.rawHeaders : forwarded(reply.rawHeaders)
  const lines: string[] = []
  for (let i = 0; i + 1 < raw.length; i += 2) lines.push(`${raw[i] ?? ''}: ${raw[i + 1] ?? ''}`)
  const status = `HTTP/1.1 ${reply.statusCode ?? 502} ${reply.statusMessage ?? ''}`
  return `${[status, ...lines, ...extra].join('\r\n')}\r\n\r\n`
}

/** The headers that go further, names and values in turn. */
function forwarded(raw: readonly string[]): string[] {
  const kept: string[] = []
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const name = raw[i] ?? ''
    const lower = name.toLowerCase()
    const isBody = lower === 'transfer-encoding'
    if (isBody || (!HOP_BY_HOP.has(lower) && lower !== 'upgrade')) kept.push(name, raw[i + 1] ?? '')
  }
  return kept
}

function readCookie({ headers }: IncomingMessage, name: string | undefined): string | undefined {
  if (name === undefined) return undefined
  for (const part of (headers.cookie ?? '').split(';')) {
    const at = part.indexOf('=')
    if (part.slice(0, at).trim() === name) return part.slice(at + 1).trim()
  }
  return undefined
}
