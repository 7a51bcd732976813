/** Servers whose counts are full as they leave maint, so that they don't show whether a check has passed. */
import { ready, startDrain } from 'drainable'
import { describe, expect, test } from 'vitest'
import { present, until } from '../../support/dataplane.js'
import { CONFIG, front, pairs } from '../../support/dataplane-front.js'
import { Backend } from '../../support/haproxy-traffic.js'

const WEB1 = { pool: 'web', member: 'web1' }

function checked(options: string): typeof CONFIG {
  return (port, dir) =>
    CONFIG(port, dir).replace(/server web1 \S+/, `$& check inter 200ms rise 2 ${options}`)
}

const OPTIONS = [
  ['fall 1', { durable: false }],
  ['fall 1', { durable: true }],
  ['fall 3 init-state fully-up', { durable: false }],
] as const

describe.concurrent.each(pairs())(
  'counts that are full at once, Data Plane API $api before HAProxy $engine.version',
  { timeout: 60_000 },
  ({ engine, api }) => {
    const known = OPTIONS.filter(
      ([options]) => !options.includes('init-state') || !['2.6', '3.0'].includes(engine.series),
    )
    test.for(known)('wait for a passed check: %s, %o', async ([options, more]) => {
      const given = { maintCuts: false, oldWorkers: 'accept', ...more } as const
      await using rig = await front(engine, api, given, checked(options))
      const { haproxy, backends } = rig
      await until('it serves', async () => (await present(rig.lb, WEB1)).serves)
      await using run = startDrain(rig.lb, WEB1, { timeout: '40s' })
      expect((await run.done).members[0]).toMatchObject({ outcome: 'idle', sealed: true })
      await run.close()
      // Behind its address nobody listens: no check of it passes.
      await backends['web1']![Symbol.asyncDispose]()
      const opening = ready(rig.lb, WEB1, { waitHealthy: '30s' })
      const said = (): Promise<string> => haproxy.stat('web', 'web1', 'check_status')
      // Durably, maint is left by a write of its own, with weight 0, before the drain.
      await until('the drain', async () => (await haproxy.mask('web', 'web1')) === 8)
      await until('a failed check', async () => (await said()).endsWith('L4CON'))
      expect(await haproxy.mask('web', 'web1')).toBe(8)
      const from = performance.now()

      await using alive = await Backend.start(haproxy.port('web1'), 'web1')
      expect((await opening).members[0]).toMatchObject({ wasAdmin: 'maint', health: 'up' })
      expect(performance.now() - from).toBeLessThan(10_000)
      expect(await haproxy.mask('web', 'web1')).toBe(0)
      expect(await haproxy.stat('web', 'web1', 'weight')).toBe('1')
      expect(alive.active).toBe(0)
    })

    // Persistence is forced, so that a client comes before the server is marked down for its check.
    test('where maint cuts, the wait for a check cuts no client', async () => {
      const cuts: typeof CONFIG = (port, dir) =>
        checked('fall 1 on-marked-down shutdown-sessions')(port, dir).replace(
          'balance roundrobin',
          '$&\n  force-persist if TRUE',
        )
      await using rig = await front(engine, api, { oldWorkers: 'accept' }, cuts)
      await until('it serves', async () => (await present(rig.lb, WEB1)).serves)
      await rig.haproxy.cli('set server web/web1 state maint')
      const { answer } = await rig.hold(WEB1)
      const opened = await ready(rig.lb, WEB1, { waitHealthy: '20s' })
      expect(opened.members[0]).toMatchObject({ wasAdmin: 'maint', health: 'up' })
      expect(rig.backends['web1']!.active).toBe(1)
      rig.backends['web1']!.release()
      expect(await answer).toMatchObject({ status: 200, cut: false })
    })

    test('are no reason to wait in an undo', async () => {
      const given = { maintCuts: false, oldWorkers: 'accept' } as const
      await using rig = await front(engine, api, given, checked('fall 1'))
      await until('it serves', async () => (await present(rig.lb, WEB1)).serves)
      await using run = startDrain(rig.lb, WEB1, { timeout: '40s' })
      expect((await run.done).members[0]).toMatchObject({ outcome: 'idle', sealed: true })
      const from = performance.now()
      expect((await run.restore()).outcome).toBe('restored')
      expect(performance.now() - from).toBeLessThan(15_000)
      expect(await rig.haproxy.mask('web', 'web1')).toBe(0)
    })
  },
)
