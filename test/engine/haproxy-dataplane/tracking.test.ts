import { ready, startDrain } from 'drainable'
import { describe, expect, test } from 'vitest'
import { change, present, until } from '../../support/dataplane.js'
import { CONFIG, front, pairs } from '../../support/dataplane-front.js'

const WEB1 = { pool: 'web', member: 'web1' }
const API1 = { pool: 'api', member: 'api1' }

/** api1 is the same machine as web1 and tracks it; api2 is there where it is wanted. */
const tracking =
  (more = ''): typeof CONFIG =>
  (port) =>
    `${CONFIG(port, '').replace(/server web1 \S+/, '$& check inter 200ms')}
backend api
  server api1 127.0.0.1:${port('web1')} track web/web1
${more === '' ? '' : `  server api2 127.0.0.1:${port(more)}\n`}`

describe.concurrent.each(pairs('2.6', '3.0', '3.2'))(
  'servers that track others, Data Plane API $api before HAProxy $engine.version',
  { timeout: 60_000 },
  ({ engine, api }) => {
    test('a server whose tracker is the last of its backend is not drained', async () => {
      await using rig = await front(engine, api, {}, tracking())
      await until('it serves', async () => (await present(rig.lb, API1)).serves)
      const result = await change(rig.lb, { kind: 'hold', ref: WEB1, to: 'drain' })
      expect(result).toMatchObject({ status: 'rejected', error: { code: 'POOL_AT_MINIMUM' } })
      expect(await rig.haproxy.stat('api', 'api1', 'status')).toBe('UP')
    })

    test('a tracker is healthy once its leader has passed a check', async () => {
      await using rig = await front(engine, api, {}, tracking('web2'))
      await until('it serves', async () => (await present(rig.lb, API1)).serves)
      const opened = await ready(rig.lb, API1, { waitHealthy: '10s' })
      expect(opened.members[0]).toMatchObject({ health: 'up' })
    })

    test('a server and its tracker are drained and opened in one call', async () => {
      await using rig = await front(engine, api, { maintCuts: false }, tracking('web2'))
      await until('it serves', async () => (await present(rig.lb, API1)).serves)
      const { address, port } = await present(rig.lb, API1)
      const target = { address: address!, port: port! }
      const run = startDrain(rig.lb, target, { timeout: '40s' })
      const report = await run.done
      expect(report.members.map(({ outcome }) => outcome)).toEqual(['idle', 'idle'])
      expect((await run.restore()).outcome).toBe('restored')
      for (const [pool, name] of [
        ['web', 'web1'],
        ['api', 'api1'],
      ] as const) {
        expect(await rig.haproxy.stat(pool, name, 'status')).toBe('UP')
        const rows = (await rig.haproxy.cli(`show servers state ${pool}`)).split('\n')
        const row = rows.find((line) => line.split(' ')[3] === name)
        expect(row?.split(' ')[6]).toBe('0')
      }
    })
  },
)
