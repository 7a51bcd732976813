import { expect, test } from 'vitest'
import { fakeClock, fakeProvider } from 'drainable/testing'
import { Scheduler } from '../../../../src/core/balancer/look/scheduler.js'

test.each([1, 10])('a look costs what %d subscribers work by it', async (count) => {
  const inner = fakeClock()
  let worked = 0
  const clock = { ...inner, now: () => inner.now() + worked }
  clock.setTimeout = (fn, ms) => inner.setTimeout(fn, ms)
  const lb = fakeProvider({ pools: { web: ['a'] } })
  const scheduler = new Scheduler(lb, clock)
  const seen: number[] = []
  for (let i = 0; i < count; i += 1)
    scheduler.join({
      refs: () => [{ pool: 'web', member: 'a' }],
      background: false,
      see: () => {
        worked += 2 // each takes two milliseconds of this process
        seen.push(scheduler.cost)
      },
    })
  await inner.advance(1)
  expect(seen).toHaveLength(count)
  expect(scheduler.cost).toBe(2 * count)
})
