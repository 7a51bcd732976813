import { expect, test } from 'vitest'
import { DrainableError, ready, startDrain } from 'drainable'
import { only, web1 } from '../set-up.js'
import { anotherObject, isHold, loseAnswer, rig } from '../rig.js'

test('ready() waits for the late holds of all ended runs', async () => {
  const { clock, lb } = rig({ capabilities: { lateBound: 10_000 } })
  lb.occupy(web1)
  loseAnswer(lb, clock, isHold, 6_000)
  loseAnswer(lb, clock, isHold, 2_000) // this one is lost first
  const first = startDrain(lb, web1, { clock, timeout: '10m' })
  await clock.advance(0)
  const second = startDrain(lb, web1, { clock, timeout: '10m' })
  await clock.advance(200) // the hold is sent again, and lost again
  await second.release()
  await first.release()
  await clock.runUntil(ready(lb, web1, { clock }), 120_000)
  await clock.advance(60_000)
  expect(lb.state(web1)).toBe('ready')
})

test('an undo ends once the late hold of a later drain holds, which opens it', async () => {
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
  const undone = only(await clock.runUntil(first.restore(), 120_000))
  expect([undone.outcome, undone.why[0]?.code, lb.state(web1)]).toEqual([
    'restored',
    'held',
    'drain',
  ])
  const opened = only(await clock.runUntil(second.restore(), 120_000))
  await clock.advance(60_000)
  expect([opened.outcome, lb.state(web1)]).toEqual(['restored', 'ready'])
  await second.release()
})
