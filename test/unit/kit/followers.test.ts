/** Servers of HAProxy that take the state of a drained one too: through both of its adapters. */
import { plan, startDrain } from 'drainable'
import { describe, expect, test } from 'vitest'
import { until } from '../../support/dataplane.js'
import { DOORS } from './haproxy-doors.js'

const WEB1 = { pool: 'web', member: 'web1' }
const pools = {
  web: [{ name: 'web1', check: true }, 'web2'],
  api: [{ name: 'api1', track: 'web/web1' }, 'api2'],
}

describe.concurrent('a follower that takes the state too', () => {
  test.each(DOORS)('is said by plan() over the %s', async (_, start) => {
    await using it = await start(pools)
    const { notes } = await plan(it.lb, WEB1)
    expect(notes).toContainEqual('web/web1: api/api1 tracks it and takes its state too')
  })

  test.each(DOORS)('is no reason in why() over the %s', async (_, start) => {
    await using it = await start(pools)
    const end = await it.fake.occupy(WEB1)
    await using drained = startDrain(it.lb, WEB1, { timeout: '30s' })
    await drained.inForce
    const texts = () => drained.why().map(({ text }) => text)
    await until('it waits', () => Promise.resolve(texts().includes('1 in flight')))
    expect(texts()).toEqual(['1 in flight'])
    await end()
    await drained.done
  })
})
