import { expect, test } from 'vitest'
import { startDrain } from 'drainable'
import { web1 } from '../set-up.js'
import { anotherObject, isSeal, rig } from '../rig.js'

test('a forgotten hold is put back although a change of another drain hangs', async () => {
  const { clock, lb } = rig()
  const apply = lb.apply.bind(lb)
  let hangs = true
  lb.apply = (changes, ctx) => {
    if (!hangs || !changes.some(isSeal)) return apply(changes, ctx)
    hangs = false
    return new Promise(() => undefined)
  }
  const sealing = startDrain(lb, web1, { clock, timeout: '10m' })
  const other = startDrain(anotherObject(lb), web1, { clock, timeout: '10m', seal: false })
  await clock.runUntil(other.done)
  lb.reload()
  await clock.advance(7_000) // the call could take 30 s
  expect(lb.state(web1)).not.toBe('ready')
  await clock.runUntil(Promise.all([sealing.release(), other.release()]))
})
