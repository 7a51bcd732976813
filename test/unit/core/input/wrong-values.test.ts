import { describe, expect, it } from 'vitest'
import { carryOut, drain, isDrainableError, plan, select, toDuration } from 'drainable'
import { callContext } from 'drainable/provider'
import { fakeProvider, providerContract } from 'drainable/testing'
import { callbackEndpoints, envoy } from 'drainable/envoy'
import { haproxyRuntime } from 'drainable/haproxy-runtime'

const web1 = { pool: 'web', member: 'web1' }
const lb = fakeProvider({ pools: { web: ['web1', 'web2'] } })
const LONG = 'x'.repeat(1_000_000)

/** A proxy that throws whatever is asked of it. */
const traps = (): never => {
  throw new Error('a trap')
}
const trapped: object = new Proxy({}, { get: traps, has: traps, ownKeys: traps })

/** What a call with a wrong argument is refused with, whether it throws or rejects. */
async function refusal(call: () => unknown): Promise<string> {
  try {
    await call()
  } catch (error) {
    if (isDrainableError(error, 'INVALID_OPTIONS')) return error.message
    throw error
  }
  throw new Error('it was accepted')
}

describe('a wrong value is refused with a short message that names it', () => {
  const endpoints = callbackEndpoints({
    instance: 'mine',
    load: () => Promise.resolve({}),
    publish: () => Promise.resolve(),
  })
  it.each<readonly [string, () => unknown]>([
    [
      'carryOut(): the options: expected an object',
      () => carryOut(lb, { steps: [] }, null as never),
    ],
    [
      "carryOut(): the options: its getter threw 'a trap'",
      () => carryOut(lb, { steps: [] }, trapped),
    ],
    ["carryOut(): plan: its getter threw 'a trap'", () => carryOut(lb, trapped as never)],
    ["plan(): the options: its getter threw 'a trap'", () => plan(lb, web1, trapped)],
    ['callContext(): expected { signal, clock }', () => callContext(null as never)],
    ['providerContract(): open: expected a function', () => providerContract(undefined as never)],
    [
      'expect: expected how many Envoys there are',
      () => envoy({ endpoints, admin: ['http://127.0.0.1:1'], expect: '3' as never }),
    ],
    [
      'target: pool: is missing, expected a text;',
      () => select(lb, { ...web1, pool: undefined as never }),
    ],
    ["timeout is 'xxx", () => drain(lb, web1, { timeout: LONG as never })],
    ["DRAIN_TIMEOUT is 'xxx", () => toDuration(LONG, 'DRAIN_TIMEOUT')],
    ["socket: 'xxx", () => haproxyRuntime({ socket: LONG })],
  ])('%s', async (words, call) => {
    const message = await refusal(call)
    expect(message).toContain(words)
    expect(message.length).toBeLessThan(1_000)
  })

  it('and a proxy that throws is no error of ours', () => {
    expect(isDrainableError(trapped)).toBe(false)
  })
})
