import { watch } from 'drainable'
import { f5Bigip } from 'drainable/f5-bigip'
import { startFake } from 'drainable/testing/f5-bigip'
import { expect, test } from 'vitest'
import { ioClock, type IoClock } from '../../support/io-clock.js'

const MEMBERS = Array.from({ length: 50 }, (_, i) => `10.0.0.${i + 1}:80`)
const WEB7 = { pool: '/Common/web', member: '/Common/10.0.0.7:80' }

const pass = (clock: IoClock, ms: number): Promise<void> =>
  clock.run(new Promise<void>((resolve) => clock.setTimeout(resolve, ms)))

test('a watch of 50 members costs little where nothing happens, and tells soon', async () => {
  using clock = ioClock()
  const pools = { '/Common/web': MEMBERS }
  await using fake = await startFake({ pools, tls: false, latency: 30, clock: clock.latency })
  const { url, username, password } = fake
  await using lb = f5Bigip({ url, username, password })
  const end = new AbortController()
  const told: number[] = []
  const view = watch(
    lb,
    { pool: '/Common/web' },
    {
      clock,
      signal: end.signal,
      onEvent: (event) => {
        if (event.type === 'phase') told.push(clock.now())
      },
    },
  )
  await pass(clock, 600_000)
  const quiet = fake.requests.length
  expect(quiet).toBeLessThan(270)
  const changed = clock.now()
  await fake.setBehind(WEB7, 'drain')
  await pass(clock, 10_000)
  expect(told[0]! - changed).toBeLessThanOrEqual(10_000)
  const before = fake.requests.length
  await pass(clock, 20_000)
  expect(fake.requests.length - before).toBeGreaterThan(20)
  end.abort()
  await clock.run(Promise.resolve(view.done).catch(() => undefined))
})
