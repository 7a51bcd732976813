import { expect, test } from 'vitest'
import { startDrain } from 'drainable'
import { envoy, restEndpoints } from 'drainable/envoy'
import { startFake } from 'drainable/testing/envoy'

test('a drain begun without any known proxy ends idle once one is known', async () => {
  const names = ['10.0.0.1', '10.0.0.2', '10.0.0.3', '10.0.0.4']
  const lbEndpoints = names.map((address) => ({
    endpoint: { address: { socket_address: { address, port_value: 80 } } },
  }))
  const initial = [{ cluster_name: 'web', endpoints: [{ lb_endpoints: lbEndpoints }] }]
  const sink = restEndpoints({ host: '127.0.0.1', port: 0, initial })
  const known: string[] = []
  await using lb = envoy({ endpoints: sink, admin: () => Promise.resolve(known) })
  const signal = AbortSignal.timeout(60_000)
  const clock = { now: () => performance.now(), setTimeout: () => () => undefined }
  await lb.observe('all', { signal, clock })
  const run = startDrain(lb, { pool: 'web', member: '10.0.0.1:80' }, { timeout: '60s' })
  const blockers = (): unknown => run.why().map(({ scope }) => scope)
  await expect.poll(blockers, { timeout: 10_000 }).toContain('a proxy')
  const rest = `http://127.0.0.1:${sink.address?.port}`
  await using fake = await startFake({ pools: { web: [] }, eds: { rest }, mergeWindow: 0 })
  known.push(fake.url)
  const report = await run.done
  expect(report.members[0]).toMatchObject({ outcome: 'idle', lost: [] })
  await run.close()
}, 90_000)
