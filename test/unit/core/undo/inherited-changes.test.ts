import { expect, test } from 'vitest'
import { DrainableError, drain, ready, startDrain, stepDrain } from 'drainable'
import type { FakeClock, FakeProvider } from 'drainable/testing'
import { only, web1, web2 } from '../set-up.js'
import { isHold, loseAnswer, rig } from '../rig.js'

/** Waits at the floor, and looks meanwhile. */
const WAITING = { timeout: '1m', keepReady: 3, onMinimum: 'wait' } as const

/** The next call with a hold has no answer for `ms`, then is lost, and is carried out `late` after that. */
function loseLater(lb: FakeProvider, clock: FakeClock, ms: number, late: number): void {
  const apply = lb.apply.bind(lb)
  lb.apply = (changes, ctx) => {
    if (!changes.some(isHold)) return apply(changes, ctx)
    lb.apply = apply
    const own = { signal: new AbortController().signal, clock }
    clock.setTimeout(() => void apply(changes, own), ms + late)
    const error = new DrainableError('CONNECTION_LOST', 'the answer was lost')
    return new Promise((_, reject) => void clock.setTimeout(() => reject(error), ms))
  }
}

test('a restore carried out without an answer ends our ownership', async () => {
  const { clock, lb } = rig({
    pools: { web: ['web1', 'web2', 'web3', 'web4'] },
    capabilities: { lateBound: 3_000 },
  })
  lb.occupy(web1)
  const one = startDrain(lb, web1, { clock, timeout: '1m' })
  await clock.advance(300)
  const apply = lb.apply.bind(lb)
  lb.apply = async (changes, ctx) => {
    lb.apply = apply
    await apply(changes, { signal: ctx.signal, clock })
    throw new DrainableError('CONNECTION_LOST', 'the answer was lost')
  }
  void one.restore()
  for (let i = 0; i < 2_000 && lb.state(web1) !== 'ready'; i++) await clock.advance(1)
  lb.setBehind(web2, 'drain')
  const two = startDrain(lb, web1, { clock, ...WAITING, hold: 'maint', onTimeout: 'terminate' })
  await clock.advance(500)
  expect(lb.state(web1)).toBe('ready') // the restore was carried out, and that was seen
  lb.setBehind(web1, 'drain') // by an operator
  lb.setBehind(web2, 'ready') // there is a place now
  await clock.advance(2_000)
  expect(lb.state(web1)).toBe('maint')
  const report = await clock.runUntil(two.restore(), 60_000)
  expect([only(report).outcome, lb.state(web1)]).toEqual(['restored', 'drain'])
  await one.release()
})

test('an inherited hold whose time is over is not taken for carried out', async () => {
  const { clock, lb } = rig({ capabilities: { lateBound: 2_000 } })
  lb.occupy(web1)
  loseAnswer(lb, clock, isHold)
  const one = startDrain(lb, web1, { clock, timeout: '1m' })
  for (let i = 0; i < 100 && lb.state(web1) !== 'drain'; i++) await clock.advance(10)
  await clock.advance(100)
  await one.release() // sent again and applied; the first one is not known yet
  lb.setBehind(web1, 'ready')
  await clock.advance(10_000)
  const two = startDrain(lb, web1, { clock, ...WAITING })
  await clock.advance(500)
  expect(lb.state(web1)).toBe('ready')
  lb.setBehind(web1, 'drain') // by an operator
  await clock.runUntil(two.restore(), 60_000)
  expect(lb.state(web1)).toBe('drain')
})

test('a member whose hold may come keeps its place for the next drain', async () => {
  const { clock, lb } = rig({
    pools: { web: ['web1', 'web2'] },
    capabilities: { lateBound: 10_000 },
  })
  loseAnswer(lb, clock, isHold, 8_000)
  const lost = new AbortController()
  const ended = drain(lb, web2, { clock, timeout: '1m', signal: lost.signal }).catch(
    () => undefined,
  )
  await clock.advance(5)
  lost.abort(new Error('enough'))
  await clock.runUntil(ended)
  // It asks for web1 first, and knows of the hold of web2.
  const both = startDrain(lb, [web1, web2], { clock, timeout: '30s', onMinimum: 'wait' })
  await clock.advance(6_000)
  expect(lb.state(web1)).toBe('ready')
  await clock.runUntil(both.release())
})

test('ready() waits for the hold of a step whose call it waited for', async () => {
  const { clock, lb } = rig({ capabilities: { lateBound: 1_000 } })
  lb.occupy(web1)
  const first = await clock.runUntil(stepDrain(lb, { target: web1, policy: {} }, { clock }))
  loseLater(lb, clock, 2_000, 500)
  const step = stepDrain(lb, first.ticket, { clock }).catch(() => undefined)
  await clock.advance(100)
  await clock.runUntil(ready(lb, web1, { clock }), 60_000)
  await clock.advance(10_000)
  expect(lb.state(web1)).toBe('ready')
  await clock.runUntil(step)
})

test('a restore seen to have come, without an answer, ends our ownership', async () => {
  const { clock, lb } = rig()
  const one = startDrain(lb, web1, { clock, timeout: '1m', settle: '0ms', seal: false })
  await clock.runUntil(one.done)
  lb.failNext('hang-after', { verb: 'apply' })
  void one.restore()
  await clock.advance(1_000)
  expect(lb.state(web1)).toBe('ready')
  const two = startDrain(lb, web1, { clock, timeout: '1m' })
  await clock.advance(1) // it takes the undo over, and waits for that call
  lb.setBehind(web1, 'drain') // by an operator
  await clock.runUntil(two.restore(), 120_000)
  expect(lb.state(web1)).toBe('drain')
  await Promise.all([one.release(), two.release()])
})
