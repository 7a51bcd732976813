import { drain } from 'drainable'
import { expect, test } from 'vitest'
import { ioClock } from '../../../support/io-clock.js'
import { rig, WEB1 } from '../rig.js'

test('a request that left the surge queue keeps a member from idle', async () => {
  using clock = ioClock()
  await using at = await rig({ tick: 1_000, statInterval: 7_000, clock }, { freshness: '8s' })
  const { fake, adc } = at
  await fake.occupy(WEB1, { pooled: 2 })
  const leave = await fake.occupy(WEB1, { queued: 1 })
  const connect = async (): Promise<void> => {
    await leave()
    const end = await fake.occupy(WEB1, { connecting: 1 })
    clock.setTimeout(() => void end(), 35_000)
  }
  clock.setTimeout(() => void connect(), 5_000)
  const { elapsed, members } = await clock.run(drain(adc, WEB1, { timeout: '2m', clock }))
  expect(elapsed).toBeGreaterThanOrEqual(40_000)
  expect(members).toMatchObject([{ outcome: 'idle', verifiedIdle: true }])
})
