import { describe, expect, test } from 'vitest'
import {
  combineProviders,
  drain,
  fileTickets,
  findOrphans,
  plan,
  ready,
  reconcile,
  restore,
  resumeDrain,
  roll,
  select,
  startDrain,
  stepDrain,
  watch,
  type DrainableProvider,
  type DrainReport,
  type Policy,
  type Ticket,
} from 'drainable'
import { systemClock } from 'drainable/provider'
import { setUp, thrown, web1 } from '../set-up.js'

/** Calls with what is wrong on purpose; what it is refused with, before anything was changed. */
async function refusal(call: (lb: DrainableProvider) => unknown): Promise<string> {
  const { clock, lb } = setUp()
  const error = await clock.runUntil(thrown((async () => call(lb))()))
  expect(error).toMatchObject({ name: 'DrainableError' })
  expect(lb.requests.filter(({ verb }) => verb === 'apply')).toEqual([])
  return (error as Error).message
}

const verbs: Readonly<Record<string, (lb: DrainableProvider, options: never) => unknown>> = {
  'drain()': (lb, o) => drain(lb, web1, o),
  'startDrain()': (lb, o) => startDrain(lb, web1, o),
  'ready()': (lb, o) => ready(lb, web1, o),
  'select()': (lb, o) => select(lb, web1, o),
  'watch()': (lb, o) => watch(lb, web1, o),
  'plan()': (lb, o) => plan(lb, web1, o),
  'roll()': (lb, o) => roll(lb, web1, o),
  'reconcile()': (lb, o) => reconcile(lb, o),
  'combineProviders()': (lb, o) => combineProviders({ lb }, o),
}

describe('options that have none of their own are refused', () => {
  test.each(Object.entries(verbs))('%s', async (name, verb) => {
    for (const [given, words] of [
      [Promise.resolve({ timeout: '2m' }), 'found a promise; await it first'],
      [new Map([['timeout', '2m']]), 'expected an object, found a Map'],
      [new Date(), 'expected an object, found a Date'],
      [new Error('x'), 'expected an object, found an Error'],
      [new AbortController().signal, 'found an AbortSignal; write { signal }'],
    ] as const) {
      const said = await refusal((lb) => verb(lb, given as never))
      expect(said).toBe(`${name}: the options: ${words}`)
    }
  })
})

describe('a call in place of the function', () => {
  const install = (): Promise<void> => Promise.resolve()
  const words =
    'expected a function, found a promise: pass the function, not its call (`install`, not `install()`)'

  test.each([
    ['drain(): action', (lb) => drain(lb, web1, {}, install() as never)],
    ['roll(): act', (lb) => roll(lb, web1, { act: install() as never })],
  ] as const satisfies readonly (readonly [string, (lb: DrainableProvider) => unknown])[])(
    '%s',
    async (field, call) => {
      expect(await refusal(call)).toBe(`${field}: ${words}`)
    },
  )

  test('anything else is no function either', async () => {
    const said = await refusal((lb) => drain(lb, web1, {}, 'install' as never))
    expect(said).toBe(
      'drain(): action: expected a function, found string; leave it out to wait for the report alone',
    )
  })
})

describe('options of a class', () => {
  class Settings {
    timeout = '2m'
    tickets = undefined
    readonly #ready = 2
    get keepReady(): number {
      return this.#ready
    }
  }

  test('are read, also by a getter, and undefined is absent', async () => {
    const { clock, lb } = setUp()
    const policy = Object.assign(new Settings(), { clock }) as unknown as Policy
    const run = startDrain(lb, web1, policy)
    await clock.runUntil(run.done)
    expect((await run.ticket).policy).toMatchObject({ timeout: 120_000, keepReady: 2 })
    await run.release()
  })

  test('have no name that there is none of', async () => {
    const policy = Object.assign(new Settings(), { tiemout: '2m' }) as unknown as Policy
    expect(await refusal((lb) => drain(lb, web1, policy))).toContain("did you mean 'timeout'?")
  })
})

test.each<[string, (lb: DrainableProvider) => unknown, string]>([
  ['roll()', (lb) => roll(lb, web1, { act: never, maxUnavailible: 1 } as never), 'maxUnavailable'],
  ['reconcile()', (lb) => reconcile(lb, { pools: ['web'], own: never } as never), 'owns'],
  ['plan()', (lb) => plan(lb, web1, { maxUnavailible: 1 } as never), 'maxUnavailable'],
])('%s knows its own options by name', async (_, call, meant) => {
  expect(await refusal(call)).toContain(`did you mean '${meant}'?`)
})

test('several unknown options are told once what there is', async () => {
  const said = await refusal((lb) => watch(lb, web1, { force: true, verbose: true } as never))
  expect(said).toBe(
    "watch(): unknown option 'verbose'; unknown option 'force', expected one of 'signal', 'clock', 'onEvent', 'every', 'pace', 'settle', 'onUnreachable'",
  )
})

test('a plan takes the options of a roll as they are', async () => {
  const { clock, lb } = setUp()
  const options = { act: never, clock, timeout: '2m' } as const
  expect(await clock.runUntil(plan(lb, { pool: 'web' }, options))).toMatchObject({ kind: 'roll' })
})

test('reconcile() says of what it sets itself that it is to be left out', async () => {
  const said = await refusal((lb) => reconcile(lb, { pools: ['web'], id: 'x' } as never))
  expect(said).toBe('reconcile(): id: the reconciler sets it for each member, leave it out')
})

