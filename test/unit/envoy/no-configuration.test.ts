import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startDrain } from 'drainable'
import { envoy, fileEndpoints } from 'drainable/envoy'
import { startFake } from 'drainable/testing/envoy'
import { expect, test } from 'vitest'

const MEMBER = '10.0.0.1:80'

// Only /clusters tells then which set a cluster takes.
test('without /config_dump the work of every cluster with the set counts', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'drainable-envoy-'))
  const path = join(dir, 'web.json')
  const lb_endpoints = ['10.0.0.1', '10.0.0.2', '10.0.0.3'].map((address) => ({
    endpoint: { address: { socket_address: { address, port_value: 80 } } },
  }))
  const resources = [{ cluster_name: 'web', endpoints: [{ lb_endpoints }] }]
  await writeFile(`${path}.new`, JSON.stringify({ version_info: '1', resources }))
  await rename(`${path}.new`, path)
  await using fake = await startFake({
    pools: { web: [], canary: [] },
    services: { canary: 'web' },
    eds: { file: path },
    allowPaths: ['/clusters', '/stats', '/server_info'],
  })
  await using lb = envoy({ endpoints: fileEndpoints({ cluster: 'web', path }), admin: [fake.url] })
  await expect
    .poll(async () => fake.occupy({ pool: 'canary', member: MEMBER }).catch(() => undefined))
    .toBeDefined()
  const run = startDrain(lb, { pool: 'web', member: MEMBER }, { timeout: '10s', settle: '100ms' })
  const report = await run.done
  expect(report.members[0]).toMatchObject({ outcome: 'timeout', verifiedIdle: false })
  expect(report.members[0]?.why.map(({ code }) => code)).toContain('in-flight')
  await run.release()
  await rm(dir, { recursive: true })
})
