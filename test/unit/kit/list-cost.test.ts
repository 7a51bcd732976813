import { expect, test } from 'vitest'
import { ListCost, Spending } from '../../../src/kit/look-cost.js'

/** After a list of so many objects that took so long and so many bytes, and a request of some milliseconds. */
async function listed(count: number, ms: number, bytes: number, single = 5): Promise<ListCost> {
  const spending = new Spending()
  const cost = new ListCost(spending)
  spending.note(single, 500)
  await cost.of(
    () => {
      spending.note(ms, bytes)
      return Promise.resolve(count)
    },
    (found) => found,
  )
  return cost
}

test('a list of unknown cost is not read for a few objects', () => {
  expect([7, 16, 17, 300].map((count) => new ListCost(new Spending()).pays(count))).toEqual([
    ...[false, false, true, true],
  ])
})

test('a large list is not read for seven objects of a thousand', async () => {
  const cost = await listed(1_000, 300, 4_000_000)
  expect([7, 40, 1_000].map((count) => cost.pays(count))).toEqual([false, false, true])
})

test('a small list is read for seven objects of ten', async () => {
  const cost = await listed(10, 20, 40_000, 20)
  expect(cost.pays(7)).toBe(true)
})

test('a slow list is not read, however small', async () => {
  const cost = await listed(40, 9_000, 10_000, 50)
  expect(cost.pays(40)).toBe(false)
})

test('a list that was slow once is read again after a while', async () => {
  const cost = await listed(40, 9_000, 10_000, 50)
  let asked = 0
  while (!cost.pays(40)) asked += 1
  expect(asked).toBeGreaterThan(50)
  expect(asked).toBeLessThan(200)
})

test('a list that is large is not read for a few, however long it was not read', async () => {
  const cost = await listed(1_000, 300, 4_000_000)
  expect(Array.from({ length: 5_000 }, () => cost.pays(7))).not.toContain(true)
})
