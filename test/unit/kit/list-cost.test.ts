import { expect, test } from 'vitest'
import { ListCost } from '../../../src/kit/list-cost.js'

/** After a list of so many objects that took so many requests, milliseconds and bytes. */
async function listed(count: number, requests: number, ms: number, bytes: number) {
  const spent = [
    { requests: 5, ms: 900, bytes: 7_000 },
    { requests: 5 + requests, ms: 900 + ms, bytes: 7_000 + bytes },
  ]
  const cost = new ListCost()
  await cost.of(
    () => spent.shift()!,
    () => Promise.resolve(count),
    (found) => found,
  )
  return cost
}

test('a list of unknown cost is not read for a few objects', () => {
  expect([7, 16, 17, 300].map((count) => new ListCost().pays(count, 5))).toEqual([
    ...[false, false, true, true],
  ])
})

test('a large list is not read for seven objects of a thousand', async () => {
  const cost = await listed(1_000, 1, 300, 4_000_000)
  expect([7, 40, 1_000].map((count) => cost.pays(count, 5))).toEqual([false, false, true])
})

test('a small list is read for seven objects of ten', async () => {
  const cost = await listed(10, 1, 20, 40_000)
  expect(cost.pays(7, 20)).toBe(true)
})

test('a slow list is not read, however small', async () => {
  const cost = await listed(40, 1, 9_000, 10_000)
  expect(cost.pays(40, 50)).toBe(false)
})
