import { describe, expect, test } from 'vitest'
import { startDrain } from 'drainable'
import { only, setUp, web1 } from '../set-up.js'

describe('the undo of a drain whose member was replaced', () => {
  test('keeps the words of the drain, which nobody has looked after since', async () => {
    const { clock, lb } = setUp()
    lb.occupy(web1)
    const run = startDrain(lb, web1, { clock, timeout: '1m' })
    await clock.runUntil(run.inForce)
    lb.setIdentity(web1, '10.9.9.9:80')
    const words = only(await clock.runUntil(run.done)).error?.message
    expect(words).toContain('in drain: open it with ready()')
    const undone = only(await clock.runUntil(run.restore()))
    expect(undone.outcome).toBe('gone')
    expect(undone.error?.message).toBe(words)
  })

  test('does not say that its name is free where it was removed and came back', async () => {
    const { clock, lb } = setUp()
    const run = startDrain(lb, web1, { clock, timeout: '1m', until: 'removed' })
    expect(only(await clock.runUntil(run.done)).outcome).toBe('removed')
    lb.setBehind(web1, 'ready')
    const { error } = only(await clock.runUntil(run.restore()))
    expect(error?.message).toContain('was taken out of its pool')
    expect(error?.message).toContain('is a new one')
  })
})
