import { describe, expect, it } from 'vitest'
import { startDrain } from 'drainable'
import { rig } from '../rig.js'
import { web1 } from '../set-up.js'
import { settled } from '../settled.js'

describe('the events of a handle, iterated', () => {
  it('settle every one of many next() calls made at once', async () => {
    const { clock, lb } = rig()
    await using h = startDrain(lb, web1, { clock })
    const it = h[Symbol.asyncIterator]()
    const all = Promise.all(Array.from({ length: 40 }, () => it.next()))
    await settled(clock, h.done)
    const r = await settled(clock, all, 5_000)
    expect(r).not.toBe('PENDING')
  })
})
