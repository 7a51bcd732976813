import { spawn, spawnSync } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { startFake } from 'drainable/testing/haproxy-runtime'
import type { SocketAddress } from 'drainable/testing/haproxy-runtime'
import { readEngines } from '../engines/manifest.ts'
import type { Engine } from '../engines/manifest.ts'
import { freePort } from '../ports.ts'

/** A HAProxy in front of the servers: the real one, or the one that comes with this package. */
export interface Balancer extends AsyncDisposable {
  readonly engine: 'haproxy' | 'fake'
  readonly version: string
  readonly socket: SocketAddress
  readonly master: SocketAddress
  /** Where clients come in. */
  readonly port: number
  reload(): Promise<void>
}

/** A server of the backend `web`. */
export interface WebServer {
  readonly name: string
  readonly port: number
}

/** Requests at once on one server: what comes on top is queued. */
const MAXCONN = 6

/** The newest HAProxy that is there; else one is fetched into the git-ignored folder of engines. */
export function findEngine(say: (text: string) => void): Engine | undefined {
  const found = readEngines('haproxy').at(-1)
  if (found) return found
  say('No HAProxy found: fetching one into .engines/ (once; no root needed)')
  const script = fileURLToPath(new URL('../engines/main.ts', import.meta.url))
  for (const name of ['haproxy-3.0', 'haproxy-3.2', 'haproxy-2.6']) {
    spawnSync(process.execPath, [script, name], { stdio: ['ignore', 'inherit', 'inherit'] })
    const fetched = readEngines('haproxy').at(-1)
    if (fetched) return fetched
  }
  return undefined
}

/** A real HAProxy under a master process, as a service manager runs it. */
export async function startHaproxy(
  engine: Engine,
  servers: readonly WebServer[],
): Promise<Balancer> {
  const folder = await mkdtemp(join(tmpdir(), 'demo-'))
  const socket = join(folder, 'admin.sock')
  const master = join(folder, 'master.sock')
  const port = await freePort()
  const config = join(folder, 'haproxy.cfg')
  await writeFile(config, configuration(socket, port, servers))
  const child = spawn(engine.path, ['-W', '-S', `${master},level,admin`, '-f', config], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let log = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => (log = (log + chunk.toString()).slice(-4_000)))
  }
  const atExit = (): void => {
    child.kill('SIGTERM')
    rmSync(folder, { recursive: true, force: true })
  }
  process.once('exit', atExit)
  const close = async (): Promise<void> => {
    process.off('exit', atExit)
    await stop(child)
    await rm(folder, { recursive: true, force: true })
  }
  try {
    await answers(socket, child)
  } catch (cause) {
    await close()
    throw new Error(`HAProxy ${engine.version} does not start: ${log.trim()}`, { cause })
  }
  return {
    engine: 'haproxy',
    version: engine.version,
    socket,
    master,
    port,
    reload: async () => {
      const before = await pidOf(socket)
      await command(master, 'reload')
      const limit = Date.now() + 10_000
      while ((await pidOf(socket).catch(() => before)) === before) {
        if (Date.now() > limit) throw new Error('HAProxy does not reload')
        await pause(20)
      }
    },
    [Symbol.asyncDispose]: close,
  }
}

/** The fake: its own data plane forwards the same traffic. */
export async function startStandIn(servers: readonly WebServer[]): Promise<Balancer> {
  const version = '3.2'
  const fake = await startFake({
    version,
    master: true,
    frontends: { web: { cookie: 'SRV' } },
    pools: {
      web: servers.map(({ name, port }) => ({
        name,
        port,
        maxconn: MAXCONN,
        check: { inter: 200, rise: 2, fall: 3 },
      })),
    },
  })
  const { master } = fake
  const port = fake.ports['web']
  if (master === undefined || port === undefined) throw new Error('the fake has no master or port')
  return {
    engine: 'fake',
    version,
    socket: fake.socket,
    master,
    port,
    reload: () => fake.reload(),
    [Symbol.asyncDispose]: () => fake.close(),
  }
}

function configuration(socket: string, port: number, servers: readonly WebServer[]): string {
  const lines = servers.map(({ name, port: own }) => {
    return `  server ${name} 127.0.0.1:${own} cookie ${name} check maxconn ${MAXCONN}`
  })
  return `global
  stats socket ${socket} mode 600 level admin expose-fd listeners
defaults
  mode http
  timeout connect 2s
  timeout queue 30s
  timeout client 60s
  timeout server 60s
  timeout http-keep-alive 1s
  timeout tunnel 60s
frontend web_in
  bind 127.0.0.1:${port}
  default_backend web
backend web
  balance roundrobin
  cookie SRV insert indirect nocache
  default-server inter 200ms rise 2 fall 3
${lines.join('\n')}
`
}

async function answers(socket: string, child: ChildProcess): Promise<void> {
  const limit = Date.now() + 10_000
  for (;;) {
    const pid = await pidOf(socket).catch(() => undefined)
    if (pid !== undefined) return
    if (child.exitCode !== null) throw new Error(`it ended with status ${child.exitCode}`)
    if (Date.now() > limit) throw new Error('it does not answer')
    await pause(20)
  }
}

async function pidOf(socket: string): Promise<string> {
  const pid = /^Pid: (\d+)$/m.exec(await command(socket, 'show info'))?.[1]
  if (pid === undefined) throw new Error('HAProxy does not say its process id')
  return pid
}

async function command(path: string, line: string): Promise<string> {
  const socket = connect(path)
  socket.setTimeout(5_000, () => socket.destroy())
  let text = ''
  socket.setEncoding('utf8')
  socket.on('data', (chunk: string) => (text += chunk))
  const closed = once(socket, 'close')
  socket.write(`${line}\n`)
  await closed
  return text
}

/** Ends a process, and waits for its end. */
export async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exited = once(child, 'exit')
  child.kill('SIGTERM')
  const late = setTimeout(() => child.kill('SIGKILL'), 5_000)
  await exited
  clearTimeout(late)
}
