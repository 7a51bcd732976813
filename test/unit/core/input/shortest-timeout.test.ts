import { expect, test } from 'vitest'
import { drain, plan } from 'drainable'
import type { Duration } from 'drainable/provider'
import { thrown, web1 } from '../set-up.js'
import { rig } from '../rig.js'

/** What a drain says that has this time for a proof that takes so long. */
async function said(blind: number, timeout: Duration): Promise<string> {
  const { clock, lb } = rig({ capabilities: { blind } })
  const ended = drain(lb, web1, { clock, settle: 0, timeout }).then(() => 'idle', String)
  return clock.runUntil(ended)
}

test.each([
  [5_007, '5s', '5.1 s', '5.1s'],
  [5_000, '4900ms', '5 s', '5s'],
  [61_200, '60s', '1 m 2 s', '62s'],
  [1_700, '1.5s', '1.7 s', '1.7s'],
] as const)(
  'the shortest timeout that is named for %i ms is long enough',
  async (ms, short, named, given) => {
    expect(await said(ms, short)).toContain(`expected at least ${named}: this`)
    expect(await said(ms, given)).not.toContain('expected at least')
  },
)

// A machine that stands still for a moment, or a balancer that does: the first look says nothing about later ones.
test('a slow first look refuses no drain', async () => {
  const { clock, lb } = rig()
  const observe = lb.observe.bind(lb)
  let slow = true
  lb.observe = async (refs, ctx) => {
    if (slow) await new Promise<void>((resolve) => void ctx.clock.setTimeout(resolve, 3_500))
    slow = false
    return observe(refs, ctx)
  }
  const report = await clock.runUntil(drain(lb, web1, { clock, timeout: '6s' }))
  expect(report.outcome).toBe('idle')
})

test('a plan takes a slow look for no refusal, and says so', async () => {
  const { clock, lb } = rig({ latency: 3_000 })
  const found = await clock.runUntil(plan(lb, web1, { clock, timeout: '8s' }))
  expect(found.refused).toEqual([])
  expect(found.text).toContain('this look took 3 s: leave time for two more like it')
})

test('a timeout that slow looks leave no time for is a timeout', async () => {
  const { clock, lb } = rig({ latency: 3_000 })
  const ended = drain(lb, web1, { clock, timeout: '8s' })
  expect(await clock.runUntil(thrown(ended))).toMatchObject({ code: 'DRAIN_TIMEOUT' })
})
