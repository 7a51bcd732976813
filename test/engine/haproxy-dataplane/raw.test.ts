import { drain } from 'drainable'
import { describe, expect, test } from 'vitest'
import { change, present } from '../../support/dataplane.js'
import { CONFIG, front, pairs } from '../../support/dataplane-front.js'

const LISTED = { pool: 'listed', member: 'web1' }
const SLOT = { pool: 'slots', member: 'slot2' }

const ELSEWHERE: typeof CONFIG = (port) =>
  `${CONFIG(port, '')}
listen listed
  bind 127.0.0.1:${port('listed')}
  server web1 127.0.0.1:${port('web1')}
  server web2 127.0.0.1:${port('web2')}
backend slots
  server-template slot 3 127.0.0.1:${port('web1')}
`

describe.concurrent.each(pairs('2.6', '3.0', '3.2'))(
  'servers only in the text, Data Plane API $api before HAProxy $engine.version',
  { timeout: 60_000 },
  ({ engine, api }) => {
    test.each([LISTED, SLOT])('are drained and sealed: %o', async (ref) => {
      await using rig = await front(engine, api, {}, ELSEWHERE)
      const report = await drain(rig.lb, ref, { timeout: '30s' })
      expect(report.members[0]).toMatchObject({ outcome: 'idle', sealed: true })
      expect(await rig.haproxy.stat(ref.pool, ref.member, 'status')).toBe('MAINT')
    })

    test.each([LISTED, SLOT])('are not drained durably: %o', async (ref) => {
      await using rig = await front(engine, api, { durable: true }, ELSEWHERE)
      const result = await change(rig.lb, { kind: 'hold', ref, to: 'drain' })
      expect(result).toMatchObject({ status: 'rejected', error: { code: 'UNSUPPORTED' } })
      expect(await present(rig.lb, ref)).toMatchObject({ own: 'ready', serves: true })
    })
  },
)
