import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { startDrain, type Policy, type TicketStore } from 'drainable'
import { recorder, web1 } from '../set-up.js'
import { memoryStore, rig } from '../rig.js'

let uncaught: unknown[] = []
let rejections: unknown[] = []
const onUncaught = (error: unknown): void => void uncaught.push(error)
const onRejection = (error: unknown): void => void rejections.push(error)
let others: NodeJS.UncaughtExceptionListener[] = []
beforeEach(() => {
  uncaught = []
  rejections = []
  others = process.listeners('uncaughtException')
  process.removeAllListeners('uncaughtException')
  process.on('uncaughtException', onUncaught)
  process.on('unhandledRejection', onRejection)
})
afterEach(() => {
  process.off('uncaughtException', onUncaught)
  process.off('unhandledRejection', onRejection)
  for (const other of others) process.on('uncaughtException', other)
})

/** A drain and its release; how it ended. */
async function drained(policy: Policy): Promise<string> {
  const { clock, lb } = rig()
  const run = startDrain(lb, web1, { clock, timeout: '20s', ...policy })
  const { outcome } = await clock.runUntil(run.done)
  await clock.runUntil(run.release())
  await clock.advance(60_000)
  return outcome
}

describe('a ticket store that throws', () => {
  const throwing = (method: 'get' | 'set' | 'delete', from: number): TicketStore => {
    const store = memoryStore()
    let calls = 0
    return {
      ...store,
      [method]: (...given: [string, never]) => {
        calls += 1
        if (calls >= from) throw new Error('the disk is full')
        return store[method](...given)
      },
    }
  }

  test.each(['get', 'set', 'delete'] as const)(
    'in %s never ends a drain silently',
    async (method) => {
      for (let from = 1; from < 8; from += 1) {
        const seen = recorder()
        const outcome = await drained({ tickets: throwing(method, from), onEvent: seen.onEvent })
        expect(['idle', 'refused']).toContain(outcome)
        if (outcome === 'refused') expect(seen.of('fault').length).toBeGreaterThan(0)
      }
      expect(rejections).toEqual([])
    },
  )

  test('from onTicket never ends a drain silently', async () => {
    for (let from = 1; from < 8; from += 1) {
      let calls = 0
      const onTicket = (): void => {
        calls += 1
        if (calls >= from) throw new Error('no')
      }
      expect(await drained({ onTicket })).toBe(from === 1 ? 'refused' : 'idle')
    }
    expect(rejections).toEqual([])
  })
})

test('a listener that throws ends no drain, and its errors surface', async () => {
  const onEvent = (): void => {
    throw new Error('mine')
  }
  expect(await drained({ onEvent })).toBe('idle')
  expect(uncaught.length).toBeGreaterThan(0)
  expect(rejections).toEqual([])
})
