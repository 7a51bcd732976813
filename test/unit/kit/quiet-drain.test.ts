/** What the drain of one member without traffic costs, with the defaults: the adapters are asked at the core's pace. */
import { startDrain, type DrainableProvider } from 'drainable'
import { citrixAdc } from 'drainable/citrix-adc'
import { f5Bigip } from 'drainable/f5-bigip'
import { startFake as startCitrix } from 'drainable/testing/citrix-adc'
import { startFake as startBigip } from 'drainable/testing/f5-bigip'
import { expect, test } from 'vitest'
import { ioClock } from '../../support/io-clock.js'

interface Device {
  readonly pool: string
  readonly member: string
  readonly most: number
  readonly start: typeof startBigip | typeof startCitrix
  readonly connect: (options: {
    url: string
    username: string
    password: string
  }) => DrainableProvider & AsyncDisposable
}

const DEVICES: readonly (readonly [string, Device])[] = [
  [
    'BIG-IP',
    {
      pool: '/Common/web',
      member: '/Common/10.0.0.1:80',
      most: 28,
      start: startBigip,
      connect: f5Bigip,
    },
  ],
  [
    'Citrix ADC',
    { pool: 'web', member: '10.0.0.1:80', most: 31, start: startCitrix, connect: citrixAdc },
  ],
]

test.each(DEVICES)(
  'a quiet drain of a %s costs no more requests than it did',
  async (_, { pool, member, most, start, connect }) => {
    using clock = ioClock()
    const pools = { [pool]: ['10.0.0.1:80', '10.0.0.2:80'] }
    await using fake = await start({ pools, tls: false, latency: 50, clock: clock.latency })
    const { url, username, password } = fake
    await using lb = connect({ url, username, password })
    const run = startDrain(lb, { pool, member }, { clock, timeout: '5m' })
    expect((await clock.run(run.done)).outcome).toBe('idle')
    expect(fake.requests.length).toBeLessThanOrEqual(most)
    await clock.run(run.restore())
  },
)
