import { describe, expect, test } from 'vitest'
import { DrainableError, startDrain } from 'drainable'
import { only, web1 } from '../set-up.js'
import { rig } from '../rig.js'

describe('a hold that could not be sent to the balancer', () => {
  test('ends as unreachable if looks fail too', async () => {
    const { clock, lb } = rig()
    const error = new DrainableError('UNREACHABLE', 'nothing listens there', { retryable: true })
    lb.failNext('reject', { verb: 'apply', times: 1_000, error })
    await using run = startDrain(lb, web1, { clock, timeout: '4s' })
    const once = run.once('fault', () => lb.failNext('throw', { verb: 'observe', times: 1_000 }))
    expect(once).toBe(run)
    const report = only(await clock.runUntil(run.done))
    expect(report).toMatchObject({ outcome: 'unreachable', verifiedIdle: false })
    expect(lb.state(web1)).toBe('ready')
  })

  test('ends as refused if the balancer answers looks', async () => {
    const { clock, lb } = rig()
    const error = new DrainableError('UNREACHABLE', 'its unit is gone', { retryable: true })
    lb.failNext('reject', { verb: 'apply', times: 1_000, error })
    await using run = startDrain(lb, web1, { clock, timeout: '4s' })
    expect(only(await clock.runUntil(run.done))).toMatchObject({ outcome: 'refused', error })
  })
})
