import { expect, test } from 'vitest'
import type { DesiredMember } from 'drainable'
import { bench, desired, memoryStore, web } from './set-up.js'

const place = { address: '10.0.0.9', port: 80 }
const fresh: DesiredMember = { pool: 'web', member: 'n', ...place, state: 'serve' }
const others = desired({ a: 'serve', b: 'serve' })
const owns = (): boolean => false

test('a list is written again by the next look where writing it once more failed', async () => {
  const at = bench('a', 'b')
  const store = memoryStore()
  let isFirst = true
  let failGet = false
  const tickets = {
    ...store,
    get: async (key: string): Promise<unknown> => {
      if (failGet && key.startsWith('drainable=added=')) {
        failGet = false
        throw new Error('no store for a moment')
      }
      return store.get(key)
    },
    set: async (key: string, value: unknown): Promise<void> => {
      const isHung = isFirst && key.startsWith('drainable=added=')
      if (isHung) {
        isFirst = false
        await new Promise<void>((resolve) => void at.clock.setTimeout(resolve, 40_000))
      }
      await store.set(key, value)
      if (isHung) failGet = true
    },
  }
  await using loop = at.start({ owns, tickets })
  loop.set([...others, fresh])
  await at.clock.advance(31_000)
  loop.set([...others, { ...fresh, member: 'm', address: '10.0.0.10' }])
  await at.clock.advance(29_000)
  await at.clock.advance(300_000)
  const list = [...store.kept].find(([key]) => key.startsWith('drainable=added='))?.[1]
  expect(at.lb.state(web('m'))).toBe('ready')
  expect(list).toMatchObject({
    added: [['10.0.0.10', 80, expect.any(String), null, expect.any(String)]],
  })
})
