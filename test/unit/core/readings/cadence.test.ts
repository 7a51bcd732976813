import { describe, expect, test } from 'vitest'
import { nextPause } from '../../../../src/core/balancer/look/cadence.js'

const local = { due: null, cost: 0.3, floor: 0, failures: 0 }

describe('the pause before the next look', () => {
  test.each([
    ['a look on a local socket', {}, 10],
    ['a look on the socket of a loaded machine', { cost: 0.6 }, 10],
    ['a dearer one', { cost: 5.3 }, 150],
    ['one of an appliance', { cost: 80 }, 1_000],
    ['one that takes a second itself', { cost: 1_000 }, 4_000],
    ['the floor of the provider', { floor: 4_000 }, 4_000],
    ['what is due sooner', { due: 4 }, 4],
    ['what is due now', { due: 0 }, 1.2],
    ['what is due later', { due: 700 }, 10],
    ['what is due, where looks are dear', { cost: 80, due: 4 }, 320],
    [
      'what is due, after a pause before a look of seconds',
      { cost: 2_000, due: 4, rested: 8_000 },
      4,
    ],
    ['what is due, without a pause before it', { cost: 2_000, due: 4, rested: 7_999 }, 8_000],
    ['what is due, where the pause is short', { cost: 80, due: 4, rested: 320 }, 320],
    [
      'what is due after it, and the floor',
      { cost: 2_000, due: 4, rested: 8_000, floor: 250 },
      250,
    ],
    ['a dear look after a pause', { cost: 4_000, rested: 16_000 }, 16_000],
    ['what is due before two looks could come', { cost: 80, due: 1_300 }, 1_300],
    ['what is due just after two looks could come', { cost: 80, due: 1_480 }, 1_000],
    ['what is due where the floor allows no look before', { floor: 2_000, due: 3_900 }, 3_900],
    ['a caller that comes seldom', { fastest: 100 }, 100],
    ['a caller that comes seldom, and something due', { fastest: 100, due: 30 }, 30],
    ['one of two balancers', { lanes: 2 }, 10],
    ['one of fifty balancers', { lanes: 50 }, 200],
    ['one of a thousand balancers', { lanes: 1_000 }, 1_000],
    ['one of fifty balancers, and something due', { lanes: 50, due: 30 }, 30],
    ['one of fifty dear ones', { lanes: 50, cost: 20.3 }, 600],
    ['a look that failed', { failures: 1 }, 100],
    ['looks that fail', { failures: 9 }, 1_000],
  ])('is that of %s', (_, input, pause) => {
    expect(nextPause({ ...local, ...input })).toBe(pause)
  })
})
