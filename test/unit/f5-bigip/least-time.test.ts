import { drain, plan, startDrain } from 'drainable'
import { expect, test } from 'vitest'
import { ioClock } from '../../support/io-clock.js'
import { connect, rig, WEB1 } from './rig.js'

const DEFAULTS = { freshness: '4s', minInterval: '2s' } as const

test('a timeout shorter than the proof with the defaults is refused with 12 s', async () => {
  await using it = await rig({}, DEFAULTS)
  await expect(drain(it.lb, WEB1, { timeout: '11s' })).rejects.toMatchObject({
    code: 'INVALID_OPTIONS',
    message: expect.stringContaining('at least 12 s') as string,
  })
  expect(it.fake.state(WEB1)).toBe('ready')
})

test('plan tells the time that a drain without traffic takes', async () => {
  using clock = ioClock()
  await using it = await rig({ latency: 10, clock: clock.latency })
  await using lb = connect(it.fake, DEFAULTS)
  const { text } = await clock.run(plan(lb, WEB1, { clock, timeout: '1m' }))
  expect(text).toContain('12 s')
  const began = clock.now()
  const run = startDrain(lb, WEB1, { clock, timeout: '1m' })
  await clock.run(run.done)
  expect(clock.now() - began).toBeGreaterThanOrEqual(12_000)
  expect(clock.now() - began).toBeLessThan(14_000)
  await clock.run(run.restore())
})
