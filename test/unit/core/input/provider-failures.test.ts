import { setImmediate as nextTurn } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import {
  DrainableError,
  drain,
  ready,
  restore,
  select,
  startDrain,
  stepDrain,
  type DrainReport,
} from 'drainable'
import type { ChangeResult, ProviderInfo, Snapshot } from 'drainable/provider'
import type { FakeClock, FakeProvider } from 'drainable/testing'
import { only, recorder, thrown, web1 } from '../set-up.js'
import { balancer, json, sendThrough } from '../balancer.js'

let rejected: unknown[] = []
const onRejection = (reason: unknown): void => void rejected.push(reason)
beforeEach(() => {
  rejected = []
  process.on('unhandledRejection', onRejection)
})
afterEach(() => {
  process.off('unhandledRejection', onRejection)
})

type Verb = 'describe' | 'observe' | 'apply'

/** Lets every call of a verb fail by what `failure` does, from now on. */
function failing(lb: FakeProvider, verb: Verb, failure: () => never): void {
  const fail = (): Promise<never> => Promise.resolve().then(failure)
  if (verb === 'observe') lb.observe = fail
  else if (verb === 'apply') lb.apply = fail
  else lb.describe = fail
}

/** As undici says it: the reason is in the cause. */
function fetchFailed(code: string): TypeError {
  const cause = Object.assign(new Error(`connect ${code}`), { code })
  return new TypeError('fetch failed', { cause })
}

const endless = new Error('round and round')
endless.cause = endless

const bugs: readonly (readonly [string, unknown])[] = [
  ['a TypeError', new TypeError("Cannot read properties of undefined (reading 'row')")],
  ['an Error', new Error('row 3 has no name')],
  ['fetch failed without a code', new TypeError('fetch failed')],
  [
    'an error with another code',
    Object.assign(new TypeError('bad'), { code: 'ERR_INVALID_ARG_TYPE' }),
  ],
  ['an error that is its own cause', endless],
  ['a text', 'boom'],
  ['null', null],
  ['undefined', undefined],
  ['an object', { status: 500 }],
]

const network: readonly (readonly [string, unknown])[] = [
  ['ECONNREFUSED in its cause', fetchFailed('ECONNREFUSED')],
  ['ECONNRESET in its cause', fetchFailed('ECONNRESET')],
  ['UND_ERR_SOCKET in its cause', fetchFailed('UND_ERR_SOCKET')],
  [
    'EPIPE in the cause of its cause',
    new Error('the call failed', { cause: fetchFailed('EPIPE') }),
  ],
  ['ETIMEDOUT', Object.assign(new Error('connect ETIMEDOUT'), { code: 'ETIMEDOUT' })],
  ['ENOTFOUND', Object.assign(new Error('getaddrinfo ENOTFOUND lb'), { code: 'ENOTFOUND' })],
  ['ENOENT', Object.assign(new Error('connect ENOENT lb.sock'), { code: 'ENOENT' })],
  ['EHOSTUNREACH', Object.assign(new Error('no route'), { code: 'EHOSTUNREACH' })],
]

function throws(error: unknown): () => never {
  return () => {
    throw error
  }
}

