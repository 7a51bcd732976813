import { describe, expect, test } from 'vitest'
import { startDrain } from 'drainable'
import { envoy, fileEndpoints } from 'drainable/envoy'
import { engines } from '../../support/engines.js'
import { startBackend } from '../../support/envoy/backend.js'
import { ask } from '../../support/envoy/client.js'
import { makePki } from '../../support/envoy/pki.js'
import { startEnvoy, workDir } from '../../support/envoy/proxy.js'
import { overQuic, quicListener, serverCluster } from '../../support/envoy/quic.js'
import { setOf, writeEds } from '../../support/envoy/sets.js'
import { look, workOf } from '../../support/envoy/stage.js'
import { until } from '../../support/wait.js'

describe.each(engines('envoy'))(
  'requests over HTTP/3 to endpoints of Envoy $version',
  ({ path }) => {
    test('keep a member busy, and none comes once it is drained', async () => {
      await using dir = await workDir()
      const { server } = makePki(dir.path)
      await using a = await startBackend()
      await using b = await startBackend()
      const file = `${dir.path}/web.json`
      // Another Envoy takes it for the two servers.
      await writeEds(`${dir.path}/none.json`, [setOf([b.port])])
      await using front = await startEnvoy({
        path,
        eds: { file: `${dir.path}/none.json` },
        listeners: [quicListener('a', server), quicListener('b', server)],
        clusters: [serverCluster('a', a), serverCluster('b', b)],
      })
      const listed = await front.get('/listeners')
      const portOf = (name: string): number =>
        Number(new RegExp(`^${name}::127\\.0\\.0\\.1:(\\d+)`, 'm').exec(listed)?.[1])
      await writeEds(file, [setOf([portOf('a'), portOf('b')])])
      await using proxy = await startEnvoy({ path, eds: { file }, cluster: overQuic(server) })
      await using lb = envoy({
        endpoints: fileEndpoints({ cluster: 'web', path: file }),
        admin: [proxy.admin],
      })
      const asked: Promise<unknown>[] = []
      await until(() => {
        asked.push(ask(proxy.http, '/hold'))
        return a.held > 0
      }, 'a request that is held')
      const stats = await proxy.get('/stats?filter=^cluster\\.web\\.upstream_cx_http3_total$')
      expect(stats).toMatch(/: [1-9]/)
      const ref = { pool: 'web', member: `127.0.0.1:${portOf('a')}` }
      await using run = startDrain(lb, ref, { timeout: '30s' })
      let isOver = false
      void run.done.then(() => (isOver = true))
      await run.inForce
      const { scopes } = await look(lb, ref)
      expect(scopes.map(({ active }) => active)).toEqual([a.held])
      const came = a.requests.length
      for (let i = 0; i < 30; i += 1) await ask(proxy.http)
      expect(a.requests.length).toBe(came)
      expect(isOver).toBe(false)
      await until(async () => {
        a.release()
        b.release()
        return (await workOf(lb, ref))[0] === 0
      }, 'the requests ended')
      const { outcome, members } = await run.done
      expect(outcome).toBe('idle')
      expect(members[0]?.verifiedIdle).toBe(true)
      await Promise.all(asked)
    }, 60_000)
  },
)
