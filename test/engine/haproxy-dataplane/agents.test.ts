/** Servers whose agent sets their state. */
import { drain, ready } from 'drainable'
import { describe, expect, test } from 'vitest'
import { present, until } from '../../support/dataplane.js'
import { CONFIG, front, pairs } from '../../support/dataplane-front.js'
import { Agent } from '../../support/haproxy-agent.js'

const WEB1 = { pool: 'web', member: 'web1' }

const withAgent =
  (inter: string): typeof CONFIG =>
  (port, dir) =>
    CONFIG(port, dir).replace(
      /server web1 \S+/,
      `$& agent-check agent-port ${port('agent')} agent-inter ${inter}`,
    )

describe.concurrent.each(pairs())(
  'an agent, Data Plane API $api before HAProxy $engine.version',
  { timeout: 60_000 },
  ({ engine, api }) => {
    test('that opens the server again is named', async () => {
      await using rig = await front(engine, api, { oldWorkers: 'accept' }, withAgent('2s'))
      await using agent = await Agent.start(rig.haproxy.port('agent'), 'up ready')
      // It is asked seldom, so that its word comes after the drain was seen to be in force.
      const error: unknown = await drain(rig.lb, WEB1, { timeout: '20s', settle: '5s' }).catch(
        (cause: unknown) => cause,
      )
      await agent.stop()
      expect(error).toMatchObject({ code: 'DRAIN_OVERRULED' })
      expect(String(error)).toContain('its agent (agent-check')
    })

    test('that drains the server may do so again, and that is said', async () => {
      await using rig = await front(engine, api, { oldWorkers: 'accept' }, withAgent('2s'))
      await using agent = await Agent.start(rig.haproxy.port('agent'), 'drain')
      await until('drained by it', async () => (await present(rig.lb, WEB1)).own === 'drain')
      const { setBy } = await present(rig.lb, WEB1)
      expect(setBy).toBe('its agent (agent-check)')
      const opened = await ready(rig.lb, WEB1, { timeout: '5s' })
      await agent.stop()
      expect(String(opened.members[0]?.hints)).toContain('its agent sets its state at each check')
    })

    test('whose word is up is a check that has passed, in maint too', async () => {
      await using rig = await front(
        engine,
        api,
        { oldWorkers: 'accept', maintCuts: false },
        withAgent('200ms'),
      )
      await using agent = await Agent.start(rig.haproxy.port('agent'), 'up')
      const report = await drain(rig.lb, WEB1, { timeout: '20s' })
      expect(report.members[0]).toMatchObject({ outcome: 'idle', sealed: true })
      const from = performance.now()
      const opened = await ready(rig.lb, WEB1, { waitHealthy: '20s' })
      expect(opened.members[0]).toMatchObject({ wasAdmin: 'maint' })
      expect(performance.now() - from).toBeLessThan(10_000)
      await agent.stop()
    })
  },
)
