import { fakeClock, fakeProvider } from 'drainable/testing'
import { expect, test } from 'vitest'
import { Scheduler } from '../../../../src/core/balancer/look/scheduler.js'

test('a place among many asks no balancer when nothing is pushed', () => {
  const clock = fakeClock()
  const lb = fakeProvider({ pools: { web: ['a'] }, clock })
  const scheduler = new Scheduler(lb, clock)
  let asked = 0
  const seats = Array.from({ length: 20 }, () =>
    scheduler.join({
      background: false,
      refs: () => {
        asked += 1
        return [{ pool: 'web', member: 'a' }]
      },
      see: () => undefined,
    }),
  )
  for (const seat of seats) seat.leave()
  expect(asked).toBe(0)
})
