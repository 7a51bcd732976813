import { startDrain } from 'drainable'
import { haproxyRuntime } from 'drainable/haproxy-runtime'
import { describe, expect, test } from 'vitest'
import { connect, present } from '../../support/dataplane.js'
import { CONFIG, front, pairs, type Front } from '../../support/dataplane-front.js'
import { until } from '../../support/haproxy.js'

const WEB1 = { pool: 'web', member: 'web1' }

/** The Data Plane API as the hands, the Runtime API with its master's socket as the eyes. */
async function both(engine: Parameters<typeof front>[0], api: string) {
  const rig = await front(engine, api, {}, CONFIG)
  const { socket, master } = rig.haproxy
  const runtime = haproxyRuntime({ socket, master })
  const lb = connect(rig.fake, { runtime })
  return {
    ...rig,
    lb,
    async [Symbol.asyncDispose]() {
      await lb.close()
      await runtime.close()
      await rig[Symbol.asyncDispose]()
    },
  }
}

async function replaced(rig: Front): Promise<number> {
  const before = await rig.haproxy.pid()
  await rig.haproxy.reload()
  return before
}

describe.concurrent.each(pairs('2.6', '3.0', '3.2'))(
  'proof by the Runtime API: HAProxy $engine.version, API $api',
  { timeout: 120_000 },
  ({ engine, api }) => {
    test('idle is proved without a bound on old workers', async () => {
      await using rig = await both(engine, api)
      const [member] = (await startDrain(rig.lb, WEB1, { timeout: '60s' }).done).members
      expect(member).toMatchObject({ outcome: 'idle', verifiedIdle: true, sealed: true })
    })

    test.each(['before', 'during'] as const)('a reload %s a drain is waited for', async (when) => {
      await using rig = await both(engine, api)
      const { answer } = await rig.hold(WEB1)
      const early = when === 'before' ? await replaced(rig) : undefined
      const run = startDrain(rig.lb, WEB1, { timeout: '100s' })
      await until(async () => (await present(rig.lb, WEB1)).own === 'drain', 'the drain')
      const old = early ?? (await replaced(rig))
      const isOld = async (): Promise<boolean> => {
        const { own, scopes } = await present(rig.lb, WEB1)
        const busy = scopes.filter((scope) => scope.old === true && scope.active === 1)
        return own !== 'ready' && busy.some(({ scope }) => scope.includes(`${old}`))
      }
      await until(isOld, 'the old worker is seen, and the drain in force')
      expect(run.report().outcome).not.toBe('idle')
      expect(rig.backends['web1']!.active).toBe(1)
      rig.backends['web1']!.release()
      expect(await answer).toMatchObject({ status: 200, cut: false })
      const [member] = (await run.done).members
      expect(member!.outcome).toBe('idle')
      // An old worker exits with its last connection: where no look fell in between, that is said.
      if (!member!.verifiedIdle) expect(JSON.stringify(member!.why)).toContain('finished unseen')
    })
  },
)
