/** The programs on the pages about Envoy are run, as they stand there. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { startFake as startEnvoy } from 'drainable/testing/envoy'
import { startFake as startListener } from 'drainable/testing/envoy-listener'
import { describe, expect, it } from 'vitest'
import { freePort } from '../support/haproxy.js'
import { endpointSet, PagePrograms } from '../support/page-programs.js'

const programs = new PagePrograms((path) => /adapters\/envoy/.test(path))

describe('the programs on the pages', () => {
  it.concurrent('docs/adapters/envoy.md 1', async () => {
    const file = await programs.assignment('web-1', ['10.0.0.1:8080', '10.0.0.2:8080'])
    await using fake = await startEnvoy({ eds: { file } })
    await programs.run('docs/adapters/envoy.md 1', {
      '/etc/envoy/eds/web.json': file,
      'http://127.0.0.1:9901': fake.url,
    })
    expect(await readFile(file, 'utf8')).not.toContain('DRAINING')
  })

  it.concurrent('docs/adapters/envoy.md 2', async () => {
    const web = await programs.assignment('web-2', ['10.0.0.1:8080', '10.0.0.2:8080'])
    const api = await programs.assignment('api', ['10.0.0.1:9090', '10.0.0.2:9090'], 'api')
    await using fake = await startEnvoy({
      pools: { web: [], api: [] },
      eds: { files: { web, api } },
    })
    await programs.run('docs/adapters/envoy.md 2', {
      '/etc/envoy/eds/web.json': web,
      '/etc/envoy/eds/api.yaml': api,
      'http://127.0.0.1:9901': fake.url,
    })
    expect(await readFile(web, 'utf8')).toContain('DRAINING')
    expect(await readFile(api, 'utf8')).toContain('DRAINING')
  })

  it.concurrent('docs/adapters/envoy.md 3', async () => {
    const port = await freePort()
    const grpc = `http://127.0.0.1:${port}`
    await using fake = await startEnvoy({ pools: { web: [] }, eds: { grpc, ads: true } })
    const proxies = (): Promise<string[]> => Promise.resolve([fake.url])
    const sets = [endpointSet('web', ['10.0.0.1:8080', '10.0.0.2:8080'])]
    await programs.run(
      'docs/adapters/envoy.md 3',
      {
        'port: 18000': `port: ${port}`,
        "host: '0.0.0.0'": "host: '127.0.0.1'",
        "    tls: { cert: '/etc/xds/tls.crt', key: '/etc/xds/tls.key', clientCa: '/etc/xds/ca.crt' },\n":
          '',
        'expect: 30': 'expect: 1',
      },
      { proxies, sets },
    )
    const chosen = [1, 2, 3, 4].map(() => fake.send('web')?.member)
    expect(new Set(chosen)).toEqual(new Set(['10.0.0.2:8080']))
  })

  it.concurrent('docs/adapters/envoy.md 4', async () => {
    const port = await freePort()
    const tickets = join(programs.folder, 'drains')
    const proxies = (): Promise<string[]> => Promise.resolve([])
    const sets = [endpointSet('web', ['10.0.0.1:8080', '10.0.0.2:8080'])]
    await programs.run(
      'docs/adapters/envoy.md 4',
      { 'port: 18000': `port: ${port}`, '/var/lib/drains': tickets },
      { proxies, sets },
    )
  })

  it.concurrent('docs/adapters/envoy.md 5', async () => {
    const member = { pool: 'web', member: '10.0.0.1:8080' }
    await using fake = await startEnvoy({ pools: { web: [member.member, '10.0.0.2:8080'] } })
    await fake.setBehind(member, 'drain') // the control plane drains
    const proxies = (): Promise<string[]> => Promise.resolve([fake.url])
    await programs.run('docs/adapters/envoy.md 5', {}, { proxies })
    expect(programs.said.join('\n')).toMatch(/stop it now: .*10\.0\.0\.1:8080/)
  })

  it.concurrent('docs/adapters/envoy-listener.md 1', async () => {
    await using fake = await startListener({ checkInterval: 100 })
    await programs.run('docs/adapters/envoy-listener.md 1', { 'http://127.0.0.1:9901': fake.url })
    expect(fake.told.quit).toBe(true)
  })
})
