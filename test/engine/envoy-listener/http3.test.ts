import { describe, expect, test } from 'vitest'
import { drain } from 'drainable'
import { engines } from '../../support/engines.js'
import { startGateway, TARGET } from '../../support/envoy-gateway.js'
import { startBackend } from '../../support/envoy/backend.js'
import { ask } from '../../support/envoy/client.js'
import { makePki } from '../../support/envoy/pki.js'
import { startEnvoy, workDir } from '../../support/envoy/proxy.js'
import { overQuic, quicListener, serverCluster } from '../../support/envoy/quic.js'
import { setOf, writeEds } from '../../support/envoy/sets.js'

describe.each(engines('envoy'))('clients of HTTP/3 of Envoy $version', ({ path }) => {
  // Of one that does not read, Envoy keeps the end of a response in a buffer that no statistic shows, and quit() cuts it.
  test('keep idle from being verified while they are connected', async () => {
    await using dir = await workDir()
    const { server } = makePki(dir.path)
    await using backend = await startBackend()
    const envoy = {
      listeners: [quicListener('quic', server)],
      clusters: [serverCluster('quic', backend)],
    }
    await using gateway = await startGateway(path, { envoy })
    const listed = await gateway.proxy.get('/listeners')
    const port = Number(/^quic::127\.0\.0\.1:(\d+)/m.exec(listed)?.[1])
    const file = `${dir.path}/web.json`
    await writeEds(file, [setOf([port])])
    await using client = await startEnvoy({ path, eds: { file }, cluster: overQuic(server) })
    expect((await ask(client.http)).status).toBe(200)
    const policy = { timeout: '60s', keepReady: 0 } as const
    const { outcome, members } = await drain(gateway.provider, TARGET, policy)
    expect([outcome, members[0]?.verifiedIdle]).toEqual(['idle', false])
    expect(members[0]?.why[0]?.text).toContain('1 connections of HTTP/3 are open')
  })
})
