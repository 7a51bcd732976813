import { describe, expect, it } from 'vitest'
import { ready, startDrain } from 'drainable'
import { rig } from '../rig.js'
import { web1 } from '../set-up.js'
import { flush, settled, unhandledRejections } from '../settled.js'

const unhandled = unhandledRejections()

describe('an error without a prototype', () => {
  const odd = (): unknown => Object.create(null)
  it('from apply() is a lost answer', async () => {
    const { clock, lb } = rig()
    const apply = lb.apply.bind(lb)
    let n = 0
    lb.apply = (c, x) => (n++ === 0 ? Promise.reject(odd()) : apply(c, x))
    await using h = startDrain(lb, web1, { clock })
    const r = await settled(clock, h.done)
    await flush()
    expect({ o: (r as { outcome?: string }).outcome ?? r, unhandled }).toEqual({
      o: 'idle',
      unhandled: [],
    })
  })
  it('from waitHealthy is a failed check', async () => {
    const { clock, lb } = rig()
    lb.setBehind(web1, 'drain')
    const r = await settled(
      clock,
      ready(lb, web1, { clock, waitHealthy: () => Promise.reject(odd()) }),
    )
    expect({ c: (r as { code?: string }).code ?? r, unhandled }).toEqual({
      c: 'HEALTH_TIMEOUT',
      unhandled: [],
    })
  })
  it('from onTicket refuses the drain', async () => {
    const { clock, lb } = rig()
    const h = startDrain(lb, web1, { clock, onTicket: () => Promise.reject(odd()) })
    const r = await settled(clock, h.done)
    expect({ o: (r as { outcome?: string }).outcome ?? r, unhandled }).toEqual({
      o: 'refused',
      unhandled: [],
    })
  })
  it('from describe() refuses the drain', async () => {
    const { clock, lb } = rig()
    lb.describe = () => Promise.reject(odd())
    await using h = startDrain(lb, web1, { clock })
    const r = await settled(clock, h.done)
    expect({ o: (r as { outcome?: string }).outcome ?? r, unhandled }).toEqual({
      o: 'refused',
      unhandled: [],
    })
  })
})
