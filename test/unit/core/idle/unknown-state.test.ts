import { expect, test } from 'vitest'
import { restore, startDrain } from 'drainable'
import { setUp, web1 } from '../set-up.js'

test('an unknown state is not overwritten, and why() names it', async () => {
  const { clock, lb } = setUp()
  const observe = lb.observe.bind(lb)
  let contradicts = true
  lb.observe = async (refs, ctx) => {
    const snapshot = await observe(refs, ctx)
    if (!contradicts) return snapshot
    const readings = snapshot.readings.map((reading) =>
      reading.present ? { ...reading, own: 'unknown' as const } : reading,
    )
    return { ...snapshot, readings }
  }
  const run = startDrain(lb, web1, { clock, timeout: '1m' })
  await clock.advance(5_000)
  expect(lb.requests.filter((call) => call.verb === 'apply')).toEqual([])
  expect(run.why()[0]?.text).toContain('contradicts itself')
  contradicts = false
  expect((await clock.runUntil(run.done)).outcome).toBe('idle')
  await run.release()
  await clock.runUntil(restore(lb, await run.ticket, { clock }))
  expect(lb.state(web1)).toBe('ready')
})
