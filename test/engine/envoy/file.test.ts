import { readFile, writeFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { stringify } from 'yaml'
import { drain, ready, select } from 'drainable'
import { envoy, fileEndpoints } from 'drainable/envoy'
import { engines } from '../../support/engines.js'
import { startEnvoy, workDir } from '../../support/envoy/proxy.js'
import { startBackend } from '../../support/envoy/backend.js'
import { ask } from '../../support/envoy/client.js'
import { setOf, writeEds } from '../../support/envoy/sets.js'
import { fileStage } from '../../support/envoy/stage.js'
import { delay, until } from '../../support/wait.js'

describe.each(engines('envoy'))('file sink on Envoy $version', ({ path }) => {
  test('drains an endpoint with a request in flight, and makes it ready again', async () => {
    await using dir = await workDir()
    await using a = await startBackend()
    await using b = await startBackend()
    const file = `${dir.path}/web.json`
    await writeEds(file, [setOf([a.port, b.port])])
    await using proxy = await startEnvoy({ path, eds: { file } })
    await using lb = envoy({
      endpoints: fileEndpoints({ cluster: 'web', path: file }),
      admin: [proxy.admin],
    })
    const held: Promise<unknown>[] = []
    while (a.held === 0) {
      held.push(ask(proxy.http, '/hold'))
      await delay(50)
    }
    const begun = performance.now()
    setTimeout(() => a.release(), 1_500)
    const report = await drain(lb, { pool: 'web', member: a.member }, { timeout: '20s' })
    const took = performance.now() - begun
    expect(report.outcome).toBe('idle')
    expect(took).toBeGreaterThan(1_400)
    expect(a.held).toBe(0)
    expect(report.members[0]?.verifiedIdle).toBe(true)
    const before = a.requests.length
    for (let i = 0; i < 50; i++) expect((await ask(proxy.http)).port).toBe(b.port)
    expect(a.requests.length).toBe(before)
    b.release()
    await Promise.all(held)
    await ready(lb, { pool: 'web', member: a.member })
    await until(
      async () => (await ask(proxy.http)).port === a.port,
      'request to the server made ready',
    )
  })

  test('with version_text hidden by stats_matcher, the rows are enough', async () => {
    const patterns = [{ suffix: 'version_text' }]
    const stats = { stats_config: { stats_matcher: { exclusion_list: { patterns } } } }
    await using stage = await fileStage(path, { envoy: { bootstrap: stats } })
    const { a, b, proxy, lb, refOf } = stage
    expect(await proxy.get('/stats?filter=version_text')).not.toContain('cluster.web')
    const report = await drain(lb, refOf(a), { timeout: '20s' })
    expect(report.members[0]).toMatchObject({ outcome: 'idle', verifiedIdle: true })
    const before = a.requests.length
    for (let i = 0; i < 20; i++) expect((await ask(proxy.http)).port).toBe(b.port)
    expect(a.requests.length).toBe(before)
  })

  test('one provider drains a JSON and a YAML file, one cluster each', async () => {
    await using dir = await workDir()
    await using a = await startBackend()
    await using b = await startBackend()
    const [web, api] = [`${dir.path}/web.json`, `${dir.path}/api.yaml`]
    await writeEds(web, [setOf([a.port, b.port])])
    await writeFile(api, `# by hand\n${stringify({ resources: [setOf([a.port, b.port], 'api')] })}`)
    const eds = (file: string) => ({
      eds_config: { resource_api_version: 'V3', path_config_source: { path: file } },
    })
    const other = { name: 'api', type: 'EDS', eds_cluster_config: eds(api) }
    await using proxy = await startEnvoy({ path, eds: { file: web }, clusters: [other] })
    const files = [
      { cluster: 'web', path: web },
      { cluster: 'api', path: api },
    ]
    await using lb = envoy({ endpoints: fileEndpoints(files), admin: [proxy.admin] })
    const report = await drain(lb, { address: '127.0.0.1', port: a.port }, { timeout: '30s' })
    expect(report.members.map(({ verifiedIdle }) => verifiedIdle)).toEqual([true, true])
    const rows = (await proxy.get('/clusters')).split('\n')
    const drained = rows.filter((row) => row.endsWith('/eds_status_draining'))
    expect(drained.map((row) => row.split('::').slice(0, 2)).sort()).toEqual([
      ['api', a.member],
      ['web', a.member],
    ])
    expect(await readFile(api, 'utf8')).toContain('# by hand')
    await ready(lb, { pool: 'api', member: a.member })
    await until(
      async () =>
        !(await proxy.get('/clusters')).includes('api::' + a.member + '::health_flags::/'),
      'a healthy row',
    )
  })

  test('several sets in one file are refused by Envoy and by the adapter', async () => {
    await using dir = await workDir()
    await using a = await startBackend()
    const file = `${dir.path}/web.json`
    await writeEds(file, [setOf([a.port]), setOf([a.port], 'api')])
    await using proxy = await startEnvoy({ path, eds: { file } })
    expect(await proxy.get('/stats?filter=^cluster.web.update_rejected$')).toContain(': 1')
    await using lb = envoy({
      endpoints: fileEndpoints({ cluster: 'web', path: file }),
      admin: [proxy.admin],
    })
    await expect(select(lb, 'all')).rejects.toThrow(/Envoy refuses a file with more than one/)
  })
})
