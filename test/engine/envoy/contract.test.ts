import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer, request, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { describe, expect, test } from 'vitest'
import type { AdminState, MemberRef } from 'drainable/provider'
import { callbackEndpoints, envoy, fileEndpoints, restEndpoints } from 'drainable/envoy'
import { grpcEndpoints } from 'drainable/envoy/grpc'
import { providerContract, type ContractHarness } from 'drainable/testing'
import { contractTests } from '../../support/contract.js'
import { engines } from '../../support/engines.js'
import { startEnvoy, workDir, type RunningEnvoy } from '../../support/envoy/proxy.js'
import { startBackend, type Backend } from '../../support/envoy/backend.js'
import type { EdsSource } from '../../support/envoy/bootstrap.js'
import { ask } from '../../support/envoy/client.js'
import { setOf, writeEds } from '../../support/envoy/sets.js'
import { delay, until } from '../../support/wait.js'
import { SKIPPED } from '../../contract/skipped/envoy.js'

interface Lb {
  endpoint: { address: { socket_address: { port_value: number } } }
  health_status?: string
}

type Sets = { endpoints: { lb_endpoints: Lb[] }[] }[]

type Changed = (ref: MemberRef, to: AdminState | 'gone') => Promise<void>

/** Three servers that the cases work on, and one that keeps the cluster out of panic. */
async function open(
  path: string,
  connect: (backends: readonly Backend[]) => Promise<{
    eds: EdsSource
    provider: (admin: () => string) => ContractHarness['provider']
    setBehind: Changed
    close: () => Promise<void>
  }>,
): Promise<ContractHarness> {
  const backends = await Promise.all([
    startBackend(),
    startBackend(),
    startBackend(),
    startBackend(),
  ])
  const { eds, provider: make, setBehind, close } = await connect(backends)
  let admin = ''
  const provider = make(() => admin)
  const proxy = await startEnvoy({ path, eds })
  const counter = await countRequests(() => proxy.admin)
  admin = counter.url
  const refs = backends.slice(0, 3).map(({ member }) => ({ pool: 'web', member }))
  return {
    provider,
    pool: 'web',
    members: refs as [MemberRef, MemberRef, MemberRef],
    occupy: (ref) => occupy(proxy, backends, ref),
    setBehind,
    reload: () => proxy.restart(),
    disconnect: () => proxy.stop(),
    damage: async (how) => {
      const mend = counter.damage(how)
      return async () => mend()
    },
    sockets: counter.sockets,
    requests: counter.requests,
    timeScale: 3,
    [Symbol.asyncDispose]: async () => {
      await provider.close()
      await counter[Symbol.asyncDispose]()
      await proxy[Symbol.asyncDispose]()
      await Promise.all(backends.map((backend) => backend[Symbol.asyncDispose]()))
      await close()
    },
  }
}

type Damage = Parameters<NonNullable<ContractHarness['damage']>>[0]

/** Stands before an admin API, counts what it is asked, and damages its answers where it is told to. */
async function countRequests(admin: () => string): Promise<
  AsyncDisposable & {
    url: string
    requests: () => number
    sockets: () => number
    damage: (how: Damage) => () => void
  }
