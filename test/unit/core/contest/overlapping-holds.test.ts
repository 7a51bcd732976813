import { describe, expect, test } from 'vitest'
import { ready, restore, startDrain, type Drain } from 'drainable'
import type { FakeClock, FakeProvider } from 'drainable/testing'
import { memoryStore, rig } from '../rig.js'
import { only, web1 } from '../set-up.js'

interface Overlap {
  readonly clock: FakeClock
  readonly lb: FakeProvider
  /** Holds web1 at drain. */
  readonly low: Drain
  /** Began later, found it so, and holds it at maint. */
  readonly high: Drain
  readonly tickets: ReturnType<typeof memoryStore>
}

/** Two drains of one process hold one member: the later one holds it in a higher state. */
async function overlap(): Promise<Overlap> {
  const { clock, lb } = rig()
  const tickets = memoryStore()
  const policy = { clock, timeout: '1m', settle: '0ms', tickets } as const
  const low = startDrain(lb, web1, { ...policy, seal: false, id: 'low' })
  await clock.runUntil(low.done)
  const high = startDrain(lb, web1, { ...policy, seal: true, id: 'high' })
  await clock.runUntil(high.done)
  expect(lb.state(web1)).toBe('maint')
  return { clock, lb, low, high, tickets }
}

const HELD = [expect.objectContaining({ code: 'held' })]

describe('of two drains that hold a member at two states', () => {
  test('an undo of the lower one leaves the higher one alone, and names it', async () => {
    const { clock, lb, low, high } = await overlap()
    const undone = await clock.runUntil(low.restore())
    expect(only(undone)).toMatchObject({ outcome: 'restored', wasAdmin: 'ready', why: HELD })
    await clock.advance(5_000)
    expect(lb.state(web1)).toBe('maint')
    await clock.runUntil(high.restore())
    expect(lb.state(web1)).toBe('ready')
    await Promise.all([low.release(), high.release()])
  })

  test('an undo of the higher one leaves the hold of the lower one', async () => {
    const { clock, lb, low, high } = await overlap()
    const undone = await clock.runUntil(high.restore())
    expect(only(undone)).toMatchObject({ outcome: 'restored', why: HELD })
    expect(lb.state(web1)).toBe('maint') // not lowered while one is left
    lb.reload()
    await clock.advance(1_000)
    expect(lb.state(web1)).toBe('drain') // put back: it is held still
    await clock.runUntil(low.restore())
    expect(lb.state(web1)).toBe('ready')
    await Promise.all([low.release(), high.release()])
  })

  test('an undo of the lower one by its ticket leaves the higher one alone', async () => {
    const { clock, lb, low, high, tickets } = await overlap()
    await low.release()
    const ticket = tickets.map.get('low')
    const undone = await clock.runUntil(restore(lb, ticket as never, { clock }))
    expect(only(undone)).toMatchObject({ outcome: 'restored', why: HELD })
    expect(lb.state(web1)).toBe('maint')
    await clock.runUntil(high.restore())
    expect(lb.state(web1)).toBe('ready')
  })

  test('an undo of the lower one leaves a hold under way', async () => {
    const { clock, lb } = rig()
    const policy = { clock, timeout: '1m', settle: '0ms' } as const
    const low = startDrain(lb, web1, { ...policy, seal: false })
    await clock.runUntil(low.done)
    lb.failNext('hang-after', { verb: 'apply', late: 50 })
    const high = startDrain(lb, web1, { ...policy, hold: 'maint' })
    await clock.advance(20)
    const undone = await clock.runUntil(low.restore())
    expect(only(undone)).toMatchObject({ outcome: 'restored', why: HELD })
    await clock.advance(50_000)
    expect(lb.state(web1)).toBe('maint')
    await clock.runUntil(high.restore())
    expect(lb.state(web1)).toBe('ready')
    await Promise.all([low.release(), high.release()])
  })

  test('an undo of one leaves the hold that the other one put back', async () => {
    const { clock, lb } = rig()
    const policy = { clock, timeout: '1m', settle: '0ms', seal: false } as const
    const one = startDrain(lb, web1, { ...policy, onOverrule: 'reapply' })
    await clock.runUntil(one.done)
    lb.failNext('hang', { verb: 'apply' })
    const two = startDrain(lb, web1, policy)
    await clock.advance(200)
    lb.setBehind(web1, 'ready') // by an operator, and one puts it back
    await clock.advance(40_000) // once the other call is given up
    expect(lb.state(web1)).toBe('drain')
    const undone = await clock.runUntil(two.restore(), 120_000)
    expect(only(undone)).toMatchObject({ outcome: 'restored', why: HELD })
    await clock.advance(30_000)
    expect(lb.state(web1)).toBe('drain')
    await clock.runUntil(one.restore())
    expect(lb.state(web1)).toBe('ready')
  })

  test.each([
    ['the lower one first', ['low', 'high']],
    ['the higher one first', ['high', 'low']],
  ] as const)('two undos at the same moment open it: %s', async (_, order) => {
    const { clock, lb, low, high } = await overlap()
    const drains = { low, high }
    const undone = order.map((one) => drains[one].restore())
    const reports = await clock.runUntil(Promise.all(undone))
    expect(lb.state(web1)).toBe('ready')
    const lower = reports[order.indexOf('low')]!
    expect(only(lower).outcome).toBe('restored')
    await clock.advance(30_000)
    expect(lb.state(web1)).toBe('ready')
    await Promise.all([low.release(), high.release()])
  })

  test('ready() opens it, whoever holds it', async () => {
    const { clock, lb, low, high } = await overlap()
    await clock.runUntil(ready(lb, web1, { clock }))
    expect(lb.state(web1)).toBe('ready')
    await Promise.all([low.release(), high.release()])
  })
})
