import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { describe, expect, test } from 'vitest'
import { drain } from 'drainable'
import { envoy, fileEndpoints } from 'drainable/envoy'
import { engines } from '../../support/engines.js'
import { startEnvoy, workDir } from '../../support/envoy/proxy.js'
import { setOf, writeEds } from '../../support/envoy/sets.js'
import { until } from '../../support/wait.js'

/** Answers each command as a Redis in a transaction does. */
async function startRedis(): Promise<AsyncDisposable & { readonly port: number }> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined)
    socket.on('data', (data) =>
      socket.write(/multi/i.test(data.toString()) ? '+OK\r\n' : '+QUEUED\r\n'),
    )
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

const FILTER = 'type.googleapis.com/envoy.extensions.filters.network.redis_proxy.v3.RedisProxy'

function redisListener(): Readonly<Record<string, unknown>> {
  const typed_config = {
    '@type': FILTER,
    stat_prefix: 'redis',
    settings: { op_timeout: '5s' },
    prefix_routes: { catch_all_route: { cluster: 'web' } },
  }
  return {
    name: 'redis',
    address: { socket_address: { address: '127.0.0.1', port_value: 0 } },
    filter_chains: [{ filters: [{ name: 'redis', typed_config }] }],
  }
}

describe.each(engines('envoy'))('a Redis transaction through Envoy $version', ({ path }) => {
  test('is in no count between its commands, so idle is unverified', async () => {
    await using one = await startRedis()
    await using other = await startRedis()
    await using dir = await workDir()
    const file = `${dir.path}/web.json`
    await writeEds(file, [setOf([one.port, other.port])])
    await using proxy = await startEnvoy({
      path,
      eds: { file },
      cluster: { lb_policy: 'MAGLEV' },
      listeners: [redisListener()],
    })
    const listed = await proxy.get('/listeners')
    const port = Number(/redis::127\.0\.0\.1:(\d+)/.exec(listed)?.[1])
    const client = connect(port, '127.0.0.1')
    for (const command of ['*1\r\n$5\r\nMULTI\r\n', '*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n']) {
      client.write(command)
      await once(client, 'data')
    }
    const rows = async (): Promise<string> => await proxy.get('/clusters')
    const busy = await until(async () => {
      const text = await rows()
      return [one, other].find((server) => text.includes(`:${server.port}::cx_active::1`))
    }, 'a connection')
    expect(await rows()).toContain(`:${busy.port}::rq_active::0`)
    await using lb = envoy({
      endpoints: fileEndpoints({ cluster: 'web', path: file }),
      admin: [proxy.admin],
    })
    const ref = { pool: 'web', member: `127.0.0.1:${busy.port}` }
    const report = await drain(lb, ref, { timeout: '20s' })
    expect(report.members[0]).toMatchObject({ outcome: 'idle', verifiedIdle: false })
    expect(report.members[0]?.why.map(({ text }) => text).join()).toContain('MULTI')
    client.destroy()
  })
})
