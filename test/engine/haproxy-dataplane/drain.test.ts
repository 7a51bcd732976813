import { Agent } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { drain, isDrainableError, ready, startDrain } from 'drainable'
import { describe, expect, test } from 'vitest'
import { change, context, look, present, until } from '../../support/dataplane.js'
import { CONFIG, front, pairs } from '../../support/dataplane-front.js'
import { Backend, request, Tunnel } from '../../support/haproxy-traffic.js'

const WEB1 = { pool: 'web', member: 'web1' }
/** For tests that are not about old workers: over once the process has run for a second and a bit. */
const NO_OLD = { oldWorkers: { within: '1ms' } } as const

/** `within` is over: HAProxy tells whole seconds, and a process is told to stop up to a second after its successor answers. */
async function noneBefore({ haproxy }: Awaited<ReturnType<typeof front>>): Promise<void> {
  await until('the process has run for two seconds', async () => {
    const info = await haproxy.cli('show info')
    return Number(/^Uptime_sec: (\d+)/m.exec(info)?.[1]) >= 2
  })
}
/** What makes that true. */
const STOP = '  hard-stop-after 1ms'

describe.concurrent.each(pairs())(
  'Data Plane API $api before HAProxy $engine.version',
  { timeout: 60_000 },
  ({ engine, api }) => {
    test('a request in flight is waited for, and idle is proved and sealed', async () => {
      await using rig = await front(engine, api, NO_OLD, CONFIG, STOP)
      await noneBefore(rig)
      const { answer } = await rig.hold(WEB1)
      const run = startDrain(rig.lb, WEB1, { timeout: '30s' })
      await until('the drain', async () => {
        const reading = await look(rig.lb, WEB1)
        return reading.present && reading.own === 'drain'
      })
      expect((await request(rig.haproxy.port('web'), '/')).server).not.toBe('web1')
      const busy = rig.backends['web1']!.active
      rig.backends['web1']!.release()
      const end = await answer
      const report = await run.done
      expect(busy).toBe(1)
      expect(end).toMatchObject({ status: 200, body: 'done', cut: false })
      expect(report.outcome).toBe('idle')
      expect(report.members[0]).toMatchObject({ verifiedIdle: true, sealed: true })
      expect((await present(rig.lb, WEB1)).own).toBe('maint')
      expect(rig.backends['web1']!.active).toBe(0)
      await ready(rig.lb, WEB1, { waitHealthy: false })
      expect((await present(rig.lb, WEB1)).own).toBe('ready')
      expect((await request(rig.haproxy.port('web'), '/', { cookie: 'web1' })).server).toBe('web1')
    })

    test('without a bound on old workers idle is said but not verified', async () => {
      await using rig = await front(engine, api)
      const report = await drain(rig.lb, WEB1, { timeout: '20s' })
      expect(report.outcome).toBe('idle')
      expect(report.members[0]!.verifiedIdle).toBe(false)
      expect(JSON.stringify(report.members[0]!.why)).toContain('oldWorkers')
    })

    test('an upgraded connection is counted until it ends', async () => {
      await using rig = await front(engine, api, NO_OLD)
      await using tunnel = await Tunnel.websocket(rig.haproxy.port('web'), 'web1')
      // Long enough for slow looks: a timeout that can't hold the proof is refused.
      const error: unknown = await drain(rig.lb, WEB1, { timeout: '8s' }).catch((e: unknown) => e)
      expect(error).toMatchObject({ code: 'DRAIN_TIMEOUT' })
      await tunnel.echo('still there')
      const last = await look(rig.lb, WEB1)
      expect(last.scopes[0]).toMatchObject({ state: 'read', active: 1 })
    })

    test('a reload in mid-drain shows by its pid; its old worker is waited for', async () => {
      await using rig = await front(engine, api)
      const { answer } = await rig.hold(WEB1)
      const run = startDrain(rig.lb, WEB1, { timeout: '8s' })
      await until('the drain', async () => {
        const reading = await look(rig.lb, WEB1)
        return reading.present && reading.own === 'drain'
      })
      const before = await rig.haproxy.pid()
      await rig.haproxy.reload()
      const after = await rig.haproxy.pid()
      await until('the drain is put back', async () => {
        const reading = await look(rig.lb, WEB1)
        return (
          reading.present &&
          reading.own === 'drain' &&
          reading.scopes.some(({ scope }) => scope === `worker ${after}`)
        )
      })
      // the new process says 0/0, but web1 is still busy through the old one
      expect(rig.backends['web1']!.active).toBe(1)
      const reading = await present(rig.lb, WEB1)
      const old = reading.scopes.find(({ scope }) => scope === `worker ${before}`)
      expect(old).toMatchObject({ state: 'unread', old: true })
      const report = await run.done
      expect(report.outcome).toBe('timeout')
      expect(JSON.stringify(report.members[0]!.why)).toContain('oldWorkers')
      rig.backends['web1']!.release()
      expect(await answer).toMatchObject({ status: 200, cut: false })
    })

    test('under within, an old worker ends that long after the reload', async () => {
      const global = '  hard-stop-after 3s'
      const options = { oldWorkers: { within: '3s' } } as const
      await using rig = await front(engine, api, options, CONFIG, global)
      const { answer } = await rig.hold(WEB1)
      const run = startDrain(rig.lb, WEB1, { timeout: '25s' })
      await until('the drain', async () => {
        const reading = await look(rig.lb, WEB1)
        return reading.present && reading.own === 'drain'
      })
      await rig.haproxy.reload()
      const report = await run.done
      await answer // hard-stop-after has cut it
      expect(rig.backends['web1']!.active).toBe(0)
      expect(report.outcome).toBe('idle')
      // it ended with work on it: that is said, and not called verified
      expect(report.members[0]).toMatchObject({ verifiedIdle: false })
      expect(report.members[0]!.lost[0]).toMatchObject({ active: 1 })
    })

    test('ready waits for a check that passed after maint', async () => {
      const config: typeof CONFIG = (port) =>
        CONFIG(port, '').replaceAll(/server web\d \S+/g, '$& check inter 300ms')
      await using rig = await front(engine, api, { maintCuts: false, ...NO_OLD }, config, STOP)
      await until('web1 is up', async () => (await present(rig.lb, WEB1)).health === 'up')
      await noneBefore(rig)
      const report = await drain(rig.lb, WEB1, { timeout: '20s' })
      expect(report.members[0]).toMatchObject({ verifiedIdle: true, sealed: true })
      const { members } = await ready(rig.lb, WEB1, { waitHealthy: '10s' })
      expect(members[0]!.health).toBe('up')
      await drain(rig.lb, WEB1, { timeout: '20s' })
      await rig.backends['web1']![Symbol.asyncDispose]()
      const error: unknown = await ready(rig.lb, WEB1, { waitHealthy: '2s' }).catch(
        (e: unknown) => e,
      )
      expect(isDrainableError(error, 'HEALTH_TIMEOUT')).toBe(true)
      expect((await present(rig.lb, WEB1)).serves).toBe(false)
      rig.backends['web1'] = await Backend.start(rig.haproxy.port('web1'), 'web1')
    })

    test('a durable drain survives a reload and can be undone', async () => {
      await using rig = await front(engine, api, { durable: true, ...NO_OLD })
      const { native } = await present(rig.lb, WEB1)
      expect((await change(rig.lb, { kind: 'hold', ref: WEB1, to: 'drain' })).status).toBe(
        'applied',
      )
      expect(rig.fake.config).toMatch(/server web1 .*weight 0/)
      await rig.haproxy.reload()
      const found = await present(rig.lb, WEB1)
      expect(found).toMatchObject({ own: 'drain', serves: false, weight: 0 })
      for (let i = 0; i < 8; i++) {
        expect((await request(rig.haproxy.port('web'), '/')).server).not.toBe('web1')
      }
      await change(rig.lb, { kind: 'hold', ref: WEB1, to: 'maint' })
      expect(rig.fake.config).toMatch(/server web1 .*disabled/)
      await rig.haproxy.reload()
      expect((await present(rig.lb, WEB1)).own).toBe('maint')
      const back = { kind: 'restore', ref: WEB1, native: native! } as const
      const down = await change(rig.lb, { ...back, expect: 'maint', to: 'drain' })
      expect(down.status).toBe('applied')
      expect((await present(rig.lb, WEB1)).own).toBe('drain')
      expect((await change(rig.lb, { ...back, expect: 'drain', to: 'ready' })).status).toBe(
        'applied',
      )
      expect(rig.fake.config).toMatch(/server web1 .*weight 1\b/)
      expect(rig.fake.config).not.toMatch(/server web1 .*disabled/)
      expect(await present(rig.lb, WEB1)).toMatchObject({ own: 'ready', serves: true, weight: 1 })
    })

    test('a member is drained and removed from the configuration', async () => {
      await using rig = await front(engine, api, { membership: 'configuration', ...NO_OLD })
      const before = await rig.haproxy.pid()
      const report = await drain(rig.lb, WEB1, { timeout: '30s', until: 'removed' })
      expect(report.outcome).toBe('removed')
      expect(await rig.haproxy.pid()).not.toBe(before)
      expect(rig.fake.config).not.toContain('server web1 ')
      expect(await rig.haproxy.cli('show servers state web')).not.toContain(' web1 ')
      const added = await change(rig.lb, {
        kind: 'add',
        ref: WEB1,
        address: '127.0.0.1',
        port: rig.haproxy.port('web1'),
        native: { server: { cookie: 'web1' } },
      })
      expect(added.status).toBe('applied')
      expect((await request(rig.haproxy.port('web'), '/', { cookie: 'web1' })).status).toBe(200)
    })

    test('members that are removed by one call share one reload', async () => {
      await using rig = await front(engine, api, { membership: 'configuration', ...NO_OLD })
      const refs = [WEB1, { ...WEB1, member: 'web2' }]
      const removals = refs.map((ref) => ({ kind: 'remove', ref }) as const)
      const results = await rig.lb.apply(removals, context())
      expect(results.map(({ status }) => status)).toEqual(['applied', 'applied'])
      expect(rig.fake.requests.filter(({ line }) => /^PUT .*transactions/.test(line))).toHaveLength(
        1,
      )
      expect(await rig.haproxy.cli('show servers state web')).not.toMatch(/ web[12] /)
    })

    test('a member with pooled connections is removed and added at run time', async () => {
      const config: typeof CONFIG = (port) =>
        CONFIG(port, '').replace('reuse never', 'reuse always')
      await using rig = await front(engine, api, NO_OLD, config)
      const agent = new Agent({ keepAlive: true })
      for (const cookie of ['web1', 'web1', 'web2']) {
        await request(rig.haproxy.port('web'), '/', { cookie, agent })
      }
      const report = await drain(rig.lb, WEB1, { timeout: '40s', until: 'removed' })
      expect(report.outcome).toBe('removed')
      expect((await look(rig.lb, WEB1)).present).toBe(false)
      expect((await request(rig.haproxy.port('web'), '/', { cookie: 'web1', agent })).status).toBe(
        200,
      )
      agent.destroy()
      const port = rig.haproxy.port('web1')
      const added = await change(rig.lb, { kind: 'add', ref: WEB1, address: '127.0.0.1', port })
      expect(added.status).toBe('applied')
      expect(await present(rig.lb, WEB1)).toMatchObject({ own: 'ready', serves: true, port })
    })

    test('an abort does not wait for a frozen HAProxy', async () => {
      await using rig = await front(engine, api, { callTimeout: '700ms' })
      await present(rig.lb, WEB1)
      const pid = await rig.haproxy.signal('SIGSTOP')
      try {
        const reason = new Error('enough')
        const aborted = AbortSignal.timeout(100)
        const error: unknown = await rig.lb
          .observe([WEB1], context(AbortSignal.any([aborted, AbortSignal.abort(reason)])))
          .catch((e: unknown) => e)
        expect(error).toBe(reason)
        const controller = new AbortController()
        const hanging = rig.lb.observe([WEB1], context(controller.signal)).catch((e: unknown) => e)
        await sleep(100)
        controller.abort(reason)
        expect(await hanging).toBe(reason)
        const late: unknown = await rig.lb.observe([WEB1], context()).catch((e: unknown) => e)
        expect(isDrainableError(late, 'CALL_TIMEOUT')).toBe(true)
      } finally {
        process.kill(pid, 'SIGCONT')
      }
      await until('it answers again', async () => {
        const found = await look(rig.lb, WEB1).catch(() => undefined)
        return found?.present
      })
    })

    test('a HAProxy that is gone is unreachable, not a pool without members', async () => {
      await using rig = await front(engine, api)
      await present(rig.lb, WEB1)
      await rig.haproxy[Symbol.asyncDispose]()
      const error: unknown = await rig.lb.observe([WEB1], context()).catch((e: unknown) => e)
      expect(isDrainableError(error, 'UNREACHABLE')).toBe(true)
      const result = await change(rig.lb, { kind: 'hold', ref: WEB1, to: 'drain' })
      expect(result).toMatchObject({ status: 'rejected', error: { code: 'UNREACHABLE' } })
    })

    test('states that the API misreads are told by the statistics, and undone', async () => {
      const config: typeof CONFIG = (port) =>
        CONFIG(port, '').replace(/server web1 \S+/, '$& disabled')
      await using rig = await front(engine, api, {}, config)
      // `disabled` in the file and drained: the API says maint (its mask 12 is read as 0x12)
      await rig.haproxy.cli('set server web/web1 state drain')
      expect(await present(rig.lb, WEB1)).toMatchObject({ own: 'drain' })
      const back = await change(rig.lb, {
        kind: 'restore',
        ref: WEB1,
        expect: 'drain',
        to: 'ready',
      })
      expect(back.status).toBe('applied')
      expect(await rig.haproxy.stat('web', 'web1', 'status')).toBe('no check')
      await rig.haproxy.cli('set server web/web1 state drain')
      // the seal is not sent by the API: that is said, not called done
      const sealed = await change(rig.lb, { kind: 'hold', ref: WEB1, to: 'maint' })
      expect(sealed.status).toBe('rejected')
      expect('error' in sealed && sealed.error.message).toContain('DRAIN')
    })

    test('the effect of maint is read from the configuration of each server', async () => {
      const config: typeof CONFIG = (port) =>
        CONFIG(port, '').replace(/server web1 \S+/, '$& on-marked-down shutdown-sessions')
      await using rig = await front(engine, api, {}, config)
      expect((await present(rig.lb, WEB1)).maint).toBe('cuts')
      expect((await present(rig.lb, { pool: 'web', member: 'web2' })).maint).toBe('gentle')
    })
  },
)
