import { afterEach, expect, test, vi } from 'vitest'
import { startDrain } from 'drainable'
import { only, setUp, web1, web2 } from './set-up.js'

afterEach(() => vi.restoreAllMocks())

/** Another controller takes web2 in the moment our first hold is carried out. */
function takenAtOnce(latency: number): ReturnType<typeof setUp> {
  vi.spyOn(Math, 'random').mockReturnValue(0.99)
  const both = setUp({ pools: { web: ['web1', 'web2'] }, latency })
  const { lb } = both
  const apply = lb.apply.bind(lb)
  let first = true
  lb.apply = (changes, ctx) => {
    if (first) lb.setBehind(web2, 'drain')
    first = false
    return apply(changes, ctx)
  }
  return both
}

test('below the floor nothing is called idle before the undo is decided', async () => {
  const { clock, lb } = takenAtOnce(0)
  const run = startDrain(lb, web1, { clock, settle: '0ms', timeout: '1m' })
  const report = await clock.runUntil(run.done)
  expect(only(report).error?.code).toBe('POOL_AT_MINIMUM')
  expect(report.outcome).toBe('refused')
  expect(lb.state(web1)).toBe('ready')
  await run.release()
})

test('an undo of ours that is seen before its answer is not somebody else who overruled', async () => {
  const { clock, lb } = takenAtOnce(10)
  const apply = lb.apply.bind(lb)
  lb.apply = async (changes, ctx) => {
    const results = await apply(changes, ctx)
    if (changes[0]?.kind === 'restore')
      await new Promise<void>((resolve) => clock.setTimeout(resolve, 300))
    return results
  }
  const run = startDrain(lb, web1, { clock, settle: '5s', timeout: '1m' })
  expect((await clock.runUntil(run.done)).outcome).toBe('refused')
  await clock.runUntil(run.release()) // waits for the answer
})

test('a state that somebody else set in the meantime is not undone', async () => {
  const { clock, lb } = takenAtOnce(0)
  const run = startDrain(lb, web1, { clock, settle: '5s', timeout: '1m' })
  await clock.advance(500)
  lb.setBehind(web1, 'maint')
  await clock.advance(2_000)
  expect(lb.state(web1)).toBe('maint')
  await run.release()
})
