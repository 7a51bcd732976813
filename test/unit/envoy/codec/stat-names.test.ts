import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import { Proxy } from '../../../../src/adapters/envoy/session/proxy.js'
import { quoted } from '../../../../src/adapters/envoy/session/stats.js'
import { parseAdminAddress } from '../../../../src/kit/envoy/admin.js'
import { startFake } from 'drainable/testing/envoy'
import { systemClock } from '../../../../src/provider/clock.js'

const clock = systemClock

/** A fake whose cluster's statistics go by another name, as `alt_stat_name` and colons make it. */
async function renaming(fake: string, cluster: string, stat: string, config: object) {
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? '/', fake)
    const filter = url.searchParams.get('filter') ?? ''
    url.searchParams.delete('filter')
    void fetch(url).then(async (reply) => {
      const text = await reply.text()
      if (url.pathname === '/stats') {
        const lines = text.replaceAll(`cluster.${cluster}.`, `cluster.${stat}.`).split('\n')
        const wanted = new RegExp(filter)
        response.end(
          lines
            .filter((line) => wanted.test(line.split(': ')[0] ?? ''))
            .map((line) => `${line}\n`)
            .join(''),
        )
      } else {
        const more = `"type":"EDS",${JSON.stringify(config).slice(1, -1)}`
        response.end(
          Object.keys(config).length === 0 ? text : text.replaceAll('"type":"EDS"', more),
        )
      }
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

test.each([
  ['web', 'other', { alt_stat_name: 'other' }],
  ['ns:web', 'ns_web', {}],
  ['http://web', 'http_web', {}],
])('statistics of cluster %s are found as cluster.%s', async (cluster, stat, config) => {
  await using fake = await startFake({ pools: { [cluster]: ['10.0.0.1:80'] } })
  await using server = await renaming(fake.url, cluster, stat, config)
  const proxy = new Proxy(parseAdminAddress(server.url), () => performance.now())
  const { stats } = await proxy.read([cluster], AbortSignal.timeout(5_000), clock, {
    sought: [],
    members: undefined,
    namesakes: () => [],
  })
  expect(stats.of(cluster, 'membership_total')).toBe(1)
  expect(stats.versionOf(cluster)).toBeDefined()
})

test('a name with letters beyond ASCII is a valid escape for RE2', () => {
  expect(quoted('café-😀.v1')).toBe('café\\-😀\\.v1')
})
