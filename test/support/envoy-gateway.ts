/** An Envoy as a gateway: a balancer in front that checks its health, clients, and a provider that drains it. */
import { once } from 'node:events'
import { connect as connectTo, type Socket } from 'node:net'
import { connect as connectHttp2, type ClientHttp2Session } from 'node:http2'
import { envoyListener, type EnvoyListenerOptions } from 'drainable/envoy-listener'
import { type EnvoyOptions } from './envoy/bootstrap.js'
import { ask } from './envoy/client.js'
import { type RunningEnvoy } from './envoy/proxy.js'
import { delay } from './wait.js'
import { fileStage, type Stage } from './envoy/stage.js'

export const HEALTH_CHECK = {
  name: 'health',
  typed_config: {
    '@type': 'type.googleapis.com/envoy.extensions.filters.http.health_check.v3.HealthCheck',
    pass_through_mode: false,
    headers: [{ name: ':path', string_match: { exact: '/healthz' } }],
  },
}

/** As the provider names the one Envoy, whatever its port. */
export const TARGET = { pool: 'envoy' }

export interface Gateway extends AsyncDisposable {
  readonly proxy: RunningEnvoy
  readonly stage: Stage
  readonly provider: ReturnType<typeof envoyListener>
}

export async function startGateway(
  path: string,
  options: {
    readonly envoy?: Partial<EnvoyOptions>
    readonly provider?: Partial<EnvoyListenerOptions>
    /** Whether a balancer in front checks its health. @default true */
    readonly checked?: boolean
  } = {},
): Promise<Gateway> {
  const stage = await fileStage(path, { envoy: { httpFilters: [HEALTH_CHECK], ...options.envoy } })
  const { proxy } = stage
  const provider = envoyListener({ admin: proxy.admin, ...options.provider })
  let stopped = options.checked === false
  const isStopped = (): boolean => stopped
  const checks = (async () => {
    while (!isStopped()) {
      await ask(proxy.http, '/healthz').catch(() => undefined)
      await delay(50)
    }
  })()
  return {
    proxy,
    stage,
    provider,
    [Symbol.asyncDispose]: async () => {
      stopped = true
      await checks
      await provider.close()
      await stage[Symbol.asyncDispose]()
    },
  }
}

/** A client that has asked once and keeps its connection. */
export async function idleClient(port: number): Promise<Socket> {
  const socket = connectTo(port, '127.0.0.1')
  socket.on('error', () => undefined)
  socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n')
  await once(socket, 'data')
  return socket
}

/** A connection through the TCP proxy on which nothing is said. */
export async function quietTcp(port: number): Promise<Socket> {
  const socket = connectTo(port, '127.0.0.1')
  socket.on('error', () => undefined)
  await once(socket, 'connect')
  return socket
}

/** An HTTP/2 client with one answered request. */
export async function http2Client(port: number): Promise<ClientHttp2Session> {
  const session = connectHttp2(`http://127.0.0.1:${port}`)
  session.on('error', () => undefined)
  await http2Ask(session, '/')
  return session
}

export async function http2Ask(session: ClientHttp2Session, path: string): Promise<void> {
  const stream = session.request({ ':path': path })
  stream.on('data', () => undefined)
  stream.end()
  await once(stream, 'end')
}
