import { describe, expect, test } from 'vitest'
import { startDrain } from 'drainable'
import { engines } from '../../support/engines.js'
import { ask, openWebSocket } from '../../support/envoy/client.js'
import { until } from '../../support/wait.js'
import { startGateway, TARGET } from '../../support/envoy-gateway.js'

const POLICY = { timeout: '60s', keepReady: 0 } as const
const HOT = { parentShutdown: 60, bootstrap: { stats_flush_interval: '0.3s' } }

describe.concurrent.each(engines('envoy'))(
  'Envoy $version out of sight in mid-drain',
  ({ path }) => {
    test('a proxy whose admin API is silent is not idle until it answers', async () => {
      await using gateway = await startGateway(path)
      const { proxy, provider, stage } = gateway
      const held = ask(proxy.http, '/hold')
      const all = () => stage.backends.reduce((sum, backend) => sum + backend.held, 0)
      await until(() => all() === 1, 'a request in flight')
      const run = startDrain(provider, TARGET, POLICY)
      await until(() => run.report().members[0]?.phase === 'draining', 'a drain')
      proxy.pause()
      await until(() => run.why().some(({ code }) => code === 'unreadable'), 'an unread Envoy')
      expect(run.report().members[0]?.phase).not.toBe('idle')
      proxy.resume()
      for (const backend of stage.backends) backend.release()
      await held
      expect((await run.done).members[0]).toMatchObject({ outcome: 'idle', verifiedIdle: true })
      await run.close()
    })

    test('a dead proxy is unread, and its drain ends at the deadline', async () => {
      // The drain lasts for an hour, so that the process dies before the drain is over on any machine.
      await using gateway = await startGateway(path, { provider: { noticed: { after: '1h' } } })
      const { proxy, provider } = gateway
      const run = startDrain(provider, TARGET, { ...POLICY, timeout: '4s' })
      await until(async () => (await proxy.get('/ready')) === 'DRAINING\n', 'a drain')
      await proxy.stop()
      const report = await run.done
      expect(report.members[0]?.verifiedIdle).toBe(false)
      expect(['timeout', 'unreachable']).toContain(report.members[0]?.outcome)
      await run.close()
    })

    test('a hot restart waits for the old process and fails the new one again', async () => {
      await using gateway = await startGateway(path, { envoy: HOT })
      const { proxy, provider } = gateway
      const socket = await openWebSocket(proxy.http)
      const run = startDrain(provider, TARGET, POLICY)
      await until(() => run.report().members[0]?.phase === 'draining', 'a drain')
      await proxy.hotRestart()
      await until(async () => (await proxy.get('/ready')) === 'DRAINING\n', 'a failed child')
      const old = (scope: string | undefined) => scope?.endsWith('before its hot restart') === true
      await until(() => run.why().some(({ scope }) => old(scope)), 'the old process')
      expect(run.report().members[0]?.phase).toBe('draining')
      socket.destroy()
      const report = await run.done
      expect(report.members[0]).toMatchObject({ outcome: 'idle', verifiedIdle: true, lost: [] })
      await run.close()
    })

    test('an old process without statistics is never taken for empty', async () => {
      const envoy = { ...HOT, skipParentStats: true }
      await using gateway = await startGateway(path, { envoy })
      const { proxy, provider } = gateway
      const socket = await openWebSocket(proxy.http)
      await proxy.hotRestart()
      const run = startDrain(provider, TARGET, { ...POLICY, timeout: '12s' })
      const report = await run.done
      expect(socket.destroyed).toBe(false)
      expect(report.outcome).toBe('timeout')
      expect(run.why().map(({ text }) => text)).toContainEqual(
        expect.stringContaining('/stats does not tell server.parent_connections'),
      )
      socket.destroy()
      await run.close()
    })

    test('a WebSocket cut by the end of the old process is lost, not idle', async () => {
      await using gateway = await startGateway(path, { envoy: { ...HOT, parentShutdown: 6 } })
      const { proxy, provider } = gateway
      const socket = await openWebSocket(proxy.http)
      const cut = new Promise((resolve) => socket.once('close', () => resolve('cut')))
      await proxy.hotRestart()
      const run = startDrain(provider, TARGET, POLICY)
      expect(await Promise.race([run.done, cut])).toBe('cut')
      const [member] = (await run.done).members
      expect(member?.verifiedIdle).toBe(false)
      expect(member?.lost.length).toBeGreaterThan(0)
      await run.close()
    })
  },
)
