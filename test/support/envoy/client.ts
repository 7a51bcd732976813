import { once } from 'node:events'
import { Agent, request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { delay } from '../wait.js'

export interface Answer {
  readonly status: number
  readonly port: number
  readonly body: string
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
}

/** One request to a listener. */
export function ask(
  port: number,
  path = '/',
  options: { agent?: Agent; headers?: Record<string, string> } = {},
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const req = request(
      {
        host: '127.0.0.1',
        port,
        path,
        agent: options.agent ?? false,
        headers: options.headers ?? {},
      },
      (res) => {
        let body = ''
        res.setEncoding('utf8')
        res.on('data', (chunk: string) => (body += chunk))
        res.on('error', reject)
        res.on('end', () =>
          resolve({
            status: res.statusCode ?? 0,
            port: Number(res.headers['x-port']),
            body,
            headers: res.headers,
          }),
        )
      },
    )
    req.on('error', reject)
    req.end()
  })
}

/** Steady traffic from keep-alive clients; every answer that is not 200 is an error. @param paths - asked in turn */
export function startTraffic(
  port: number,
  {
    clients = 4,
    pause = 2,
    paths = ['/'],
  }: { clients?: number; pause?: number; paths?: readonly string[] } = {},
): AsyncDisposable & { readonly sent: number; readonly errors: readonly string[] } {
  const agent = new Agent({ keepAlive: true, maxSockets: clients })
  const errors: string[] = []
  let sent = 0
  let stopped = false
  const isStopped = (): boolean => stopped
  const runs = Array.from({ length: clients }, async () => {
    while (!isStopped()) {
      try {
        const { status } = await ask(port, paths[sent % paths.length], { agent })
        if (status !== 200) errors.push(String(status))
      } catch (error) {
        errors.push(String(error))
      }
      sent++
      await delay(pause)
    }
  })
  return {
    get sent() {
      return sent
    },
    errors,
    [Symbol.asyncDispose]: async () => {
      stopped = true
      await Promise.all(runs)
      agent.destroy()
    },
  }
}

/** A raw connection through a listener; resolves when the first byte came back. */
export async function openTcp(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => undefined)
  await once(socket, 'connect')
  socket.write('x')
  await once(socket, 'data')
  return socket
}

/** One request in a TCP connection of its own, through a listener that knows no HTTP. Resolves when it has ended. */
export async function askRaw(port: number, path: string): Promise<void> {
  const socket = connect(port, '127.0.0.1')
  const ended = new Promise((resolve) => socket.once('close', resolve))
  socket.on('error', () => undefined)
  socket.resume().write(`GET ${path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`)
  await ended
}

/** A websocket through a listener, up to its handshake. */
export async function openWebSocket(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => undefined)
  socket.write(
    'GET /ws HTTP/1.1\r\nhost: x\r\nupgrade: websocket\r\nconnection: Upgrade\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-version: 13\r\n\r\n',
  )
  const [data] = (await Promise.race([
    once(socket, 'data'),
    once(socket, 'close').then(() => [Buffer.from('closed before its handshake')]),
  ])) as [Buffer]
  if (!data.toString().startsWith('HTTP/1.1 101')) {
    socket.destroy()
    throw new Error(data.toString())
  }
  return socket
}
