import { watch } from 'drainable'
import { fakeClock, fakeProvider } from 'drainable/testing'
import { describe, expect, it } from 'vitest'
import { recorder, web1 } from '../set-up.js'

/** A watch of a member with work, which another client removes. */
async function removedUnder(options: Partial<Parameters<typeof fakeProvider>[0]> = {}) {
  const clock = fakeClock()
  const lb = fakeProvider({ pools: { web: ['web1', 'web2'] }, clock, ...options })
  const end = lb.occupy(web1)
  const seen = recorder()
  const run = watch(lb, web1, { clock, onEvent: seen.onEvent })
  await clock.advance(5_000)
  lb.setBehind(web1, 'gone')
  await clock.advance(30_000)
  return { clock, lb, end, seen, run }
}

describe('a watch of a member that another client removes', () => {
  it('waits for work that is still counted, and then says idle', async () => {
    const { clock, end, seen, run } = await removedUnder()
    expect(seen.types()).not.toContain('removed')
    expect(run.why().map(({ code }) => code)).toContain('in-flight')
    end()
    const report = await clock.runUntil(run.done, 60_000)
    expect(report.outcome).toBe('gone')
    expect(seen.types().filter((type) => type === 'idle' || type === 'removed')).toEqual([
      'idle',
      'removed',
    ])
  })

  it('ends at once without idle if a removal ends the counts', async () => {
    const { seen, run } = await removedUnder({ capabilities: { countsAfterRemove: false } })
    expect((await run.done).outcome).toBe('gone')
    expect(seen.types()).not.toContain('idle')
  })

  it('ends with the next look where counts are old', async () => {
    const { seen, run } = await removedUnder({
      capabilities: { freshness: 60_000, minInterval: 1_000, countsAfterRemove: false },
    })
    expect(seen.types()).toContain('removed')
    expect(run.report().outcome).toBe('gone')
  })

  it('ends without idle if another member takes its name', async () => {
    const { clock, lb, seen, run } = await removedUnder()
    lb.setBehind(web1, 'ready')
    expect((await clock.runUntil(run.done, 60_000)).outcome).toBe('gone')
    expect(seen.types()).not.toContain('idle')
  })
})
