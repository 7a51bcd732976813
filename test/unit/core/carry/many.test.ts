import { startDrain } from 'drainable'
import { fakeClock, fakeProvider } from 'drainable/testing'
import { expect, test, vi } from 'vitest'
import { RunGroup } from '../../../../src/core/calls/run/run-group.js'
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

// Each member that was told to stand by its outcome began the end anew: 300 took 14 s of CPU, and 1,000 the whole stack.
test('a drain of many members ends in as many steps as one of few', async () => {
  const steps = vi.spyOn(RunGroup.prototype, 'changed')
  const drained = async (count: number): Promise<number> => {
    const clock = fakeClock()
    const web = Array.from({ length: count }, (_, n) => `web${n}`)
    const lb = fakeProvider({ pools: { web }, clock, instance: `of ${count}` })
    const run = startDrain(lb, { pool: 'web' }, { clock, timeout: '1m', keepReady: 0 })
    steps.mockClear()
    expect((await clock.runUntil(run.done)).members).toHaveLength(count)
    return steps.mock.calls.length
  }
  expect(await drained(60)).toBe(await drained(2))
})