// Fault 19: an error without a network code is not a network error.
describe('an error of a provider without a network code', () => {
  test.each(bugs)('is PROVIDER_FAILED with its cause kept: %s', async (_, bug) => {
    const { clock, lb } = balancer()
    failing(lb, 'observe', throws(bug))
    const error = await clock.runUntil(thrown(drain(lb, web1, { clock })))
    expect(error).toMatchObject({ code: 'PROVIDER_FAILED', retryable: false })
    // drain() may wrap the member's error once more: the original is at the end of the causes.
    const causes: unknown[] = []
    for (let at: unknown = error; at instanceof Error && causes.length < 3; at = at.cause)
      causes.push(at.cause)
    expect(causes).toContain(bug)
  })

  test.each<[string, (lb: FakeProvider, clock: FakeClock) => Promise<unknown>]>([
    ['select', (lb, clock) => select(lb, web1, { clock })],
    ['ready', (lb, clock) => ready(lb, web1, { clock })],
    ['stepDrain', (lb, clock) => stepDrain(lb, { target: web1 }, { clock })],
  ])('is PROVIDER_FAILED for %s too', async (_, verb) => {
    const { clock, lb } = balancer()
    failing(lb, 'observe', throws(new TypeError('bad row')))
    const error = await clock.runUntil(thrown(verb(lb, clock)))
    expect(error).toMatchObject({ code: 'PROVIDER_FAILED' })
  })

  test('is PROVIDER_FAILED for describe', async () => {
    const { clock, lb } = balancer()
    failing(lb, 'describe', throws(new TypeError('bad row')))
    const error = await clock.runUntil(thrown(drain(lb, web1, { clock })))
    expect(error).toMatchObject({ code: 'PROVIDER_FAILED', retryable: false })
  })

  test('is not retried before the drain begins', async () => {
    const { clock, lb } = balancer()
    let looks = 0
    failing(lb, 'observe', () => {
      looks += 1
      throw new TypeError('bad row')
    })
    const error = await clock.runUntil(thrown(drain(lb, web1, { clock })))
    expect(error).toMatchObject({ code: 'PROVIDER_FAILED' })
    expect(looks).toBe(1)
  })

  test('is PROVIDER_FAILED if thrown before any promise, too', async () => {
    const { clock, lb } = balancer()
    lb.observe = () => {
      throw new TypeError('bad row')
    }
    const error = await clock.runUntil(thrown(drain(lb, web1, { clock })))
    expect(error).toMatchObject({ code: 'PROVIDER_FAILED' })
  })

  test('in mid-drain is the error of the member at the end', async () => {
    const { clock, lb } = balancer()
    lb.occupy(web1)
    const seen = recorder()
    const run = startDrain(lb, web1, { clock, timeout: '5s', onEvent: seen.onEvent })
    await clock.advance(2_000)
    failing(lb, 'observe', throws(new TypeError('bad row')))
    const report = only(await clock.runUntil(run.done))
    await run.release()
    expect(report).toMatchObject({
      outcome: 'unreachable',
      verifiedIdle: false,
      error: { code: 'PROVIDER_FAILED', retryable: false },
    })
    expect(seen.of('fault')[0]?.error).toMatchObject({ code: 'PROVIDER_FAILED' })
  })

  test('from a change is told as a fault, and the change is read back', async () => {
    const { clock, lb } = balancer()
    let first = true
    sendThrough(lb, async (changes, ctx, apply) => {
      const results = await apply(changes, { signal: ctx.signal, clock: ctx.clock })
      if (!first) return results
      first = false
      throw new TypeError('bad row')
    })
    const seen = recorder()
    const report = await clock.runUntil(drain(lb, web1, { clock, onEvent: seen.onEvent }))
    expect(report.outcome).toBe('idle')
    expect(seen.of('fault').map(({ error }) => error.code)).toEqual(['PROVIDER_FAILED'])
  })

  test('in an undo is the error of the member', async () => {
    const { clock, lb } = balancer()
    const run = startDrain(lb, web1, { clock })
    await clock.runUntil(run.done)
    const ticket = json(await run.ticket)
    await run.release()
    failing(lb, 'observe', throws(new TypeError('bad row')))
    const report = await clock.runUntil(restore(lb, ticket, { clock }))
    expect(only(report)).toMatchObject({
      outcome: 'unreachable',
      error: { code: 'PROVIDER_FAILED' },
    })
  })
})

// What must stay true.
describe('an error of a provider with a network code', () => {
  test.each(network)('is CONNECTION_LOST with its cause kept: %s', async (_, error) => {
    const { clock, lb } = balancer()
    failing(lb, 'observe', throws(error))
    expect(await clock.runUntil(thrown(select(lb, web1, { clock })))).toMatchObject({
      code: 'CONNECTION_LOST',
      retryable: true,
      cause: error,
    })
  })

  test('is retried in mid-drain until it passes', async () => {
    const { clock, lb } = balancer()
    const observe = lb.observe.bind(lb)
    const end = lb.occupy(web1)
    const run = startDrain(lb, web1, { clock, timeout: '1m' })
    await clock.advance(2_000)
    failing(lb, 'observe', throws(fetchFailed('ECONNREFUSED')))
    await clock.advance(5_000)
    lb.observe = observe
    end()
    const report = await clock.runUntil(run.done)
    await run.release()
    expect(only(report)).toMatchObject({ outcome: 'idle', verifiedIdle: true })
  })

  test('is left as it is if it is one of ours already', async () => {
    const { clock, lb } = balancer()
    const own = new DrainableError('UNAUTHENTICATED', 'the password is wrong')
    failing(lb, 'observe', throws(own))
    expect(await clock.runUntil(thrown(select(lb, web1, { clock })))).toBe(own)
  })

  test("is not made of the reason of a caller's abort", async () => {
    const { clock, lb } = balancer()
    lb.occupy(web1)
    const stop = new AbortController()
    const reason = new TypeError('enough')
    const caught = thrown(drain(lb, web1, { clock, timeout: '1m', signal: stop.signal }))
    await clock.advance(2_000)
    stop.abort(reason)
    expect(await clock.runUntil(caught)).toBe(reason)
  })
})

