import { readFileSync, writeFileSync } from 'node:fs'
import { systemClock, type Clock } from '../../provider/clock.js'
import type { MemberRef } from '../../provider/contract.js'
import { checkOptions } from '../check-options.js'
import { HttpFront } from '../http/front.js'
import type { HttpFakeRequest } from '../http/request.js'
import { toServedTls } from '../http/tls.js'
import { failure, toAnswer } from './answer.js'
import { ConfigStore } from './config-store.js'
import { generationOf } from './generation.js'
import { HaproxyConfig } from './haproxy-config.js'
import { Gate } from './gate.js'
import { MemoryHaproxy } from './memory-haproxy.js'
import {
  KNOWN_OPTIONS,
  type DataplaneFake,
  type FakeFailure,
  type FakeOptions,
  type FakeServer,
} from './options.js'
import { ReloadAgent } from './reload-agent.js'
import { SocketHaproxy, type FrontOptions } from './socket-haproxy.js'

/** Starts it; see the package's documentation. */
// eslint-disable-next-line complexity -- a default for each option
export async function openFake(options: FakeOptions): Promise<DataplaneFake> {
  checkOptions(options, KNOWN_OPTIONS)
  const generation = generationOf(options.version ?? '3.2')
  const real = options.front
  const text =
    real === undefined
      ? (options.config ?? printConfig(options.pools ?? { web: ['web1', 'web2'] }))
      : readFileSync(real.config, 'utf8')
  const socket = generation.tree === 'v2' ? '/run/lb/admin.sock' : '/run/lb/master.sock'
  const memory =
    real === undefined
      ? new MemoryHaproxy(text, socket, generation.tree === 'v2' ? '2.6.12' : '3.2.26')
      : undefined
  if (options.uptime !== undefined) memory?.age(options.uptime)
  const cli = memory ?? new SocketHaproxy(real as FrontOptions)
  const save = (next: string): void => {
    if (real !== undefined) writeFileSync(real.config, next)
  }
  const store = new ConfigStore(
    new HaproxyConfig(text),
    options.configVersion ?? 1,
    options.maxTransactions ?? 20,
    save,
  )
  const reloads = new ReloadAgent(
    cli,
    generation,
    options.reloadDelay ?? 200,
    options.startup ?? 60,
    store,
  )
  const credentials = {
    username: options.username ?? 'admin',
    password: options.password ?? 'secret',
  }
  const gate = new Gate({ generation, cli, store, reloads }, credentials)
  const tls = toServedTls(options.tls ?? false)
  const front = new HttpFront<FakeFailure, HttpFakeRequest>({
    remember: (base) => base,
    error: ({ status = 500, body, message = `made to fail with ${status}` }) =>
      body === undefined
        ? toAnswer(failure(status, message), store.version)
        : toAnswer({ status, body }, store.version),
    garbage: {
      status: 200,
      headers: { 'Content-Type': 'text/html' },
      text: '<html><body>a proxy in front says hello</body></html>',
    },
  })
  const server = front.add('api', {
    host: options.host ?? '127.0.0.1',
    port: options.port ?? 0,
    tls,
    latency: options.latency ?? 0,
    ...(options.clock === undefined ? {} : { clock: options.clock }),
    answer: async (request) => {
      const servers = store.text.match(/^\s*server\s/gm)?.length ?? 0
      const cost = request.path.includes('/stats/') ? (options.statsCost ?? 0) * servers : 0
      if (cost > 0) await passed(options.clock ?? systemClock, cost)
      return gate.answer(request)
    },
  })
  await front.open()

  const inMemory = (): MemoryHaproxy => {
    if (memory !== undefined) return memory
    throw new Error('not in front of a real HAProxy: use real connections and its own sockets')
  }
  const serverOf = (ref: MemberRef) => {
    const server = inMemory().server(ref.pool, ref.member)
    if (server === undefined) throw new Error(`no server ${ref.pool}/${ref.member}`)
    return server
  }
  const work = (ref: MemberRef, key: 'scur' | 'qcur'): (() => Promise<void>) => {
    const server = serverOf(ref)
    const { epoch } = server
    server[key] += 1
    if (key === 'scur') server.stot += 1
    else server.qmax = Math.max(server.qmax, server.qcur)
    let open = true
    return () => {
      if (open && server.epoch === epoch) server[key] -= 1
      open = false
      return Promise.resolve()
    }
  }
  const close = async (): Promise<void> => {
    reloads.close()
    memory?.thaw()
    await front.close()
  }
  return {
    url: server.url,
    username: credentials.username,
    get password() {
      return credentials.password
    },
    ca: tls?.ca ?? '',
    fingerprint256: tls?.fingerprint256 ?? '',
    requests: front.requests,
    get sockets() {
      return front.sockets
    },
    get config() {
      return store.text
    },
    occupy: (ref) => Promise.resolve(work(ref, 'scur')),
    queue: (ref) => Promise.resolve(work(ref, 'qcur')),
    setBehind: async ({ pool, member }, to) => {
      const at = `${pool}/${member}`
      const reply = await cli.run(`set server ${at} state ${to === 'gone' ? 'maint' : to}`)
      if (reply.severity !== undefined) throw new Error(`no server ${at}: ${reply.text.trim()}`)
      if (to !== 'gone') return
      if (memory === undefined) await cli.run(`del server ${at}`)
      else memory.drop(pool, member)
    },
    run: async (line) => (await cli.run(line)).text,
    setMask: (ref, mask) => {
      const server = serverOf(ref)
      server.mask = typeof mask === 'number' ? mask : mask(server.mask)
      inMemory().inherit(`${ref.pool}/${ref.member}`, server)
    },
    retry: (ref) => {
      serverOf(ref).wretr += 1
    },
    fail: (what) => front.fail(what),
    reload: async () => {
      await cli.reload(store.text)
    },
    advanceReload: () => reloads.advance(),
    refuseReload: (complaint) => inMemory().refuseReload(complaint),
    setDown: (down) => {
      inMemory().down = down
    },
    freeze: () => {
      const frozen = inMemory()
      frozen.freeze()
      return () => frozen.thaw()
    },
    age: (seconds) => inMemory().age(seconds),
    setPassword: (password) => {
      credentials.password = password
    },
    restart: async (downFor = 0) => {
      const listenAgain = front.fail({ how: 'refuse' })
      store.restart()
      if (downFor > 0) await new Promise((resolve) => setTimeout(resolve, downFor))
      await listenAgain()
    },
    close,
    [Symbol.asyncDispose]: close,
  }
}

