import type { MemberRef } from 'drainable/provider'
import { citrixAdc } from 'drainable/citrix-adc'
import { startFake } from 'drainable/testing/citrix-adc'
import { expect, test } from 'vitest'
import { Meter, type Traffic } from '../../../bench/support/traffic.js'
import { context } from './rig.js'

const refs = (count: number): MemberRef[] =>
  Array.from({ length: count }, (_, i) => ({ pool: `sg${i}`, member: '10.0.0.1:80' }))

const GROUPS = Object.fromEntries(
  refs(1_000).map(({ pool }) => [pool, ['10.0.0.1:80', '10.0.0.2:80']]),
)

/** What looks at so many groups cost, the first one and three later ones. */
async function looks(count: number): Promise<Traffic> {
  using meter = new Meter()
  await using fake = await startFake({ tls: false, pools: GROUPS })
  const { url, username, password } = fake
  await using adc = citrixAdc({ url, username, password, freshness: 0 })
  return await meter.of(async () => {
    for (let i = 0; i < 4; i += 1) await adc.observe(refs(count), context())
  })
}

test('looks at five of a thousand groups cost little more than at four', async () => {
  const [few, more] = [await looks(4), await looks(5)]
  expect(more.bytes).toBeLessThan(few.bytes * 1.3)
  expect(more.requests).toBeLessThan(few.requests * 1.3)
})

test('looks at forty of a thousand groups read no whole list', async () => {
  expect((await looks(40)).bytes).toBeLessThan(600_000)
})

test('looks at a thousand groups read lists', async () => {
  expect((await looks(1_000)).requests).toBeLessThan(40)
})

test('a list that can not be had is not waited for: each group is asked for', async () => {
  const pools = Object.fromEntries(refs(20).map(({ pool }) => [pool, ['10.0.0.1:80']]))
  await using fake = await startFake({ tls: false, pools })
  const { url, username, password } = fake
  await using adc = citrixAdc({ url, username, password })
  fake.fail({ match: /GET \S+(config|stat)\/servicegroup(\?|$)|bulkbindings/, how: 'garbage' })
  const { readings } = await adc.observe(refs(20), context())
  expect(readings.every(({ scopes }) => scopes[0]?.state === 'read')).toBe(true)
})
