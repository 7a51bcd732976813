import { describe, expect, test } from 'vitest'
import { startDrain, type Reading } from 'drainable'
import type { FakeProvider } from 'drainable/testing'
import { a1, b1, bare, setUp } from './set-up.js'

const OLD = 300

/** A product that counts every 300 ms: what it says in between is as old as its last count. */
function countSeldom(lb: FakeProvider): { newest: number } {
  const observe = lb.observe.bind(lb)
  const shown = { newest: -Infinity }
  let counted: { readonly at: number; readonly scopes: Reading['scopes'] } | undefined
  lb.observe = async (refs, ctx) => {
    const snapshot = await observe(refs, ctx)
    const now = ctx.clock.now()
    const [first] = snapshot.readings
    if (first !== undefined && (counted === undefined || now - counted.at >= OLD))
      counted = { at: now, scopes: first.scopes }
    const { at, scopes } = counted ?? { at: now, scopes: [] }
    shown.newest = at
    return { ...snapshot, readings: snapshot.readings.map((one) => ({ ...one, scopes })) }
  }
  return shown
}

function seldom() {
  const capabilities = { freshness: OLD, minInterval: 20 }
  const { clock, a, b, all } = setUp(
    {},
    { a: { capabilities: { minInterval: 20 } }, b: { capabilities } },
  )
  return { clock, a, b, all, shown: countSeldom(b) }
}

describe('a balancer whose counts are old when they are read', () => {
  test('was counted after the other became idle', async () => {
    const { clock, a, all, shown } = seldom()
    const end = a.occupy(bare)
    const run = startDrain(all, [a1, b1], { clock, settle: '0ms', timeout: '1m', seal: false })
    await clock.advance(2_130)
    end()
    const ended = clock.now()
    const report = await clock.runUntil(run.done)
    expect(report.outcome).toBe('idle')
    expect(shown.newest).toBeGreaterThanOrEqual(ended)
    await all.close()
  })
})
