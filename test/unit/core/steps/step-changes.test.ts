import { afterEach, describe, expect, test, vi } from 'vitest'
import { type DrainStep, type Ticket } from 'drainable'
import type { FakeClock } from 'drainable/testing'
import { setUp, web1, web2 } from '../set-up.js'
import { stepped } from '../stepped.js'

afterEach(() => vi.restoreAllMocks())

/** Wall time of this host moves with the fake clock. */
function followed(clock: FakeClock): void {
  const base = Date.now() - clock.now()
  vi.spyOn(Date, 'now').mockImplementation(() => base + clock.now())
}

async function toTheEnd(
  lb: ReturnType<typeof setUp>['lb'],
  clock: FakeClock,
  first: DrainStep,
  most = 300,
): Promise<DrainStep> {
  let step = first
  for (let i = 0; i < most && step.outcome === undefined; i += 1) {
    await clock.advance(Math.max(1, step.againIn))
    step = await stepped(lb, JSON.parse(JSON.stringify(step.ticket)) as Ticket, { clock })
  }
  return step
}

describe('a drain by steps', () => {
  test('removes the member, whatever the late bound is', async () => {
    const { clock, lb } = setUp({ capabilities: { lateBound: 30_000 } })
    followed(clock)
    const policy = { until: 'removed', timeout: '2m' } as const
    const step = await toTheEnd(lb, clock, await stepped(lb, { target: web1, policy }, { clock }))
    expect(step.outcome).toBe('removed')
    expect(lb.state(web1)).toBe('gone')
  })

  test('undoes its hold if another controller took the last place', async () => {
    const { clock, lb } = setUp({ pools: { web: ['web1', 'web2'] } })
    followed(clock)
    const announced = await stepped(lb, { target: web1 }, { clock })
    await clock.advance(1)
    const apply = lb.apply.bind(lb)
    lb.apply = (changes, ctx) => {
      lb.setBehind(web2, 'drain') // in the same moment
      lb.apply = apply
      return apply(changes, ctx)
    }
    const held = await stepped(lb, JSON.parse(JSON.stringify(announced.ticket)) as Ticket, {
      clock,
    })
    const step = await toTheEnd(lb, clock, held)
    expect(step.outcome).toBe('refused')
    expect(lb.state(web1)).toBe('ready')
  })
})
