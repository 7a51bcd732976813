import { expect, test } from 'vitest'
import { ready, startDrain } from 'drainable'
import { web1 } from '../set-up.js'
import { isHold, loseAnswer, rig } from './rig.js'

test('ready() waits for the late holds of all runs that have ended', async () => {
  const { clock, lb } = rig({ capabilities: { lateBound: 10_000 } })
  lb.occupy(web1)
  loseAnswer(lb, clock, isHold, 6_000)
  loseAnswer(lb, clock, isHold, 2_000) // this one is lost first
  const first = startDrain(lb, web1, { clock, timeout: '10m' })
  await clock.advance(0)
  const second = startDrain(lb, web1, { clock, timeout: '10m' })
  await clock.advance(0)
  await second.release()
  await first.release()
  await clock.runUntil(ready(lb, web1, { clock }), 120_000)
  await clock.advance(60_000)
  expect(lb.state(web1)).toBe('ready')
})
