import { expect, test } from 'vitest'
import { DrainableError, ready, startDrain } from 'drainable'
import { web1 } from '../set-up.js'
import { anotherObject, isHold, loseAnswer, rig } from '../rig.js'

test('ready() waits for the late holds of all ended runs', async () => {
  const { clock, lb } = rig({ capabilities: { lateBound: 10_000 } })
  lb.occupy(web1)
  loseAnswer(lb, clock, isHold, 6_000)
  loseAnswer(lb, clock, isHold, 2_000) // this one is lost first
  const first = startDrain(lb, web1, { clock, timeout: '10m' })
  await clock.advance(0)
  const second = startDrain(lb, web1, { clock, timeout: '10m' })
  await clock.advance(0)
  await second.release()
  await first.release()
  await clock.runUntil(ready(lb, web1, { clock }), 120_000)
  await clock.advance(60_000)
  expect(lb.state(web1)).toBe('ready')
})

test('an undo waits for its own late hold and that of a later drain', async () => {
  const { clock, lb } = rig({ capabilities: { lateBound: 10_000 } })
  lb.occupy(web1)
  const apply = lb.apply.bind(lb)
  const lost = new DrainableError('CONNECTION_LOST', 'the answer was lost')
  const begun = clock.now()
  lb.apply = (changes, ctx) => {
    if (!changes.some(isHold)) return apply(changes, ctx)
    const own = { signal: new AbortController().signal, clock }
    if (clock.now() >= begun + 11_000) clock.setTimeout(() => void apply(changes, own), 9_500)
    return Promise.reject(lost)
  }
  const first = startDrain(lb, web1, { clock, timeout: '10m' })
  await clock.advance(11_000) // it tries again and again, the last time a while ago
  const second = startDrain(anotherObject(lb), web1, { clock, timeout: '10m' })
  await clock.advance(100)
  await clock.runUntil(first.restore(), 120_000)
  await clock.advance(60_000)
  expect(lb.state(web1)).toBe('ready')
  await second.release()
})
