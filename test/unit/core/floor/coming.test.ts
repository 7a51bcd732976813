import { expect, test, vi } from 'vitest'
import { fakeClock } from 'drainable/testing'
import {
  noteComing,
  stillComing,
  takeComing,
  type ComingHolds,
} from '../../../../src/core/runner/balancer/coming.js'
import { web1, web2 } from '../set-up.js'
import { flush, unhandledRejections } from '../settled.js'

const KEY = 'fake\0one'

const rejections = unhandledRejections()

/** A call that goes on until it is told to end. */
function call(): { readonly done: Promise<void>; readonly end: () => void } {
  let end = (): void => undefined
  const done = new Promise<void>((resolve) => (end = resolve))
  return { done, end }
}

test('a hold without an answer may come until its time is over', async () => {
  const clock = fakeClock(1_000)
  const holds: ComingHolds = new Map()
  noteComing(holds, KEY, web1, { clock, until: 1_200, lateBound: 200 }, [])
  expect(stillComing(holds, KEY)).toEqual([web1])
  await clock.advance(199)
  expect(stillComing(holds, KEY)).toEqual([web1])
  await clock.advance(1)
  expect(stillComing(holds, KEY)).toEqual([])
  expect(holds.size).toBe(0)
})

test('its time begins when its call has ended', async () => {
  const clock = fakeClock(1_000)
  const holds: ComingHolds = new Map()
  const one = call()
  noteComing(holds, KEY, web1, { clock, until: 1_200, lateBound: 200 }, [one.done])
  await clock.advance(60_000)
  expect(stillComing(holds, KEY)).toEqual([web1])
  one.end()
  await flush()
  await clock.advance(199)
  expect(stillComing(holds, KEY)).toEqual([web1])
  await clock.advance(1)
  expect(stillComing(holds, KEY)).toEqual([])
})

test('two of one member stay two, and another run takes both over', () => {
  const clock = fakeClock(1_000)
  const holds: ComingHolds = new Map()
  noteComing(holds, KEY, web1, { clock, until: 900, lateBound: 200 }, [call().done])
  noteComing(holds, KEY, web1, { clock, until: 900, lateBound: 200 }, [])
  noteComing(holds, KEY, web2, { clock, until: 1_200, lateBound: 200 }, [])
  expect(stillComing(holds, KEY)).toEqual([web1, web2])
  takeComing(holds, KEY, web1)
  expect(stillComing(holds, KEY)).toEqual([web2])
  expect(stillComing(holds, 'fake\0another')).toEqual([])
})

test('a clock that throws ends no other run and keeps no place for ever', async () => {
  const own = fakeClock(1_000)
  let isBroken = false
  const clock = {
    now: () => {
      if (isBroken) throw new Error('the clock is broken')
      return own.now()
    },
  }
  const holds: ComingHolds = new Map()
  const one = call()
  noteComing(holds, KEY, web1, { clock, until: 1_200, lateBound: 60_000 }, [one.done])
  noteComing(holds, KEY, web2, { clock, until: 1_200, lateBound: 0 }, [])
  isBroken = true
  one.end()
  await flush()
  expect(rejections).toEqual([])
  await vi.waitFor(() => expect(stillComing(holds, KEY)).toEqual([web1]))
})
