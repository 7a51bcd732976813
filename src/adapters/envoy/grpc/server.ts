import {
  Server,
  ServerCredentials,
  status,
  type ServerDuplexStream,
  type ServiceDefinition,
} from '@grpc/grpc-js'
import { once } from 'node:events'
import { createServer as createListener, type Socket } from 'node:net'
import { DrainableError } from '../../../provider/error.js'
import type { Listening } from '../sources/served-sink.js'

/** One stream of one client, in bytes. */
export type ByteStream = ServerDuplexStream<Buffer, Buffer>

/** PEM text. */
export interface ServerTls {
  readonly cert: string
  readonly key: string
  readonly clientCa: string | undefined
}

/** Of all clients together: a set of each of some thousand proxies. */
const MAX_STREAMS = 10_000
/** Envoy opens one for each stream that is not multiplexed. */
const MAX_CONNECTIONS = 10_000
/** For a client that does not read why it is sent away, ms. */
const GOODBYE = 1_000

/** What the streams are answered by. */
export interface Handlers {
  /** @param isWhole - whether everything goes over that stream (ADS) */
  readonly sotw?: (stream: ByteStream, isWhole: boolean) => void
  readonly delta?: (stream: ByteStream, isWhole: boolean) => void
  readonly loads: (stream: ByteStream) => void
}

const ADS = '/envoy.service.discovery.v3.AggregatedDiscoveryService'
const EDS = '/envoy.service.endpoint.v3.EndpointDiscoveryService'
const LRS = '/envoy.service.load_stats.v3.LoadReportingService'

/**
 * The gRPC server: ADS, EDS and LRS on one port, for so many streams at most. Messages are handed on as bytes.
 *
 * A proxy that is frozen, or cut off without a word, is found by pings and its streams end.
 */
export function createServer(handlers: Handlers, most = MAX_STREAMS): Server {
  const server = new Server({
    'grpc.max_receive_message_length': 4 * 1024 * 1024,
    'grpc.max_send_message_length': -1,
    'grpc.keepalive_time_ms': 10_000,
    'grpc.keepalive_timeout_ms': 5_000,
    'grpc.max_concurrent_streams': most,
    // A proxy has a stream for as long as it lives: who has none asks for nothing.
    'grpc.max_connection_idle_ms': 60_000,
  })
  let streams = 0
  const counted = (onStream: (stream: ByteStream) => void) => (stream: ByteStream) => {
    if (streams >= most) {
      const details = `more than ${most} streams`
      stream.emit('error', { code: status.RESOURCE_EXHAUSTED, details })
      return
    }
    streams += 1
    let isOpen = true
    const end = (): void => {
      if (isOpen) streams -= 1
      isOpen = false
    }
    for (const event of ['end', 'error', 'cancelled', 'close']) stream.once(event, end)
    onStream(stream)
  }
  const loads = { path: LRS, methods: { StreamLoadStats: { onStream: handlers.loads } } }
  for (const { path, methods } of [...endpointServices(handlers), loads]) {
    const entries = Object.entries(methods)
    const definition: ServiceDefinition = Object.fromEntries(
      entries.map(([name]) => [name, bidi(`${path}/${name}`)]),
    )
    server.addService(
      definition,
      Object.fromEntries(entries.map(([name, { onStream }]) => [name, counted(onStream)])),
    )
  }
  return server
}

/** ADS and EDS, where there are handlers for them. */
function endpointServices({ sotw, delta }: Handlers) {
  if (sotw === undefined || delta === undefined) return []
  const each = (isWhole: boolean) => ({
    state: { onStream: (stream: ByteStream) => sotw(stream, isWhole) },
    delta: { onStream: (stream: ByteStream) => delta(stream, isWhole) },
  })
  const [whole, part] = [each(true), each(false)]
  return [
    {
      path: ADS,
      methods: { StreamAggregatedResources: whole.state, DeltaAggregatedResources: whole.delta },
    },
    { path: EDS, methods: { StreamEndpoints: part.state, DeltaEndpoints: part.delta } },
  ]
}

/**
 * Hands on every message. One that can't be read ends the stream with INVALID_ARGUMENT: thrown out of
 * a listener, it would end the process.
 */
export function onMessage(stream: ByteStream, read: (bytes: Uint8Array) => void): void {
  stream.on('data', (bytes: Buffer) => {
    try {
      read(bytes)
    } catch (cause) {
      const details = cause instanceof Error ? cause.message : 'unreadable message'
      stream.emit('error', { code: status.INVALID_ARGUMENT, details })
    }
  })
}

/**
 * Listens, for so many connections at most; the streams of a server have their own limit.
 *
 * @throws `INVALID_OPTIONS` where the address cannot be had
 */
export async function bind(
  server: Server,
  host: string,
  port: number,
  tls: ServerTls | undefined,
  subject = 'grpcEndpoints()',
  most = MAX_CONNECTIONS,
): Promise<Listening> {
  const sockets = new Set<Socket>()
  const listener = createListener((socket) => {
    socket.on('error', () => undefined)
    if (sockets.size >= most) {
      // Words can be told only where no handshake is due.
      socket.resume().end(tls === undefined ? goAway(`more than ${most} connections`) : '')
      socket.setTimeout(GOODBYE, () => socket.destroy())
      return
    }
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
    injector.injectConnection(socket)
  })
  const fail = (cause: unknown): DrainableError =>
    new DrainableError(
      'INVALID_OPTIONS',
      `${subject}: cannot listen on ${host}:${port}: ${cause instanceof Error ? cause.message : String(cause)}`,
      { cause },
    )
  let injector: ReturnType<Server['createConnectionInjector']>
  try {
    injector = server.createConnectionInjector(credentials(tls))
    listener.listen(port, host.replace(/^\[|\]$/g, ''))
    await once(listener, 'listening')
  } catch (cause) {
    throw fail(cause)
  }
  listener.on('error', () => undefined) // one connection that could not be taken
  const at = listener.address()
  return {
    address: { host, port: typeof at === 'object' && at !== null ? at.port : port },
    close: () => {
      listener.close()
      server.forceShutdown()
      for (const socket of sockets) socket.destroy()
    },
  }
}

/** An HTTP/2 GOAWAY with a reason in words: `ENHANCE_YOUR_CALM`, after the settings that begin every connection. */
function goAway(words: string): Buffer {
  const text = Buffer.from(words)
  const settings = Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0])
  const head = Buffer.from([0, 0, 8 + text.length, 7, 0, 0, 0, 0, 0])
  const body = Buffer.from([0, 0, 0, 0, 0, 0, 0, 0x0b])
  return Buffer.concat([settings, head, body, text])
}

function credentials(tls: ServerTls | undefined): ServerCredentials {
  if (tls === undefined) return ServerCredentials.createInsecure()
  const pair = { cert_chain: Buffer.from(tls.cert), private_key: Buffer.from(tls.key) }
  const ca = tls.clientCa === undefined ? null : Buffer.from(tls.clientCa)
  return ServerCredentials.createSsl(ca, [pair], ca !== null)
}

function bidi(path: string): ServiceDefinition[string] {
  const same = (value: Buffer): Buffer => value
  return {
    path,
    requestStream: true,
    responseStream: true,
    requestSerialize: same,
    requestDeserialize: same,
    responseSerialize: same,
    responseDeserialize: same,
  }
}