> {
  let requests = 0
  let damage: Damage | undefined
  const sockets = new Set<Socket>()
  const server = createServer((req, res) => {
    requests++
    const forward = request(`${admin()}${req.url ?? ''}`, { agent: false }, (reply) => {
      if (damage === 'silent') {
        reply.resume()
        return
      }
      res.writeHead(reply.statusCode ?? 502)
      if (damage === undefined) reply.pipe(res)
      else {
        reply.resume()
        if (damage === 'garbage') res.end('<html>{"entries":')
        else reply.once('data', (chunk: Buffer) => cut(req.socket, res, chunk))
      }
    })
    forward.on('error', () => req.socket.destroy())
    forward.end()
  })
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests: () => requests,
    sockets: () => sockets.size,
    damage: (how) => {
      damage = how
      return () => {
        damage = undefined
        for (const socket of sockets) socket.destroy()
      }
    },
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

/** The first half of an answer, and then the end of its connection. */
function cut(socket: Socket, res: ServerResponse, chunk: Buffer): void {
  res.write(chunk.subarray(0, chunk.length / 2), () => socket.destroy())
}

/** Sends requests until one hangs on the member; those that hang elsewhere are let go. */
async function occupy(
  proxy: RunningEnvoy,
  backends: readonly Backend[],
  ref: MemberRef,
): Promise<() => Promise<void>> {
  const wanted = backends.find(({ member }) => member === ref.member)
  if (wanted === undefined) throw new Error(`no server ${ref.member}`)
  const before = wanted.held
  for (;;) {
    const total = backends.reduce((sum, { held }) => sum + held, 0)
    const answered = ask(proxy.http, '/hold').catch(() => undefined)
    await until(() => backends.reduce((sum, { held }) => sum + held, 0) > total, 'a held request')
    if (wanted.held > before) {
      return async () => {
        wanted.releaseOne()
        await Promise.race([answered, delay(1_000)])
      }
    }
    for (const backend of backends) if (backend !== wanted) backend.release()
    await answered
  }
}

/** One file that the proxy watches; the sets are written there by the adapter, or by the control plane of another client. */
const byFile =
  (path: string, isCallback = false) =>
  () =>
    open(path, async (backends) => {
      const dir = await workDir()
      const file = `${dir.path}/web.json`
      let version = 1
      const write = (sets: readonly unknown[]) => writeEds(file, sets, String(++version))
      const load = async () => JSON.parse(await readFile(file, 'utf8')) as { resources: Sets }
      await write([setOf(backends.map(({ port }) => port))])
      const endpoints = isCallback
        ? callbackEndpoints({ instance: dir.path, load, publish: (set) => write([set]) })
        : fileEndpoints({ cluster: 'web', path: file })
      return {
        eds: { file },
        provider: (admin) => envoy({ endpoints, admin: () => Promise.resolve([admin()]) }),
        setBehind: async (ref, to) => {
          const { resources } = await load()
          for (const group of resources.flatMap(({ endpoints }) => endpoints)) {
            group.lb_endpoints = changed(group.lb_endpoints, ref, to)
          }
          await write(resources)
        },
        close: async () => dir[Symbol.asyncDispose](),
      }
    })

const byServer =
  (
    path: string,
    serve: typeof grpcEndpoints | typeof restEndpoints,
    eds: (port: number) => EdsSource,
  ) =>
  () =>
    open(path, async (backends) => {
      const [set] = [setOf(backends.map(({ port }) => port))] as Sets
      const sink = serve({ port: 0, initial: [set] })
      let address = (): string => ''
      const holder = envoy({ endpoints: sink, admin: () => Promise.resolve([address()]) })
      const { port } = await until(() => sink.address, 'a listening sink')
      return {
        eds: eds(port),
        provider: (admin) => {
          address = admin
          return holder
        },
        setBehind: async (ref, to) => {
          for (const group of set?.endpoints ?? [])
            group.lb_endpoints = changed(group.lb_endpoints, ref, to)
          await sink.set([set])
        },
        close: () => Promise.resolve(),
      }
    })

function changed(list: readonly Lb[], ref: MemberRef, to: AdminState | 'gone'): Lb[] {
  return list.flatMap((lb) => {
    if (!ref.member.endsWith(`:${lb.endpoint.address.socket_address.port_value}`)) return [lb]
    if (to === 'gone') return []
    return [{ ...lb, health_status: to === 'ready' ? 'HEALTHY' : 'DRAINING' }]
  })
}

describe.concurrent.each(engines('envoy'))(
  'the contract by a file on Envoy $version',
  ({ path }) => {
    contractTests(SKIPPED.file, byFile(path))
  },
)

describe.concurrent.each(engines('envoy'))(
  'the contract by a callback on Envoy $version',
  ({ path }) => {
    contractTests(SKIPPED.file, byFile(path, true))
  },
)

describe.concurrent.each(engines('envoy'))('the contract by REST on Envoy $version', ({ path }) => {
  contractTests(
    SKIPPED.served,
    byServer(path, restEndpoints, (port) => ({ rest: port })),
  )
})

describe.concurrent.each(engines('envoy'))(
  'the contract by delta ADS on Envoy $version',
  ({ path }) => {
    const eds = (port: number) => ({ grpc: port, ads: true, delta: true })
    contractTests(SKIPPED.served, byServer(path, grpcEndpoints, eds))
  },
)

test('the contract has cases', () => {
  expect(providerContract(byFile('')).length).toBeGreaterThan(30)
})
