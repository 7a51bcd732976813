import { describe, expect, it } from 'vitest'
import { ready, startDrain } from 'drainable'
import { isHold, loseAnswer, rig } from '../rig.js'
import { web1 } from '../set-up.js'
import { flush, settled } from '../settled.js'

describe('an undo under a lateBound longer than its own limit', () => {
  for (const lateBound of [10_000, 29_000, 60_000]) {
    it(`restore() waits for lateBound ${lateBound}`, async () => {
      const { clock, lb } = rig({ capabilities: { lateBound } })
      loseAnswer(lb, clock, isHold, 1_000)
      const h = startDrain(lb, web1, { clock, timeout: '2m' })
      await flush()
      await clock.advance(0)
      const r = await settled(clock, h.restore(), 300_000)
      await clock.advance(100_000)
      expect([(r as { outcome: string }).outcome, lb.state(web1)]).toEqual(['restored', 'ready'])
    })
    it(`never came; restore() waits for lateBound ${lateBound}`, async () => {
      const { clock, lb } = rig({ capabilities: { lateBound } })
      loseAnswer(lb, clock, isHold)
      const h = startDrain(lb, web1, { clock, timeout: '2m' })
      await flush()
      await clock.advance(0)
      const r = await settled(clock, h.restore(), 300_000)
      expect([(r as { outcome: string }).outcome, lb.state(web1)]).toEqual(['restored', 'ready'])
    })
    it(`ready() waits for lateBound ${lateBound}`, async () => {
      const { clock, lb } = rig({ capabilities: { lateBound } })
      loseAnswer(lb, clock, isHold)
      const h = startDrain(lb, web1, { clock, timeout: '2m' })
      await flush()
      await clock.advance(0)
      const r = await settled(clock, ready(lb, web1, { clock }), 300_000)
      expect(r instanceof Error ? r : 'ok').toEqual('ok')
      await h.release()
    })
  }
})

describe('ready() on its way out of maint', () => {
  it('waits for a lost hold to the state between', async () => {
    const { clock, lb } = rig({ capabilities: { lateBound: 10_000 } })
    loseAnswer(lb, clock, isHold, 5_000)
    await using run = startDrain(lb, web1, { clock, timeout: '2m' })
    await flush()
    await clock.advance(0)
    lb.setBehind(web1, 'maint')
    await settled(clock, ready(lb, web1, { clock }), 300_000)
    await run.release()
    await clock.advance(20_000)
    expect(lb.state(web1)).toBe('ready')
  })
})
