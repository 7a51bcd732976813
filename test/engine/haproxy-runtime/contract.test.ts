/** The contract on the real thing. */
import { once } from 'node:events'
import { createConnection, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { haproxyRuntime } from 'drainable/haproxy-runtime'
import type { ContractHarness } from 'drainable/testing'
import { describe } from 'vitest'
import { contractTests } from '../../support/contract.js'
import { type Engine, engines } from '../../support/engines.js'
import { Haproxy, type Mode, until } from '../../support/haproxy.js'
import { Backend, request } from '../../support/haproxy-traffic.js'
import { SKIPPED } from '../../contract/skipped/haproxy-runtime.js'

/** What becomes of the answers that pass. */
type Answers = 'whole' | 'lost' | 'cut' | 'garbage' | 'silent'

/** Stands before the stats socket, counts the lines, and damages answers where it is told to. */
class Between implements AsyncDisposable {
  lines = 0
  readonly path: string
  readonly #sockets = new Set<Socket>()
  readonly #server = createServer((client) => {
    const behind = createConnection({ path: this.#to })
    this.#clients.add(client)
    for (const socket of [client, behind]) {
      this.#sockets.add(socket)
      socket.on('error', () => undefined)
      socket.on('close', () => {
        this.#sockets.delete(socket)
        this.#clients.delete(client)
        client.destroy()
        behind.destroy()
      })
    }
    let isChange = false
    client.on('data', (chunk: Buffer) => {
      const text = chunk.toString()
      this.lines += text.split('\n').length - 1
      isChange ||= text.includes('set server')
    })
    behind.on('data', (chunk: Buffer) => this.#pass(client, chunk, isChange))
    behind.on('end', () => {
      if (this.#answers !== 'silent') client.end()
    })
    client.pipe(behind)
  })
  readonly #clients = new Set<Socket>()
  readonly #to: string
  #answers: Answers = 'whole'

  constructor(path: string, to: string) {
    this.path = path
    this.#to = to
  }

  async open(): Promise<void> {
    this.#server.listen(this.path)
    await once(this.#server, 'listening')
  }

  /** Connections of the provider that are open at present. */
  get sockets(): number {
    return this.#clients.size
  }

  /** The next answer to a change is lost after HAProxy carried it out. */
  loseAnswer(): void {
    this.#answers = 'lost'
  }

  /** Damages every answer from now on; the returned function ends that. */
  damage(answers: 'cut' | 'garbage' | 'silent'): () => void {
    this.#answers = answers
    return () => {
      this.#answers = 'whole'
      // A call that waits for a suppressed answer would wait for ever.
      for (const client of this.#clients) client.destroy()
    }
  }

  #pass(client: Socket, chunk: Buffer, isChange: boolean): void {
    switch (this.#answers) {
      case 'silent':
        return
      case 'cut':
        client.end(chunk.subarray(0, chunk.length / 2))
        return
      case 'garbage':
        client.end('<html>{"entries":')
        return
      case 'lost':
        if (!isChange) break
        this.#answers = 'whole'
        client.destroy()
        return
      case 'whole':
        break
    }
    client.write(chunk)
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
  const between = new Between(join(haproxy.dir, 'between.sock'), haproxy.socket)
  await between.open()
  const provider = haproxyRuntime({
    socket: between.path,
    ...(mode === 'master' ? { master: haproxy.master } : {}),
    replyTimeout: '5s',
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
    disconnect: () => between[Symbol.asyncDispose](),
    loseAnswer: async () => between.loseAnswer(),
    damage: async (how) => {
      const mend = between.damage(how)
      return async () => mend()
    },
    sockets: () => between.sockets,
    requests: () => between.lines,
    timeScale: 3,
    async [Symbol.asyncDispose]() {
      await provider.close()
      await between[Symbol.asyncDispose]()
      await haproxy[Symbol.asyncDispose]()
      for (const backend of backends.values()) await backend[Symbol.asyncDispose]()
    },
  }
}

describe.each(engines('haproxy'))('Runtime API of HAProxy $version', (engine) => {
  // Without a master the difference is the kept connection alone: one version shows it.
  const modes: readonly Mode[] = engine.series === '3.0' ? ['master', 'plain'] : ['master']
  describe.concurrent.each(modes)('%s', (mode) => {
    contractTests(SKIPPED.engine, () => open(engine, mode))
  })
})
