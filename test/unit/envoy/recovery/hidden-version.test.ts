import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { drain } from 'drainable'
import { envoy, fileEndpoints } from 'drainable/envoy'
import { startFake } from 'drainable/testing/envoy'

test('with version_text hidden, the row is the receipt of a file', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'drainable-envoy-'))
  const path = join(dir, 'web.json')
  const endpoints = ['10.0.0.1', '10.0.0.2', '10.0.0.3'].map((address) => ({
    endpoint: { address: { socket_address: { address, port_value: 80 } } },
  }))
  const resources = [{ cluster_name: 'web', endpoints: [{ lb_endpoints: endpoints }] }]
  await writeFile(`${path}.new`, JSON.stringify({ version_info: '1', resources }))
  await rename(`${path}.new`, path)
  await using fake = await startFake({
    pools: { web: [] },
    eds: { file: path },
    hiddenStats: [/version_text/],
  })
  await using lb = envoy({ endpoints: fileEndpoints({ cluster: 'web', path }), admin: [fake.url] })
  const report = await drain(lb, { pool: 'web', member: '10.0.0.1:80' }, { timeout: '50s' })
  expect(report.members[0]).toMatchObject({ outcome: 'idle', verifiedIdle: true })
  await rm(dir, { recursive: true })
})
