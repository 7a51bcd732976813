/** A watch of a pair where nothing happens: two in three of its looks do not ask the active unit for its role. */
import { watch, type DrainEvent } from 'drainable'
import { f5Bigip } from 'drainable/f5-bigip'
import { startFake } from 'drainable/testing/f5-bigip'
import { expect, test } from 'vitest'
import { ioClock } from '../../support/io-clock.js'

test('what an operator does after a failover is told within ten seconds', async () => {
  using clock = ioClock()
  const pass = (ms: number): Promise<void> =>
    clock.run(new Promise<void>((resolve) => clock.setTimeout(resolve, ms)))
  const pools = { web: ['10.0.0.1:80', '10.0.0.2:80'] }
  await using fake = await startFake({
    pools,
    pair: true,
    tls: false,
    latency: 30,
    clock: clock.latency,
  })
  const { urls, username, password } = fake
  await using lb = f5Bigip({ url: urls, username, password })
  const end = new AbortController()
  const told: number[] = []
  const texts: string[] = []
  const onEvent = (event: DrainEvent): void => {
    if (event.type === 'phase' && event.to === 'draining') told.push(clock.now())
    if (event.type === 'fault') texts.push(event.error.message)
  }
  const view = watch(lb, { pool: '/Common/web' }, { clock, signal: end.signal, onEvent })
  await pass(60_000)
  const whole = /sys\/failover/
  const asked = (): number => fake.requests.filter(({ path }) => whole.test(path)).length
  const before = asked()
  while (asked() === before) await pass(10)
  await pass(500)
  await fake.failover()
  const changed = clock.now()
  // The pair does not sync: the other unit alone has it.
  await fake.setBehind({ pool: 'web', member: '10.0.0.1:80' }, 'drain')
  await pass(15_000)
  expect(told).toHaveLength(1)
  expect(told[0]! - changed).toBeLessThanOrEqual(10_000)
  expect(texts).toEqual([])
  end.abort()
  await clock.run(Promise.resolve(view.done).catch(() => undefined))
})
