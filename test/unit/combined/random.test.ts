import fc from 'fast-check'
import { expect, test } from 'vitest'
import { startDrain } from 'drainable'
import type { FakeProvider } from 'drainable/testing'
import { a1, b1, bare, setUp } from './set-up.js'

/** Looks so far apart that most of what happens lies between two of them, and not many see the same. */
const FEWER = { capabilities: { minInterval: 40 } }

/** What may happen to one of the balancers, and after how long. */
const happening = fc.record({
  after: fc.integer({ min: 0, max: 2_500 }),
  where: fc.constantFrom('a' as const, 'b' as const),
  what: fc.constantFrom(
    'work' as const,
    'work' as const,
    'end' as const,
    'end' as const,
    'pass' as const,
    'cut off' as const,
    'back' as const,
    'reload' as const,
  ),
})

/** What the newest look at each balancer truly met; no number where it failed. */
function watchTruth(lb: FakeProvider): () => number {
  let met = Number.NaN
  const observe = lb.observe.bind(lb)
  lb.observe = async (refs, ctx) => {
    met = Number.NaN
    const snapshot = await observe(refs, ctx)
    met = lb.load(bare)
    return snapshot
  }
  return () => met
}

test('idle is never said of two balancers while one holds work', async () => {
  let idle = 0
  await fc.assert(
    fc.asyncProperty(
      fc.array(happening, { maxLength: 25 }),
      fc.boolean(),
      async (happenings, seal) => {
        const { clock, all, ...parts } = setUp({}, { a: FEWER, b: FEWER })
        const truth = { a: watchTruth(parts.a), b: watchTruth(parts.b) }
        const ends: Record<'a' | 'b', (() => void)[]> = { a: [], b: [] }
        const policy = { timeout: '2m', onOverrule: 'reapply', onUnreachable: 'wait' } as const
        const run = startDrain(all, [a1, b1], { clock, seal, ...policy })
        let said: readonly (readonly [number, number])[] | undefined
        void run.done.then(({ outcome }) => {
          if (outcome === 'idle') said = [[truth.a(), truth.b()]]
        })
        for (const { after, where, what } of happenings) {
          await clock.advance(after)
          const lb = parts[where]
          if (what === 'work') ends[where].push(lb.occupy(bare))
          else if (what === 'end') ends[where].pop()?.()
          else if (what === 'pass') lb.arrive(bare)
          else if (what === 'cut off') lb.disconnect()
          else if (what === 'back') lb.connect()
          else lb.reload()
        }
        for (const lb of [parts.a, parts.b]) lb.connect()
        for (const end of [...ends.a, ...ends.b]) end()
        const report = await clock.runUntil(run.done)
        expect(report.outcome).not.toBe('aborted')
        if (report.outcome === 'idle') {
          idle += 1
          expect(said).toEqual([[0, 0]])
          expect(report.members.map(({ ref }) => ref.balancer)).toEqual(['a', 'b'])
        }
        await clock.runUntil(run.restore())
        expect([parts.a.state(bare), parts.b.state(bare)]).toEqual(['ready', 'ready'])
        await all.close()
      },
    ),
    { numRuns: 120 },
  )
  expect(idle).toBeGreaterThan(40)
}, 120_000)
