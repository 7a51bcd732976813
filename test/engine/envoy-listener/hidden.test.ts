import { rename, writeFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { startDrain } from 'drainable'
import { engines } from '../../support/engines.js'
import { freePort } from '../../support/haproxy.js'
import { quietTcp, startGateway, TARGET } from '../../support/envoy-gateway.js'
import { workDir } from '../../support/envoy/proxy.js'
import { until } from '../../support/wait.js'
import { systemClock } from '../../../src/provider/clock.js'

const TCP = 'type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy'

describe.each(engines('envoy'))('Envoy $version with one listener hidden', ({ path }) => {
  test('it is unread, even while that listener drains after its removal', async () => {
    await using dir = await workDir()
    const file = `${dir.path}/lds.json`
    const port = await freePort()
    const write = async (version_info: string, resources: readonly object[]) => {
      await writeFile(`${file}.tmp`, JSON.stringify({ version_info, resources }))
      await rename(`${file}.tmp`, file)
    }
    const filter = { '@type': TCP, stat_prefix: 'raw', cluster: 'web' }
    await write('1', [
      {
        '@type': 'type.googleapis.com/envoy.config.listener.v3.Listener',
        name: 'raw',
        address: { socket_address: { address: '127.0.0.1', port_value: port } },
        filter_chains: [{ filters: [{ name: 'tcp', typed_config: filter }] }],
      },
    ])
    const hidden = { patterns: [{ prefix: `listener.127.0.0.1_${port}.` }] }
    const bootstrap = {
      stats_config: { stats_matcher: { exclusion_list: hidden } },
      dynamic_resources: {
        lds_config: { resource_api_version: 'V3', path_config_source: { path: file } },
      },
    }
    await using gateway = await startGateway(path, { envoy: { bootstrap } })
    const { provider, proxy } = gateway
    const client = await quietTcp(port)
    await using run = startDrain(provider, TARGET, { timeout: '60s', keepReady: 0 })
    const isNamed = () => run.why().some(({ text }) => text.includes(`127.0.0.1_${port}.`))
    await until(isNamed, 'the hidden listener')
    await write('2', [])
    const draining = () => proxy.get('/stats?filter=total_listeners_draining')
    await until(async () => (await draining()).endsWith(': 1\n'), 'its drain')
    const ctx = { signal: AbortSignal.timeout(10_000), clock: systemClock }
    const { readings } = await provider.observe('all', ctx)
    expect(readings[0]?.scopes).toMatchObject([{ state: 'unread' }])
    expect(client.destroyed).toBe(false)
    client.destroy()
  })
})
