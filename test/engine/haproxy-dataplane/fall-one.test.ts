/** A server that its first failed check takes down: its counts don't show whether one has passed. */
import { startDrain } from 'drainable'
import { describe, expect, test } from 'vitest'
import { present, until } from '../../support/dataplane.js'
import { CONFIG, front, pairs } from '../../support/dataplane-front.js'

const WEB1 = { pool: 'web', member: 'web1' }

const FALL_ONE: typeof CONFIG = (port, dir) =>
  CONFIG(port, dir).replace(/server web1 \S+/, '$& check inter 200ms fall 1')

describe.concurrent.each(pairs('3.2'))(
  'a server with fall 1, Data Plane API $api before HAProxy $engine.version',
  { timeout: 60_000 },
  ({ engine, api }) => {
    test('is open again after the undo of a sealed drain', async () => {
      await using rig = await front(
        engine,
        api,
        { maintCuts: false, oldWorkers: 'accept' },
        FALL_ONE,
      )
      await until('it serves', async () => (await present(rig.lb, WEB1)).serves)
      await using run = startDrain(rig.lb, WEB1, { timeout: '40s' })
      expect((await run.done).members[0]).toMatchObject({ outcome: 'idle', sealed: true })
      expect((await run.restore()).outcome).toBe('restored')
      expect(await rig.haproxy.mask('web', 'web1')).toBe(0)
    })
  },
)
