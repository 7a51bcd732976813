import { ready, restore, type Ticket } from 'drainable'
import { describe, expect, test } from 'vitest'
import { connect, leaveDrained, present } from '../../support/dataplane.js'
import { CONFIG, front, pairs, type Front } from '../../support/dataplane-front.js'
import { request } from '../../support/haproxy-traffic.js'

const WEB1 = { pool: 'web', member: 'web1' }
const DURABLE = { durable: true, maintCuts: false } as const

const WEIGHED: typeof CONFIG = (port) =>
  CONFIG(port, '').replaceAll(/server web\d \S+/g, '$& weight 7')

/** A durable drain by a process that then dies; its server is opened by hand, at run time only. */
async function openedByHand({ fake, haproxy }: Front): Promise<Ticket> {
  await using lb = connect(fake, DURABLE)
  const ticket = await leaveDrained(lb)
  expect(fake.config).toMatch(/server web1 .*disabled.*weight 0|server web1 .*weight 0.*disabled/)
  await haproxy.cli('set server web/web1 weight 7')
  await haproxy.cli('set server web/web1 state ready')
  return ticket
}

async function expectOpenAfterReload({ fake, haproxy, lb }: Front): Promise<void> {
  expect(fake.config).toMatch(/server web1 .*weight 7/)
  await haproxy.reload()
  expect(await present(lb, WEB1)).toMatchObject({ own: 'ready', serves: true, weight: 7 })
  expect((await request(haproxy.port('web'), '/', { cookie: 'web1' })).server).toBe('web1')
}

describe.concurrent.each(pairs('2.6', '3.0', '3.2'))(
  'marks in the file beside a server opened by hand, HAProxy $engine.version, API $api',
  { timeout: 60_000 },
  ({ engine, api }) => {
    test('are seen before the next reload takes the server out', async () => {
      await using rig = await front(engine, api, DURABLE, WEIGHED)
      await openedByHand(rig)
      expect(await present(rig.lb, WEB1)).toMatchObject({ own: 'ready', stored: 'maint' })
      await rig.haproxy.reload()
      expect(await present(rig.lb, WEB1)).toMatchObject({ own: 'maint', serves: false })
    })

    test('are taken back by ready()', async () => {
      await using rig = await front(engine, api, DURABLE, WEIGHED)
      await openedByHand(rig)
      await ready(rig.lb, WEB1, { timeout: '30s' })
      await expectOpenAfterReload(rig)
    })

    test('are taken back by the ticket', async () => {
      await using rig = await front(engine, api, DURABLE, WEIGHED)
      const ticket = await openedByHand(rig)
      expect((await restore(rig.lb, ticket)).outcome).toBe('restored')
      await expectOpenAfterReload(rig)
    })
  },
)
