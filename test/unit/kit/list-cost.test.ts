import { expect, test } from 'vitest'
import { DrainableError } from 'drainable/provider'
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

/** Whether the first list of a device with so many objects is read for each of these numbers. */
function first(size: number | undefined, ...wanted: readonly number[]): Promise<boolean[]> {
  const counted = (): Promise<number | undefined> => Promise.resolve(size)
  return Promise.all(wanted.map((count) => new ListCost(new Spending()).pays(count, counted)))
}

/** After a list was read nothing asks how many there are. */
const unasked = (): Promise<never> => Promise.reject(new Error('asked how many there are'))

test('a first list is read where it costs less by the number of its objects', async () => {
  expect(await first(1_000, 40, 100, 1_000)).toEqual([false, true, true])
  expect(await first(300, 17, 40)).toEqual([false, true])
})

test('a first list is not read for a few objects, and their number not asked for', async () => {
  expect(await new ListCost(new Spending()).pays(16, unasked)).toBe(false)
})

test('a first list is read for a few objects once they were asked for again and again', async () => {
  const cost = new ListCost(new Spending())
  const eight = (): Promise<number> => Promise.resolve(8)
  const pays: boolean[] = []
  for (let look = 0; look < 100; look += 1) pays.push(await cost.pays(8, eight))
  expect([pays[0], pays[99]]).toEqual([false, true])
})

test.each([undefined, 1_000])(
  'a few of %s objects are never read by a first list',
  async (size) => {
    const cost = new ListCost(new Spending())
    let asked = 0
    const counted = (): Promise<number | undefined> => {
      asked += 1
      return Promise.resolve(size)
    }
    for (let look = 0; look < 1_000; look += 1) expect(await cost.pays(8, counted)).toBe(false)
    expect(asked).toBe(1)
  },
)

test('a few objects are asked for one by one where their number may not be asked for', async () => {
  const cost = new ListCost(new Spending())
  const refused = (): Promise<never> =>
    Promise.reject(new DrainableError('FORBIDDEN', 'not by this user'))
  for (let look = 0; look < 100; look += 1) expect(await cost.pays(8, refused)).toBe(false)
})

test('a first list is read by a device that does not tell how many objects it has', async () => {
  expect(await first(undefined, 17)).toEqual([true])
})

test('a large list is not read for seven objects of a thousand', async () => {
  const cost = await listed(1_000, 300, 4_000_000)
  const pays = await Promise.all([7, 40, 1_000].map((count) => cost.pays(count, unasked)))
  expect(pays).toEqual([false, false, true])
})

test('a small list is read for seven objects of ten', async () => {
  const cost = await listed(10, 20, 40_000, 20)
  expect(await cost.pays(7, unasked)).toBe(true)
})

test('a slow list is not read, however small', async () => {
  const cost = await listed(40, 9_000, 10_000, 50)
  expect(await cost.pays(40, unasked)).toBe(false)
})

test('a list that was slow once is read again after a while', async () => {
  const cost = await listed(40, 9_000, 10_000, 50)
  let asked = 0
  while (!(await cost.pays(40, unasked))) asked += 1
  expect(asked).toBeGreaterThan(50)
  expect(asked).toBeLessThan(200)
})

test('a list that is large is not read for a few, however long it was not read', async () => {
  const cost = await listed(1_000, 300, 4_000_000)
  for (let i = 0; i < 5_000; i += 1) expect(await cost.pays(7, unasked)).toBe(false)
})
