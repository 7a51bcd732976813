import { describe, expect, test } from 'vitest'
import { drain, ready } from 'drainable'
import { envoy, fileEndpoints } from 'drainable/envoy'
import { engines } from '../../support/engines.js'
import { startEnvoy, workDir } from '../../support/envoy/proxy.js'
import { startBackend } from '../../support/envoy/backend.js'
import { ask } from '../../support/envoy/client.js'
import { setOf, writeEds } from '../../support/envoy/sets.js'
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
})