/** Invalid replies that a hand-made provider may give by mistake. */
const nonsense: readonly (readonly [string, Verb, unknown])[] = [
  ['undefined for a look', 'observe', undefined],
  ['null for a look', 'observe', null],
  ['a look without readings', 'observe', {}],
  ['null for the readings', 'observe', { readings: null, pools: [] }],
  ['null among the readings', 'observe', { readings: [null], pools: [] }],
  ['a reading without a member', 'observe', { readings: [{ present: true }], pools: [] }],
  ['no pools', 'observe', { readings: [] }],
  [
    'null for the processes',
    'observe',
    { readings: [{ ref: web1, present: true, identity: 'x', own: 'drain', scopes: null }] },
  ],
  ['undefined for the results', 'apply', undefined],
  ['null among the results', 'apply', [null]],
  ['a result without a status', 'apply', [{ ref: web1 }]],
  ['a refusal without an error', 'apply', [{ ref: web1, status: 'rejected' }]],
  ['a status that is none', 'apply', [{ ref: web1, status: 'done' }]],
  ['undefined for a description', 'describe', undefined],
  ['a description without capabilities', 'describe', { product: 'x', version: '1' }],
]

function answering(lb: FakeProvider, verb: Verb, reply: unknown): void {
  if (verb === 'observe') lb.observe = async () => reply as Snapshot
  if (verb === 'apply') lb.apply = async () => reply as readonly ChangeResult[]
  if (verb === 'describe') lb.describe = async () => reply as ProviderInfo
}

// Fault 25: whatever throws inside a run ends its `done`.
describe('a provider with nonsense answers', () => {
  test.each(nonsense)('ends done with a reason: %s', async (_, verb, reply) => {
    const { clock, lb } = balancer()
    answering(lb, verb, reply)
    const run = startDrain(lb, web1, { clock, timeout: '10s', seal: false })
    const report: DrainReport = await clock.runUntil(run.done, 600_000)
    await run.release()
    await nextTurn()
    expect(report.outcome).not.toBe('idle')
    const [member] = report.members
    expect(report.error ?? member?.error ?? member?.why[0]).toBeDefined()
    expect(rejected).toEqual([])
    expect(clock.pending).toBe(0)
  })

  test.each(nonsense.filter(([, verb]) => verb === 'observe'))(
    'in mid-drain ends done: %s',
    async (_, verb, reply) => {
      const { clock, lb } = balancer()
      lb.occupy(web1)
      const run = startDrain(lb, web1, { clock, timeout: '10s' })
      await clock.advance(2_000)
      answering(lb, verb, reply)
      const report: DrainReport = await clock.runUntil(run.done, 600_000)
      await run.release()
      await nextTurn()
      expect(report.outcome).not.toBe('idle')
      expect(only(report).verifiedIdle).toBe(false)
      expect(rejected).toEqual([])
      expect(clock.pending).toBe(0)
    },
  )

  test.each(nonsense.filter(([, verb]) => verb === 'apply'))(
    'is a fault of the adapter: %s',
    async (_, verb, reply) => {
      const { clock, lb } = balancer()
      answering(lb, verb, reply)
      const run = startDrain(lb, web1, { clock, timeout: '10s', seal: false })
      const report: DrainReport = await clock.runUntil(run.done, 600_000)
      await run.release()
      expect(only(report).error).toMatchObject({ code: 'PROVIDER_FAILED' })
    },
  )

  test('says which words there are for a capability', async () => {
    const { clock, lb } = balancer()
    const info = await lb.describe({ clock, signal: new AbortController().signal })
    const capabilities = { ...info.capabilities, maint: 'graceful' as never }
    answering(lb, 'describe', { ...info, capabilities })
    const error = await clock.runUntil(thrown(drain(lb, web1, { clock })))
    expect(error).toMatchObject({ message: expect.stringMatching(/"gentle", "cuts"/) as unknown })
  })

  test('is refused at once if it keeps another version of the contract', () => {
    const { clock, lb } = balancer()
    Object.assign(lb, { specVersion: 2 })
    expect(() => startDrain(lb, web1, { clock })).toThrow(/specVersion 2, not 1/)
    expect(lb.requests).toEqual([])
  })
})
