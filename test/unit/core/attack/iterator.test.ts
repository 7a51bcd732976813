import { describe, expect, it } from 'vitest'
import { startDrain } from 'drainable'
import { rig } from '../faults/rig.js'
import { web1 } from '../set-up.js'
import { settled } from './tools.js'

describe('iterator', () => {
  it('two next() at once both settle', async () => {
    const { clock, lb } = rig()
    const h = startDrain(lb, web1, { clock })
    const it = h[Symbol.asyncIterator]()
    const all = Promise.all(Array.from({ length: 40 }, () => it.next()))
    await settled(clock, h.done)
    const r = await settled(clock, all, 5_000)
    expect(r).not.toBe('PENDING')
  })
})
