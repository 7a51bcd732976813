import { expect, test } from 'vitest'
import { RecentMap } from '../../../src/kit/recent-map.js'

const HOUR = 3_600_000

function stage() {
  let now = 0
  const map = new RecentMap<string, number>(() => now)
  return { map, pass: (ms: number) => (now += ms) }
}

test('an entry is forgotten an hour after its last use', () => {
  const { map, pass } = stage()
  map.set('stays', 1)
  for (let i = 0; i < 24 * 60; i++) {
    pass(60_000)
    map.set(`pod-${i}`, i)
    expect(map.get('stays')).toBe(1)
  }
  expect(map.size).toBeLessThanOrEqual(63)
  expect(map.keys()).toContain('pod-1400')
})

test('a pause of all uses forgets only what is not used after it', () => {
  const { map, pass } = stage()
  map.set('a', 1)
  map.set('b', 2)
  map.set('c', 3)
  pass(5 * HOUR)
  map.set('a', 1)
  expect([map.get('b'), map.size]).toEqual([2, 3])
  pass(60_000)
  map.set('a', 1)
  expect(map.keys()).toEqual(['a', 'b'])
})
