/**
 * The HAProxy Data Plane API as a stand-in on a real socket, in the shapes and with the quirks of
 * its three generations (2.x; 3.0 to 3.3; 3.4). Over a HAProxy in memory, or in front of a real one.
 *
 * @example
 * ```ts
 * import { drain } from 'drainable'
 * import { haproxyDataplane } from 'drainable/haproxy-dataplane'
 * import { startFake } from 'drainable/testing/haproxy-dataplane'
 *
 * await using fake = await startFake({ pools: { web: ['web1', 'web2'] }, version: '3.2' })
 * await using lb = haproxyDataplane({ url: fake.url, username: 'admin', password: 'secret' })
 * const end = await fake.occupy({ pool: 'web', member: 'web1' })
 * setTimeout(() => void end(), 100)
 * const report = await drain(lb, { pool: 'web', member: 'web1' }, { timeout: '10s' })
 * console.log(report.outcome) // idle
 * ```
 *
 * @packageDocumentation
 */
import { readFileSync, writeFileSync } from 'node:fs'
import type { MemberRef } from '../../provider/contract.js'
import { selfSignedCertificate } from '../tls-certificate.js'
import { ConfigStore } from './config-store.js'
import { generationOf } from './generation.js'
import { HaproxyConfig } from './haproxy-config.js'
import { Listener } from './listener.js'
import { MemoryHaproxy } from './memory-haproxy.js'
import type { DataplaneFake, FakeOptions, FakeServer } from './options.js'
import { ReloadAgent } from './reload-agent.js'
import { SocketHaproxy, type FrontOptions } from './socket-haproxy.js'

export type { DataplaneFake, FakeFailure, FakeOptions, FakeRequest, FakeServer } from './options.js'
export type { FrontOptions } from './socket-haproxy.js'

/** Starts the fake. */
export async function startFake(options: FakeOptions = {}): Promise<DataplaneFake> {
  const generation = generationOf(options.version ?? '3.2')
  const { front } = options
  const text =
    front === undefined
      ? (options.config ?? printConfig(options.pools ?? { web: ['web1', 'web2'] }))
      : readFileSync(front.config, 'utf8')
  const socket = generation.tree === 'v2' ? '/run/lb/admin.sock' : '/run/lb/master.sock'
  const memory =
    front === undefined
      ? new MemoryHaproxy(text, socket, generation.tree === 'v2' ? '2.6.12' : '3.2.26')
      : undefined
  if (options.uptime !== undefined) memory?.age(options.uptime)
  const cli = memory ?? new SocketHaproxy(front as FrontOptions)
  const save = (next: string): void => {
    if (front !== undefined) writeFileSync(front.config, next)
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
  const made = options.tls === true ? selfSignedCertificate() : undefined
  const tls = made ?? (typeof options.tls === 'object' ? options.tls : undefined)
  const settings = {
    host: options.host ?? '127.0.0.1',
    port: options.port ?? 0,
    tls,
    username: options.username ?? 'admin',
    password: options.password ?? 'secret',
  }
  const listener = new Listener({ generation, cli, store, reloads }, settings)
  await listener.listen()

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
    await listener.close()
  }
  return {
    url: `${tls === undefined ? 'http' : 'https'}://${settings.host}:${listener.port}`,
    ca: made?.ca,
    fingerprint256: made?.fingerprint256,
    requests: listener.requests,
    get config() {
      return store.config.text
    },
    occupy: (ref) => Promise.resolve(work(ref, 'scur')),
    queue: (ref) => Promise.resolve(work(ref, 'qcur')),
    setBehind: async ({ pool, member }, to) => {
      const at = `${pool}/${member}`
      await cli.run(`set server ${at} state ${to === 'gone' ? 'maint' : to}`)
      if (to !== 'gone') return
      if (memory === undefined) await cli.run(`del server ${at}`)
      else memory.drop(pool, member)
    },
    run: async (line) => (await cli.run(line)).text,
    setMask: (ref, mask) => {
      serverOf(ref).mask = mask
    },
    retry: (ref) => {
      serverOf(ref).wretr += 1
    },
    fail: (what) => listener.fail(what),
    heal: () => listener.heal(),
    reload: async () => {
      await cli.reload(store.config.text)
    },
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
      settings.password = password
    },
    restart: async (downFor = 0) => {
      await listener.close()
      store.restart()
      if (downFor > 0) await new Promise((resolve) => setTimeout(resolve, downFor))
      await listener.listen()
    },
    close,
    [Symbol.asyncDispose]: close,
  }
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
  if (server.backup === true) words.push('backup')
  if (server.cutsWhenDown === true) words.push('on-marked-down shutdown-sessions')
  if (server.track !== undefined) words.push(`track ${server.track}`)
  return words.join(' ')
}
