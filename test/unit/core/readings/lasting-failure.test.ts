import { describe, expect, test } from 'vitest'
import { DrainableError, startDrain, watch } from 'drainable'
import type { FakeProvider } from 'drainable/testing'
import { recorder, web1 } from '../set-up.js'
import { rig } from '../rig.js'

/** From now on every look fails as it does where a certificate ran out; returns how to renew it. */
function expire(lb: FakeProvider): () => void {
  const observe = lb.observe.bind(lb)
  lb.observe = () => {
    const words = 'certificate has expired'
    return Promise.reject(new DrainableError('UNREACHABLE', words, { retryable: false }))
  }
  return () => {
    lb.observe = observe
  }
}

// A failure called permanent may pass nevertheless: no part of a run may end silently because of it.
describe('looks that seem to fail for good', () => {
  test('are told, and the drain goes on once they succeed', async () => {
    const { clock, lb } = rig()
    const end = lb.occupy(web1)
    const seen = recorder()
    const run = startDrain(lb, web1, { clock, timeout: '10m', onEvent: seen.onEvent })
    await clock.advance(2_000)
    const renew = expire(lb)
    await clock.advance(20_000)
    expect(seen.of('fault').at(-1)?.error.message).toContain('certificate has expired')
    expect(run.why().map(({ code }) => code)).toContain('unreadable')
    renew()
    end()
    expect((await clock.runUntil(run.done, 120_000)).outcome).toBe('idle')
    await run.release()
  })

  test('do not end a held drain while its action runs', async () => {
    const { clock, lb } = rig()
    const seen = recorder()
    const run = startDrain(lb, web1, { clock, timeout: '10m', onEvent: seen.onEvent })
    await clock.runUntil(run.done, 60_000)
    const renew = expire(lb)
    await clock.advance(20_000)
    expect(seen.of('fault').length).toBeGreaterThan(0)
    lb.reload()
    expect(lb.state(web1)).toBe('ready')
    renew()
    await clock.advance(120_000)
    expect(lb.state(web1)).not.toBe('ready')
    await run.release()
  })

  test('do not end a watch', async () => {
    const { clock, lb } = rig()
    const seen = recorder()
    const run = watch(lb, web1, { clock, onEvent: seen.onEvent })
    await clock.advance(1_000)
    const renew = expire(lb)
    await clock.advance(20_000)
    renew()
    lb.setBehind(web1, 'drain')
    await clock.advance(120_000)
    expect(seen.types()).toContain('idle')
    await run.release()
  })
})
