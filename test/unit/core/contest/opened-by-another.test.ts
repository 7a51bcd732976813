import { describe, expect, test } from 'vitest'
import { startDrain, type Drain } from 'drainable'
import { only, web1 } from '../set-up.js'
import { ofKind, recordChanges, rig } from '../rig.js'

/** web1 was drained by an operator, raised to maint by one drain, and is waited for by another one. */
describe('a drain of a member whose other drain is undone', () => {
  test.each([
    ['restore() of its handle', (first: Drain) => void first.restore().catch(() => undefined)],
    ['an abort', (_: Drain, controller: AbortController) => controller.abort(new Error('enough'))],
  ])('goes on, and nothing is sent under it: %s', async (_, undo) => {
    const { clock, lb } = rig()
    lb.setBehind(web1, 'drain')
    const end = lb.occupy(web1)
    const controller = new AbortController()
    const policy = { timeout: '10m', hold: 'maint', onAbort: 'restore' } as const
    const first = startDrain(lb, web1, { clock, ...policy, signal: controller.signal })
    await clock.runUntil(first.inForce)
    const second = startDrain(lb, web1, { clock, timeout: '10m' })
    await clock.runUntil(second.inForce)
    const sent = recordChanges(lb, clock)
    undo(first, controller)
    await clock.advance(200)
    end()
    const report = await clock.runUntil(second.done, 60_000)
    expect(only(report)).toMatchObject({ outcome: 'idle', verifiedIdle: true })
    expect(ofKind(sent, 'restore')).toEqual([])
    await clock.runUntil(second.restore())
    expect(lb.state(web1)).toBe('drain') // what the operator had set
  })
})
