/** Real Envoys for engine tests. All on loopback. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { bootstrap, type EnvoyOptions } from './bootstrap.js'
import { until } from '../wait.js'

export interface RunningEnvoy extends AsyncDisposable {
  readonly admin: string
  readonly http: number
  readonly tcp: number
  readonly pid: number
  pause(): void
  resume(): void
  stop(): Promise<void>
  /** Stops it and starts it again on the same ports. */
  restart(): Promise<void>
  /** Starts the next process beside it, which takes over; needs `parentShutdown`. */
  hotRestart(): Promise<void>
  get(path: string): Promise<string>
}

/** A temporary folder. */
export async function workDir(): Promise<AsyncDisposable & { readonly path: string }> {
  const path = await mkdtemp(join(tmpdir(), 'drainable-envoy-'))
  return {
    path,
    [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }),
  }
}

export async function startEnvoy(options: EnvoyOptions): Promise<RunningEnvoy> {
  const dir = await workDir()
  const ports = { admin: 0, http: 0, tcp: 0 }
  const base = 1_000 + Math.floor(Math.random() * 1_000_000)
  let epoch = 0
  let child = await launch(options, dir.path, ports, { base, epoch })
  let parents: ChildProcess[] = []
  const admin = options.adminSocket ?? `http://127.0.0.1:${ports.admin}`
  const stop = async (): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return
    for (const one of [...parents, child]) {
      if (one.exitCode !== null || one.signalCode !== null) continue
      one.kill('SIGCONT')
      one.kill('SIGKILL')
      await once(one, 'exit')
    }
    parents = []
  }
  return {
    admin,
    get http() {
      return ports.http
    },
    get tcp() {
      return ports.tcp
    },
    get pid() {
      return child.pid ?? 0
    },
    pause: () => void child.kill('SIGSTOP'),
    resume: () => void child.kill('SIGCONT'),
    stop,
    restart: async () => {
      await stop()
      epoch = 0
      child = await launch(options, dir.path, ports, { base, epoch })
    },
    hotRestart: async () => {
      parents.push(child)
      child = await launch(options, dir.path, ports, { base, epoch: ++epoch })
    },
    get: (path) => adminGet(admin, path),
    [Symbol.asyncDispose]: async () => {
      await stop()
      await dir[Symbol.asyncDispose]()
    },
  }
}

async function launch(
  options: EnvoyOptions,
  dir: string,
  ports: { admin: number; http: number; tcp: number },
  { base, epoch }: { readonly base: number; readonly epoch: number },
): Promise<ChildProcess> {
  const config = join(dir, 'envoy.json')
  const address = join(dir, 'admin-address')
  await rm(address, { force: true })
  await writeFile(config, JSON.stringify(bootstrap(options, ports)))
  const log = join(dir, 'envoy.log')
  const child = spawn(
    options.path,
    [
      '-c',
      config,
      ...(options.parentShutdown === undefined
        ? ['--disable-hot-restart']
        : [
            ['--base-id', base],
            ['--restart-epoch', epoch],
            ['--parent-shutdown-time-s', options.parentShutdown],
            ['--drain-time-s', 1],
          ]
            .flat()
            .map(String)),
      ...(options.skipParentStats === true ? ['--skip-hot-restart-parent-stats'] : []),
      ...(options.drainTime === undefined ? [] : ['--drain-time-s', String(options.drainTime)]),
      '--concurrency',
      String(options.workers ?? 2),
      '-l',
      'warning',
      '--log-path',
      log,
    ].concat(options.adminSocket === undefined ? ['--admin-address-path', address] : []),
    { stdio: 'ignore' },
  )
  try {
    if (options.adminSocket === undefined) {
      const text = await until(async () => {
        if (child.exitCode !== null) throw new Error(await readFile(log, 'utf8'))
        return await readFile(address, 'utf8').catch(() => '')
      }, 'an admin address')
      ports.admin = Number(text.split(':').at(-1))
    }
    const admin = options.adminSocket ?? `http://127.0.0.1:${ports.admin}`
    const listeners = await until(async () => {
      if (child.exitCode !== null) throw new Error(await readFile(log, 'utf8'))
      const info = await adminGet(admin, '/server_info').catch(() => '{}')
      const { state, command_line_options: used } = JSON.parse(info) as {
        state?: string
        command_line_options?: { restart_epoch: number }
      }
      const isOurs = state === 'LIVE' && used?.restart_epoch === epoch
      return isOurs ? await adminGet(admin, '/listeners?format=json') : ''
    }, 'a live Envoy')
    const { listener_statuses: statuses } = JSON.parse(listeners) as {
      listener_statuses: {
        name: string
        local_address: { socket_address: { port_value: number } }
      }[]
    }
    for (const { name, local_address: local } of statuses) {
      if (name === 'http' || name === 'tcp') ports[name] = local.socket_address.port_value
    }
    return child
  } catch (error) {
    child.kill('SIGKILL')
    throw error
  }
}

function adminGet(admin: string, path: string): Promise<string> {
  const unix = admin.startsWith('unix:')
  return new Promise((resolve, reject) => {
    const url = unix ? undefined : new URL(admin)
    const where = unix ? { socketPath: admin.slice(5) } : { host: url?.hostname, port: url?.port }
    const req = request({ ...where, path, agent: false, timeout: 2_000 }, (res) => {
      let body = ''
      res.setEncoding('utf8')
      res.on('data', (chunk: string) => (body += chunk))
      res.on('end', () => resolve(body))
      res.on('error', reject)
    })
    req.on('timeout', () => req.destroy(new Error('no answer')))
    req.on('error', reject)
    req.end()
  })
}
