import { expect, test } from 'vitest'
import { startDrain, type Clock } from 'drainable'
import { rig } from '../rig.js'
import { web1 } from '../set-up.js'

/** A clock whose timers come early, as Node's do by a part of a millisecond; none is shorter than one. */
function hasty(clock: Clock, early: number, shortest = 1): Clock {
  return {
    now: () => clock.now(),
    setTimeout: (fn, ms) => clock.setTimeout(fn, Math.max(shortest, ms - early)),
  }
}

/** When the looks of a drain to idle were asked for, in order. */
async function looksOf(early: number, shortest?: number): Promise<readonly number[]> {
  const { clock, lb } = rig()
  const looks: number[] = []
  const observe = lb.observe.bind(lb)
  lb.observe = (refs, ctx) => {
    looks.push(clock.now())
    return observe(refs, ctx)
  }
  const policy = { clock: hasty(clock, early, shortest), timeout: '1m', settle: '0ms' } as const
  const run = startDrain(lb, web1, policy)
  expect((await clock.runUntil(run.done)).outcome).toBe('idle')
  const asked = [...looks]
  await run.release()
  return asked
}

test('a timer that comes too early costs no look', async () => {
  expect((await looksOf(0.4)).length).toBe((await looksOf(0)).length)
})

test('nor does one that comes too early again when it is set for the rest', async () => {
  expect((await looksOf(0.4, 0.1)).length).toBe((await looksOf(0)).length)
})

test('a clock whose timers are always early does not stop the looks', async () => {
  expect((await looksOf(5)).length).toBeGreaterThan(2)
})
