import { setTimeout as pass } from 'node:timers/promises'
import { ready, startDrain } from 'drainable'
import type { DrainableProvider } from 'drainable/provider'
import type { DataplaneFake } from 'drainable/testing/haproxy-dataplane'
import { describe, expect, test } from 'vitest'
import { change, connect, present, until } from '../../support/dataplane.js'
import { CONFIG, front, pairs } from '../../support/dataplane-front.js'
import { addBackend } from '../../support/dataplane-writer.js'
import { request } from '../../support/haproxy-traffic.js'

const WEB1 = { pool: 'web', member: 'web1' }
const DURABLE = { durable: true, maintCuts: false } as const
const WEIGHED: typeof CONFIG = (port) =>
  CONFIG(port, '').replaceAll(/server web\d \S+/g, '$& weight 7')

/** Another client lowers hard-stop-after in the file, to 1 s; its reload is to come. */
async function lower(fake: DataplaneFake, api: string): Promise<void> {
  const tree = api === '2.9' ? 'v2' : 'v3'
  const at = `${fake.url}/${tree}/services/haproxy/configuration/raw?version=1`
  const authorization = `Basic ${Buffer.from('admin:secret').toString('base64')}`
  const headers = { authorization, 'content-type': 'text/plain' }
  const body = fake.config.replace('hard-stop-after 60s', 'hard-stop-after 1s')
  expect((await fetch(at, { method: 'POST', headers, body })).status).toBe(202)
}

describe.concurrent.each(pairs('2.6', '3.0', '3.2', '3.4'))(
  'reloads by others, Data Plane API $api before HAProxy $engine.version',
  { timeout: 90_000 },
  ({ engine, api }) => {
    // in 2.x a reload is a signal: one that fails is not noticed by the API, and nothing is rolled back
    test.runIf(api !== '2.9')('a reload that fails after ready() brings marks back', async () => {
      await using rig = await front(engine, api, DURABLE, WEIGHED, '', Infinity)
      await change(rig.lb, { kind: 'hold', ref: WEB1, to: 'maint' })
      await addBackend(rig.fake, 'accepted')
      await rig.fake.advanceReload()
      expect((await present(rig.lb, WEB1)).own).toBe('maint')
      rig.refuseReload('cannot bind socket')
      await addBackend(rig.fake, 'refused')
      const { members } = await ready(rig.lb, WEB1, { timeout: '30s' })
      expect(rig.fake.config).toMatch(/server web1 .*weight 7/)
      // It is said beforehand, and HAProxy goes on sending work to it until the next reload.
      expect(JSON.stringify(members)).toContain('one that fails brings them back')
      await rig.fake.advanceReload()
      expect(rig.fake.config).toMatch(/server web1 .*weight 0/)
      const { server } = await request(rig.haproxy.port('web'), '/', { cookie: 'web1' })
      expect(server).toBe('web1')
    })

    test("a failed reload after ready() is told; confirm: 'reload' ends it", async () => {
      await using rig = await front(engine, api, DURABLE, WEIGHED, '', Infinity)
      const undone = async (lb: DrainableProvider): Promise<readonly string[]> => {
        await change(lb, { kind: 'hold', ref: WEB1, to: 'maint' })
        await addBackend(rig.fake, `in-${rig.fake.requests.length}`)
        await rig.fake.advanceReload()
        await rig.fake.advanceReload()
        await until('the seal lasts', async () => (await present(lb, WEB1)).own === 'maint')
        const asked = rig.fake.requests.length
        const opened = ready(lb, WEB1, { timeout: '30s' })
        const follows = (): boolean =>
          rig.fake.requests.slice(asked).some(({ line }) => /\/reloads\/\d/.test(line))
        await Promise.race([opened, until('its reload', () => Promise.resolve(follows()))])
        await rig.fake.advanceReload()
        await rig.fake.advanceReload()
        return (await opened).members[0]!.hints ?? []
      }
      expect((await undone(rig.lb)).join()).toContain('one that fails brings them back')
      await using sure = connect(rig.fake, { ...DURABLE, confirm: 'reload' })
      expect(await undone(sure)).toEqual([])
      rig.refuseReload('cannot bind socket')
      await addBackend(rig.fake, 'refused')
      await rig.fake.advanceReload()
      expect(rig.fake.config).toMatch(/server web1 .*weight 7/)
      await rig.haproxy.reload()
      expect(await present(sure, WEB1)).toMatchObject({ own: 'ready', serves: true, weight: 7 })
    })

    test('hard-stop-after that was lowered ends no older process', async () => {
      const global = '  hard-stop-after 60s'
      await using rig = await front(engine, api, undefined, CONFIG, global, Infinity)
      await lower(rig.fake, api)
      const { answer } = await rig.hold(WEB1)
      const run = startDrain(rig.lb, WEB1, { timeout: '60s' })
      await until('the drain', async () => (await present(rig.lb, WEB1)).own === 'drain')
      const old = await rig.haproxy.pid()
      await rig.fake.advanceReload()
      await rig.fake.advanceReload()
      const started = async (): Promise<boolean> => {
        const info = await rig.haproxy.cli('show info')
        return !info.includes(`Pid: ${old}\n`) && Number(/Uptime_sec: (\d+)/.exec(info)?.[1]) >= 4
      }
      await until('the value has passed', started)
      const { scopes } = await present(rig.lb, WEB1)
      expect(scopes.find(({ old: is }) => is === true)).toMatchObject({ state: 'unread' })
      expect(run.report().outcome).not.toBe('idle')
      expect(rig.backends['web1']!.active).toBe(1)
      expect(
        run
          .why()
          .map(({ text }) => text)
          .join(),
      ).not.toContain('finished unseen')
      await run.restore()
      rig.backends['web1']!.release()
      expect(await answer).toMatchObject({ status: 200, cut: false })
    })

    test('a process that was only met before its reload is unread', async () => {
      await using rig = await front(engine, api)
      const { answer } = await rig.hold(WEB1)
      await present(rig.lb, { pool: 'web', member: 'web2' })
      await rig.haproxy.reload()
      await present(rig.lb, { pool: 'web', member: 'web2' })
      await using run = startDrain(rig.lb, WEB1, { timeout: '60s' })
      let atIdle: number | undefined
      run.on('idle', () => (atIdle = rig.backends['web1']!.active))
      const isNamed = (): boolean => run.why().some(({ code }) => code === 'unreadable')
      await until('idle, or the process of before is named', () =>
        Promise.resolve(atIdle !== undefined || isNamed()),
      )
      await pass(2_000) // longer than the quiet time
      expect(atIdle).toBeUndefined()
      rig.backends['web1']!.release()
      expect(await answer).toMatchObject({ status: 200, cut: false })
    })

    test('a reload in mid-drain is proved by within, not before', async () => {
      const stop = { oldWorkers: { within: '5s' } } as const
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