function passed(clock: Pick<Clock, 'setTimeout'>, ms: number): Promise<void> {
  return new Promise((resolve) => void clock.setTimeout(resolve, ms))
}

function printConfig(pools: Readonly<Record<string, readonly (string | FakeServer)[]>>): string {
  let port = 8_000
  const backends = Object.entries(pools).map(([pool, servers]) => {
    const lines = servers.map((server) => {
      const given = typeof server === 'string' ? { name: server } : server
      return printServer(given, ++port)
    })
    return [`backend ${pool}`, '  mode http', ...lines].join('\n')
  })
  return ['global', '', 'defaults', '  mode http', '', ...backends, ''].join('\n')
}

function printServer(server: FakeServer, port: number): string {
  const words = [`  server ${server.name} ${server.address ?? '127.0.0.1'}:${server.port ?? port}`]
  if (server.check === true) words.push('check inter 1s')
  if (server.weight !== undefined) words.push(`weight ${server.weight}`)
  if (server.maxconn !== undefined) words.push(`maxconn ${server.maxconn}`)
  if (server.backup === true) words.push('backup')
  if (server.cutsWhenDown === true) words.push('on-marked-down shutdown-sessions')
  if (server.track !== undefined) words.push(`track ${server.track}`)
  return words.join(' ')
}
