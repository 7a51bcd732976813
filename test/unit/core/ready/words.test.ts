import { describe, expect, test } from 'vitest'
import { drain, ready, startDrain, type DrainEvent } from 'drainable'
import { setUp, thrown, web1 } from '../set-up.js'
import { anotherObject, rig } from '../rig.js'

describe('ready()', () => {
  test.each(['drain', 'maint'] as const)('refuses a member that inherits %s', async (inherited) => {
    const { clock, lb } = setUp()
    lb.setInherited(web1, inherited)
    const error = await clock.runUntil(thrown(ready(lb, web1, { clock })))
    expect(error).toMatchObject({ code: 'CONFLICT' })
    expect((error as Error).message).toContain(`it is ready itself, but inherits '${inherited}'`)
  })

  test('without an end waits for health for as long as it takes', async () => {
    const { clock, lb } = setUp()
    await clock.runUntil(drain(lb, web1, { clock }))
    lb.setHealth(web1, 'down')
    let isOver = false
    const opening = ready(lb, web1, { clock, waitHealthy: true, timeout: Infinity })
    void opening.finally(() => (isOver = true))
    await clock.advance(600_000)
    expect([isOver, lb.state(web1)]).toEqual([false, 'drain'])
    lb.setHealth(web1, 'up')
    await clock.runUntil(opening)
    expect(lb.state(web1)).toBe('ready')
  })
})

describe('a later call that wants the opposite', () => {
  test('of a drain is named in its words', async () => {
    const { clock, lb } = rig()
    lb.occupy(web1)
    const drained = startDrain(lb, web1, { clock, timeout: '1m' })
    await clock.runUntil(drained.inForce)
    await clock.runUntil(ready(lb, web1, { clock }))
    const { members } = await clock.runUntil(drained.done)
    expect(members[0]?.error?.message).toMatch(/was made ready by .* while it was drained/)
  })

  test('of a ready() is named in its words', async () => {
    const { clock, lb } = rig()
    await clock.runUntil(drain(lb, web1, { clock }))
    lb.setHealth(web1, 'down')
    const opening = thrown(ready(lb, web1, { clock, waitHealthy: '1m' }))
    await clock.advance(1_000)
    const drained = startDrain(lb, web1, { clock, timeout: '1m' })
    const error = await clock.runUntil(opening)
    expect((error as Error).message).toMatch(/was drained by .* while it was made ready/)
    await clock.runUntil(drained.done)
  })
})

test('a failed look is told to all calls through its object', async () => {
  const { clock, lb } = rig()
  lb.occupy(web1)
  let fails = false
  const other = anotherObject(lb, (verb) => {
    if (fails && verb === 'observe') throw new Error('a cable')
  })
  const told = { here: 0, there: 0 }
  const count = (where: keyof typeof told) => (event: DrainEvent) => {
    if (event.type === 'fault') told[where] += 1
  }
  const drains = [
    startDrain(lb, web1, { clock, timeout: '1m', onEvent: count('here') }),
    startDrain(other, web1, { clock, timeout: '1m', onEvent: count('there') }),
  ]
  await clock.advance(1_000)
  fails = true
  await clock.advance(5_000)
  expect(told.there).toBeGreaterThan(0)
  expect(told.here).toBe(0)
  for (const one of drains) await clock.runUntil(one.release())
})

test('a drain that was not idle in time says what would help', async () => {
  const { clock, lb } = rig()
  lb.occupy(web1)
  const error = await clock.runUntil(thrown(drain(lb, web1, { clock, timeout: '5s' })))
  expect((error as Error).message).toMatch(/1 in flight.*; .*the timeout bounds the wait/)
})
