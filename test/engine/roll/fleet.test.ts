/**
 * Ten servers that need 3 s to listen, behind two HAProxy and one Envoy, under load: each is restarted by a roll, whose
 * process is killed on the way and goes on in another one.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { describe, it } from 'vitest'
import { startEnvoy, workDir } from '../../support/envoy/proxy.js'
import { writeEds } from '../../support/envoy/sets.js'
import { engines } from '../../support/engines.js'
import { FleetClient, FleetServer } from '../../support/fleet.js'
import type { RollerOptions } from '../../support/fleet-roller.js'
import { startLineChild } from '../../support/line-child.js'
import { freePort, Haproxy, until } from '../../support/haproxy.js'
import { Tunnel } from '../../support/haproxy-traffic.js'

const SIZE = 10

interface Line {
  readonly type: string
  readonly address?: string
  readonly attempt?: number
  readonly outcome?: string
  readonly failed?: readonly string[]
  readonly leftDrained?: readonly unknown[]
}

/** The process that deploys, and what it said so far. */
function startRoller(options: RollerOptions) {
  const child = startLineChild<Line>('fleet-roller.ts', options)
  const { said } = child
  return {
    said,
    count: (type: string) => said.filter((line) => line.type === type).length,
    closed: child.closed,
    kill: () => child[Symbol.asyncDispose](),
    [Symbol.asyncDispose]: () => child[Symbol.asyncDispose](),
  }
}

/** Restarts a server on request: its process outlives the one that deploys. */
async function startControl(servers: readonly FleetServer[]) {
  const under = new Map<string, Promise<void>>()
  const server = createServer((request, response) => {
    const address = (request.url ?? '').slice(1)
    const one = servers.find((candidate) => candidate.address === address)
    // A second call for one that is restarting waits for it, as an idempotent deploy does.
    const restart = under.get(address) ?? one?.restart() ?? Promise.reject(new Error(address))
    under.set(address, restart)
    restart.then(
      () => {
        under.delete(address)
        response.end('up')
      },
      () => response.writeHead(404).end(),
    )
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      server.close()
      await Promise.allSettled(under.values())
    },
  }
}

const [haproxyA, haproxyB] = engines('haproxy', '2.6', '3.2')
const [proxy] = engines('envoy', '1.40')

describe.skipIf(haproxyA === undefined || haproxyB === undefined || proxy === undefined)(
  'a fleet behind two HAProxy and one Envoy',
  () => {
    it('is rolled by two processes without a failed request', async ({ expect }) => {
      if (haproxyA === undefined || haproxyB === undefined || proxy === undefined) return
      await using stack = new AsyncDisposableStack()
      const dir = stack.use(await workDir())
      const port = await freePort()
      const addresses = Array.from({ length: SIZE }, (_, n) => `127.0.0.${21 + n}`)
      const servers: FleetServer[] = []
      for (const address of addresses)
        servers.push(stack.use(await FleetServer.start(address, port)))
      const config = (given: (name: string) => number): string => `
frontend f_web
  bind 127.0.0.1:${given('web')}
  default_backend web
backend web
  default-server check inter 100ms rise 1 fall 3
${addresses.map((address, n) => `  server s${n + 1} ${address}:${port}`).join('\n')}`
      const edgeA = stack.use(await Haproxy.start({ engine: haproxyA, config }))
      const edgeB = stack.use(await Haproxy.start({ engine: haproxyB, config }))
      const file = join(dir.path, 'web.json')
      await writeEds(file, [
        {
          cluster_name: 'web',
          endpoints: [
            {
              lb_endpoints: addresses.map((address) => ({
                endpoint: { address: { socket_address: { address, port_value: port } } },
              })),
            },
          ],
        },
      ])
      const check = {
        timeout: '1s',
        interval: '0.1s',
        healthy_threshold: 1,
        unhealthy_threshold: 3,
        http_health_check: { path: '/' },
      }
      const mesh = stack.use(
        await startEnvoy({ path: proxy.path, eds: { file }, cluster: { health_checks: [check] } }),
      )
      const control = stack.use(await startControl(servers))
      const options: RollerOptions = {
        edgeA: { socket: edgeA.socket, master: edgeA.master },
        edgeB: { socket: edgeB.socket, master: edgeB.master },
        mesh: { admin: mesh.admin, file },
        control: control.url,
        folder: join(dir.path, 'tickets'),
      }
      const fronts = [edgeA.port('web'), edgeB.port('web'), mesh.http]
      const clients = fronts.flatMap((front) =>
        (['/', '/stream'] as const).map((path) => stack.use(new FleetClient(front, path))),
      )
      await until(() => clients.every(({ requests }) => requests > 3), 'load', 30_000)
      const tunnel = stack.use(await Tunnel.websocket(edgeB.port('web')))
      await tunnel.echo('hello')

      const first = stack.use(startRoller(options))
      await until(() => first.count('healthy') >= 1 && first.count('act') >= 3, 'acts', 60_000)
      await first.kill()
      const second = stack.use(startRoller(options))
      await until(() => second.count('act') >= 2, 'acts of the second process', 60_000)
      await edgeA.reload()
      await until(() => second.count('postponed') > 0, 'the one with the WebSocket', 90_000)
      await tunnel.echo('still there')
      await tunnel[Symbol.asyncDispose]()
      await second.closed

      const report = second.said.at(-1)
      expect(report).toMatchObject({ type: 'report', outcome: 'done', failed: [], leftDrained: [] })
      expect(clients.flatMap(({ failures }) => failures)).toEqual([])
      expect(servers.map(({ cut }) => cut)).toEqual(addresses.map(() => 0))
      for (const { restarts } of servers) expect(restarts).toBeGreaterThanOrEqual(1)
      // What was under way when the first process was killed is acted on once more.
      expect(second.said.some(({ type, attempt }) => type === 'act' && attempt === 2)).toBe(true)
      for (const edge of [edgeA, edgeB])
        for (const n of addresses.keys())
          expect(await edge.stat('web', `s${n + 1}`, 'status')).toBe('UP')
    })
  },
)
