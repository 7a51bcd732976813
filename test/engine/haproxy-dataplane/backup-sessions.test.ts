/** What backup servers hold, where a server that comes up cuts it (`on-marked-up shutdown-backup-sessions`). */
import { describe, expect, test } from 'vitest'
import { change, connect, present, until } from '../../support/dataplane.js'
import { CONFIG, front, pairs } from '../../support/dataplane-front.js'
import { Backend } from '../../support/haproxy-traffic.js'

const WEB1 = { pool: 'web', member: 'web1' }
const WEB2 = { pool: 'web', member: 'web2' }
const CUTS = 'check inter 100ms rise 2 fall 2 weight 7 on-marked-up shutdown-backup-sessions'
const WITH_BACKUP: typeof CONFIG = (port, dir) =>
  CONFIG(port, dir)
    .replace(/server web1 \S+/, `$& ${CUTS}`)
    .replace(/server web2 \S+/, '$& backup')

const PAIRS = pairs('3.4')
if (PAIRS.length === 0)
  test.skip('needs HAProxy 3.4, which Debian has only at times', () => undefined)

describe.each(PAIRS)(
  'a backup at work, Data Plane API $api before HAProxy $engine.version',
  { timeout: 60_000 },
  ({ engine, api }) => {
    test('keeps it from a refused removal to the opening by another process', async () => {
      await using rig = await front(engine, api, { maintCuts: false }, WITH_BACKUP)
      const { haproxy, backends, lb } = rig
      const status = (): Promise<string> => haproxy.stat('web', 'web1', 'status')
      await until('it serves', async () => (await present(lb, WEB1)).serves)
      const { answer } = await rig.hold(WEB2)
      await rig.hold(WEB1)
      await change(lb, { kind: 'hold', ref: WEB1, to: 'drain' })
      expect(await change(lb, { kind: 'remove', ref: WEB1 })).toMatchObject({ status: 'rejected' })
      expect(await haproxy.mask('web', 'web1')).toBe(8)

      await backends['web1']![Symbol.asyncDispose]()
      await until('it is down', async () => (await status()) === 'DOWN')
      await using alive = await Backend.start(haproxy.port('web1'), 'web1')
      await until('it is up', async () => (await status()).startsWith('DRAIN'))
      expect(backends['web2']!.active).toBe(1)
      expect(alive.active).toBe(0)

      await using other = connect(rig.fake, { maintCuts: false })
      const open = { kind: 'restore', ref: WEB1, expect: 'drain', to: 'ready' } as const
      expect(await change(other, open)).toMatchObject({ status: 'applied' })
      expect(await haproxy.mask('web', 'web1')).toBe(0)
      expect(await haproxy.stat('web', 'web1', 'weight')).toBe('7')
      backends['web2']!.release()
      expect(await answer).toMatchObject({ status: 200, cut: false })
    })
  },
)