describe('in place of a provider', () => {
  test.each<[string, (lb: DrainableProvider) => unknown, string]>([
    ['a promise of one', (lb) => Promise.resolve(lb), 'found a promise: await it first'],
    ['a list of some', (lb) => [lb, lb], 'found several: make one of them, combineProviders('],
    ['some by key', (lb) => ({ a: lb, b: lb }), 'found several: make one of them, combine'],
  ])('%s', async (_, given, words) => {
    expect(await refusal((lb) => drain(given(lb) as never, web1))).toContain(words)
  })
})

describe('in place of a value', () => {
  test.each<[string, object, string]>([
    ['an AbortController', { signal: new AbortController() }, 'give controller.signal'],
    ['a path', { tickets: '/var/lib/drain' }, 'such as fileTickets(path)'],
    ['a promise of a store', { tickets: Promise.resolve(new Map()) }, 'found a promise; await it'],
    ['a bigint', { timeout: 5n }, 'timeout is 5n, expected milliseconds'],
    ['a clock of no numbers', { clock: { ...systemClock, now: () => NaN } }, 'expected now() to'],
    ["Node's setTimeout", { clock: { ...systemClock, setTimeout } }, 'a function that cancels'],
  ])('%s', async (_, policy, words) => {
    expect(await refusal((lb) => drain(lb, web1, policy as Policy))).toContain(words)
  })

  test.each<[unknown, string]>([
    ['~/drains', "'~' means nothing outside of a shell"],
    [new URL('file:///var/lib/drains'), 'found a URL; write fileURLToPath(url)'],
  ])('the folder %s', (path, words) => {
    expect(() => fileTickets(path as string)).toThrow(`fileTickets(): path: ${words}`)
  })

  test('a store after the provider', async () => {
    const said = await refusal((lb) => findOrphans(lb as never, new Map() as never))
    expect(said).toBe('findOrphans(): the store comes first: findOrphans(store, provider)')
  })
})

describe('a ticket', () => {
  async function held(): Promise<Ticket> {
    const { clock, lb } = setUp({ instance: 'kept' })
    const run = startDrain(lb, web1, { clock })
    await clock.runUntil(run.done)
    await run.release()
    return run.ticket
  }

  test('is taken as the text that a store gives back', async () => {
    const text = JSON.stringify(await held()) as never
    const { clock, lb } = setUp({ instance: 'kept' })
    lb.setBehind(web1, 'maint')
    await using resumed = resumeDrain(lb, text, { clock })
    expect(await clock.runUntil(resumed.done)).toMatchObject({ outcome: 'idle' })
    expect(await clock.runUntil(stepDrain(lb, text, { clock }))).toMatchObject({ phase: 'idle' })
    expect(await clock.runUntil(restore(lb, text, { clock }))).toMatchObject({
      outcome: 'restored',
    })
  })

  test.each<[unknown, string]>([
    [Promise.resolve({}), 'found a promise of a ticket: await it first'],
    [
      'release-42',
      "found a text, expected a ticket: give what the store has, await tickets.get('...')",
    ],
    ['{"v":1,', 'this is not a ticket of a drain: its text is damaged, it is not JSON'],
    [new Map(), "found a store, expected a ticket of it: await tickets.get('...')"],
    [web1, 'found a member, expected a ticket: ready() opens a member without one'],
  ])('is not %j', async (given, words) => {
    expect(await refusal((lb) => restore(lb, given as Ticket))).toBe(`restore(): ${words}`)
  })
})

test('a policy of a step has nothing that only the first step would get', async () => {
  const policy = { signal: AbortSignal.abort(), tickets: new Map(), timeout: '2m' } as never
  expect(await refusal((lb) => stepDrain(lb, { target: web1, policy }))).toBe(
    'stepDrain(): policy.signal: give it to each step: stepDrain(lb, from, { signal }); policy.tickets: give it to each step: stepDrain(lb, from, { tickets })',
  )
})

describe("a caller's own function", () => {
  test('that groups servers and throws is named', async () => {
    const group = (): never => {
      throw new Error('no zone')
    }
    const said = await refusal((lb) => roll(lb, web1, { act: never, group, waitHealthy: false }))
    expect(said).toBe('roll(): group: your function failed for web/web1: no zone')
  })

  test('that claims members and throws ends the reconciler', async () => {
    const { clock, lb } = setUp()
    const owns = (): never => {
      throw new Error('no label')
    }
    await using loop = reconcile(lb, { pools: ['web'], owns, clock })
    loop.set([{ ...web1, state: 'serve' }])
    const error = await clock.runUntil(thrown(loop.done))
    expect(error).toMatchObject({ code: 'INVALID_OPTIONS' })
    expect((error as Error).message).toBe(
      'reconcile(): owns: your function failed for web/web1: no label',
    )
  })

  test('that rejects with a plain object is quoted by its message', async () => {
    const { clock, lb } = setUp()
    const act = () => Promise.reject({ code: 1, message: 'exit 1' })
    const error = await clock.runUntil(thrown(roll(lb, web1, { act, clock })))
    expect((error as Error).message).toContain('act failed: exit 1; ready() with error.roll.left')
  })

  test('of a roll that keeps its ticket is told how to go on', async () => {
    const { clock, lb } = setUp()
    const error = await clock.runUntil(
      thrown(roll(lb, web1, { act: never, clock, onTicket: () => undefined })),
    )
    expect((error as Error).message).toContain('act failed: it was called; resumeRoll() goes on')
  })
})

test('a report as JSON says why, in a sentence', async () => {
  const { clock, lb } = setUp()
  const run = startDrain(lb, { pool: 'web' }, { clock })
  const report = JSON.parse(JSON.stringify(await clock.runUntil(run.done))) as DrainReport
  expect(report.error).toMatchObject({
    name: 'DrainableError',
    code: 'POOL_AT_MINIMUM',
    message: expect.stringContaining('keepReady is 1') as string,
  })
})

function never(): Promise<void> {
  return Promise.reject(new Error('it was called'))
}
