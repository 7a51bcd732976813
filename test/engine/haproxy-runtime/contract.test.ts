/** The contract on the real thing. */
import { once } from 'node:events'
import { createConnection, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { haproxyRuntime } from 'drainable/haproxy-runtime'
import { type ContractHarness, providerContract } from 'drainable/testing'
import { describe, test } from 'vitest'
import { type Engine, engines } from '../../support/engines.js'
import { Haproxy, type Mode, until } from '../../support/haproxy.js'
import { Backend, request } from '../../support/haproxy-traffic.js'

/** Stands before the stats socket and counts the lines. */
class Counter implements AsyncDisposable {
  lines = 0
  readonly path: string
  readonly #sockets = new Set<Socket>()
  readonly #server = createServer((client) => {
    const behind = createConnection({ path: this.#to })
    for (const socket of [client, behind]) {
      this.#sockets.add(socket)
      socket.on('error', () => undefined)
      socket.on('close', () => {
        this.#sockets.delete(socket)
        client.destroy()
        behind.destroy()
      })
    }
    client.on('data', (chunk: Buffer) => {
      this.lines += chunk.toString().split('\n').length - 1
    })
    client.pipe(behind)
    behind.pipe(client)
  })
  readonly #to: string

  constructor(path: string, to: string) {
    this.path = path
    this.#to = to
  }

  async open(): Promise<void> {
    this.#server.listen(this.path)
    await once(this.#server, 'listening')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#server.listening) return
    const closed = once(this.#server, 'close')
    this.#server.close()
    for (const socket of this.#sockets) socket.destroy()
    await closed
  }
}

const SERVERS = ['s1', 's2', 's3'] as const

async function open(engine: Engine, mode: Mode): Promise<ContractHarness> {
  const haproxy = await Haproxy.start({
    engine,
    mode,
    global: '  stats timeout 60s',
    config: (port) => `
frontend f_web
  bind 127.0.0.1:${port('web')}
  default_backend web
backend web
  balance roundrobin
  cookie SRV insert
  force-persist if { always_true }
${SERVERS.map((name) => `  server ${name} 127.0.0.1:${port(name)} cookie ${name}`).join('\n')}`,
  })
  const backends = new Map<string, Backend>()
  for (const name of SERVERS) {
    backends.set(name, await Backend.start(haproxy.port(name), name))
  }
  const counter = new Counter(join(haproxy.dir, 'counted.sock'), haproxy.socket)
  await counter.open()
  const provider = haproxyRuntime({
    socket: counter.path,
    ...(mode === 'master' ? { master: haproxy.master } : {}),
    replyTimeout: '1s',
  })
  const ref = (member: string): { pool: string; member: string } => ({ pool: 'web', member })
  return {
    provider,
    pool: 'web',
    members: [ref('s1'), ref('s2'), ref('s3')],
    async occupy({ member }) {
      const backend = backends.get(member)!
      const before = backend.held
      const answer = request(haproxy.port('web'), '/hold', { cookie: member })
      await until(() => backend.held > before, 'in flight')
      return async () => {
        backend.release(1)
        await answer
      }
    },
    async setBehind({ pool, member }, to) {
      if (to !== 'gone') {
        await haproxy.cli(`set server ${pool}/${member} state ${to}`)
        return
      }
      await haproxy.cli(`set server ${pool}/${member} state drain`)
      await haproxy.cli(`set server ${pool}/${member} state maint`)
      await until(
        async () =>
          /^(Server deleted|No such server)/.test(
            await haproxy.cli(`del server ${pool}/${member}`),
          ),
        'the server is gone',
        20_000,
      )
    },
    reload: () => haproxy.reload(),
    disconnect: () => counter[Symbol.asyncDispose](),
    requests: () => counter.lines,
    timeScale: 3,
    async [Symbol.asyncDispose]() {
      await provider.close()
      await counter[Symbol.asyncDispose]()
      await haproxy[Symbol.asyncDispose]()
      for (const backend of backends.values()) await backend[Symbol.asyncDispose]()
    },
  }
}

describe.each(engines('haproxy'))('Runtime API of HAProxy $version', (engine) => {
  // Without a master the difference is the kept connection alone: one version shows it.
  const modes: readonly Mode[] = engine.series === '3.0' ? ['master', 'plain'] : ['master']
  describe.each(modes)('%s', (mode) => {
    for (const { name, timeout, run } of providerContract(() => open(engine, mode))) {
      test.concurrent(name, run, timeout)
    }
  })
})
