import { ready, startDrain } from 'drainable'
import { describe, expect, test } from 'vitest'
import { change, present, until } from '../../support/dataplane.js'
import { CONFIG, front, pairs } from '../../support/dataplane-front.js'
import { addBackend } from '../../support/dataplane-writer.js'
import { request } from '../../support/haproxy-traffic.js'

const WEB1 = { pool: 'web', member: 'web1' }
const DURABLE = { durable: true, maintCuts: false } as const
const WEIGHED: typeof CONFIG = (port) =>
  CONFIG(port, '').replaceAll(/server web\d \S+/g, '$& weight 7')

describe.concurrent.each(pairs('2.6', '3.0', '3.2'))(
  'reloads by others, Data Plane API $api before HAProxy $engine.version',
  { timeout: 90_000 },
  ({ engine, api }) => {
    // in 2.x a reload is a signal: one that fails is not noticed by the API, and nothing is rolled back
    test.runIf(api !== '2.9')('a reload that fails after ready() brings no mark back', async () => {
      await using rig = await front(engine, api, DURABLE, WEIGHED, '', Infinity)
      await change(rig.lb, { kind: 'hold', ref: WEB1, to: 'maint' })
      await addBackend(rig.fake, 'accepted')
      await rig.fake.advanceReload()
      expect((await present(rig.lb, WEB1)).own).toBe('maint')
      rig.refuseReload('cannot bind socket')
      await addBackend(rig.fake, 'refused')
      const opened = ready(rig.lb, WEB1, { timeout: '30s' })
      const waits = (): boolean => {
        const { config, requests } = rig.fake
        return /server web1 .*weight 7/.test(config) && requests.at(-1)!.line.includes('/reloads')
      }
      await Promise.race([opened, until('the wait', () => Promise.resolve(waits()))])
      await rig.fake.advanceReload()
      await opened
      expect(rig.fake.config).toMatch(/server web1 .*weight 7/)
      await rig.haproxy.reload()
      expect(await present(rig.lb, WEB1)).toMatchObject({ own: 'ready', serves: true, weight: 7 })
      const { server } = await request(rig.haproxy.port('web'), '/', { cookie: 'web1' })
      expect(server).toBe('web1')
    })

    test('a reload in mid-drain is proved by hard-stop-after, not before', async () => {
      const stop = { oldWorkers: 'hard-stop-after' } as const
      await using rig = await front(engine, api, stop, CONFIG, '  hard-stop-after 5s')
      const { answer } = await rig.hold(WEB1)
      const run = startDrain(rig.lb, WEB1, { timeout: '60s' })
      await until('the drain', async () => (await present(rig.lb, WEB1)).own === 'drain')
      const old = await rig.haproxy.pid()
      await rig.haproxy.reload()
      let atIdle: number | undefined
      run.on('idle', () => (atIdle = rig.backends['web1']!.active))
      await until('the old worker is waited for', async () => {
        const { scopes } = await present(rig.lb, WEB1)
        return scopes.some(({ scope, old: is }) => scope === `worker ${old}` && is === true)
      })
      expect(run.report().outcome).not.toBe('idle')
      rig.backends['web1']!.release()
      expect(await answer).toMatchObject({ status: 200, cut: false })
      expect((await run.done).outcome).toBe('idle')
      expect(atIdle).toBe(0)
      expect(await rig.haproxy.oldWorkers()).toEqual([])
    })
  },
)
