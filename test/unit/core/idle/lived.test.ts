import { describe, expect, it } from 'vitest'
import { startDrain } from 'drainable'
import { rig, showAs } from '../rig.js'
import { web1 } from '../set-up.js'
import { flush, settled } from '../settled.js'

describe('a clock of the product (lived)', () => {
  it('that is missing after a freeze makes slow answers count', async () => {
    const { clock, lb } = rig({ capabilities: { blind: 2_000 } })
    let lived: number | undefined = 5_000
    let base = clock.now()
    showAs(lb, (r) => ({
      ...r,
      scopes: r.scopes.map((s) => ({
        ...s,
        ...(lived === undefined ? {} : { lived: lived + clock.now() - base }),
      })),
    }))
    const observe = lb.observe.bind(lb)
    let slow = 0
    lb.observe = async (a, c) => {
      if (slow > 0) {
        const s = slow
        slow = 0
        base += s
        await new Promise<void>((r) => void clock.setTimeout(r, s))
      }
      return observe(a, c)
    }
    await using h = startDrain(lb, web1, { clock, seal: false, timeout: '2m' })
    await flush()
    await clock.advance(200)
    expect(lb.state(web1)).toBe('drain')
    // product stands still for 10 s: one look takes that long; its clock does not move; then its clock can't be read
    slow = 10_000
    await clock.advance(10_100)
    lived = undefined
    const t0 = clock.now()
    const r = await settled(clock, h.done)
    // the product lived ~200 ms of the 2 s blind
    expect((r as { outcome: string }).outcome).toBe('idle')
    expect(clock.now() - t0).toBeGreaterThan(1_500)
  })
  it('that goes back still lets the drain end idle', async () => {
    const { clock, lb } = rig({ capabilities: { blind: 2_000 } })
    let offset = 864_000_000
    showAs(lb, (r) => ({
      ...r,
      scopes: r.scopes.map((s) => ({ ...s, lived: offset + clock.now() })),
    }))
    await using h = startDrain(lb, web1, { clock, seal: false, timeout: '2m' })
    await flush()
    await clock.advance(500)
    offset = 0
    const r = await settled(clock, h.done, 200_000)
    expect((r as { outcome: string }).outcome).toBe('idle')
  })
})
