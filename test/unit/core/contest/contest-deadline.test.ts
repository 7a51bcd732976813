import { expect, test } from 'vitest'
import { ready, select, startDrain } from 'drainable'
import { setUp, web1, web3 } from '../set-up.js'

test('a drain that waits for another call ends at its own deadline', async () => {
  const { clock, lb } = setUp()
  lb.setBehind(web1, 'drain')
  lb.setBehind(web3, 'drain')
  await clock.runUntil(select(lb, web1, { clock }))
  lb.failNext('hang', { verb: 'apply' })
  const opened = ready(lb, [web1, web3], { clock }).catch((error: unknown) => error)
  await clock.advance(100)
  // web3 is still to be opened, so the call that hangs goes on.
  const from = clock.now()
  const run = startDrain(lb, web1, { clock, timeout: '4s' })
  const report = await clock.runUntil(run.done)
  expect(report.outcome).not.toBe('idle')
  expect(clock.now() - from).toBeLessThan(6_500)
  await run.close()
  await clock.runUntil(opened)
})
