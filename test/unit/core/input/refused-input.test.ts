import { describe, expect, test } from 'vitest'
import {
  drain,
  ready,
  restore,
  resumeDrain,
  select,
  startDrain,
  stepDrain,
  watch,
  type Call,
  type Policy,
  type Target,
  type Ticket,
} from 'drainable'
import type { DrainableProvider } from 'drainable/provider'
import type { FakeClock } from 'drainable/testing'
import { thrown, web1 } from '../set-up.js'
import { balancer, json } from '../balancer.js'

/** A ticket of a drain of web1, and a balancer of the same name that was asked for nothing. */
async function held() {
  const first = balancer()
  const run = startDrain(first.lb, web1, { clock: first.clock })
  await first.clock.runUntil(run.done)
  const ticket = json(await run.ticket)
  await run.release()
  return { ticket, ...balancer({ instance: first.lb.instance }) }
}

/** What a verb makes of its arguments: given as unknown, because they are wrong on purpose. */
type Verb = (
  lb: unknown,
  what: { readonly target?: unknown; readonly ticket: Ticket },
  options?: unknown,
) => unknown

function targetOf(what: { readonly target?: unknown }): Target {
  return ('target' in what ? what.target : web1) as Target
}

const verbs: Readonly<Record<string, Verb>> = {
  drain: (lb, what, o) => drain(lb as DrainableProvider, targetOf(what), o as Policy),
  startDrain: (lb, what, o) => startDrain(lb as DrainableProvider, targetOf(what), o as Policy),
  resumeDrain: (lb, { ticket }, o) => resumeDrain(lb as DrainableProvider, ticket, o as Call),
  'stepDrain of a start': (lb, what, o) =>
    stepDrain(lb as DrainableProvider, { target: targetOf(what) }, o as Call),
  'stepDrain of a ticket': (lb, { ticket }, o) =>
    stepDrain(lb as DrainableProvider, ticket, o as Call),
  restore: (lb, { ticket }, o) => restore(lb as DrainableProvider, ticket, o as Call),
  ready: (lb, what, o) => ready(lb as DrainableProvider, targetOf(what), o as Call),
  watch: (lb, what, o) => watch(lb as DrainableProvider, targetOf(what), o as Call),
  select: (lb, what, o) => select(lb as DrainableProvider, targetOf(what), o as Call),
}

const withTarget = Object.entries(verbs).filter(
  ([name]) => !['resumeDrain', 'stepDrain of a ticket', 'restore'].includes(name),
)
/** Verbs that return a handle refuse at once, the others through their promise. */
const atOnce = ['startDrain', 'resumeDrain', 'watch']

function isHandle(value: unknown): value is AsyncDisposable {
  return typeof value === 'object' && value !== null && Symbol.asyncDispose in value
}

/** What a call is refused with; a handle that should not have been given is let go. */
async function refusal(name: string, call: () => unknown, clock: FakeClock): Promise<unknown> {
  let given: unknown
  try {
    given = call()
  } catch (error) {
    if (!atOnce.includes(name))
      throw new Error(`${name} threw instead of rejecting`, { cause: error })
    return error
  }
  if (isHandle(given)) {
    await given[Symbol.asyncDispose]()
    throw new Error(`${name} gave a handle instead of refusing`)
  }
  return clock.runUntil(thrown(given as Promise<unknown>))
}

/** In words: no error of the language shines through. */
function expectWords(error: unknown, words: RegExp): void {
  expect(error).toMatchObject({ code: 'INVALID_OPTIONS', retryable: false })
  const { message } = error as Error
  expect(message).toMatch(words)
  expect(message).not.toMatch(/is not a function|Cannot |\[object|_zod|undefined \(/)
}

const providers: readonly (readonly [string, unknown])[] = [
  ['undefined', undefined],
  ['null', null],
  ['an empty object', {}],
  ['a text', 'haproxy'],
  ['a promise', Promise.resolve({})],
  [
    'a provider without apply',
    { specVersion: 1, name: 'x', instance: 'x', describe: () => 0, observe: () => 0 },
  ],
]

const options: readonly (readonly [string, unknown, RegExp])[] = [
  ['null for the options', null, /options/],
  ['a number for the options', 5, /options/],
  ['a list for the options', [], /options/],
  ['a typo', { singal: undefined }, /singal/],
  ['null for a clock', { clock: null }, /clock/],
  ['a clock without setTimeout', { clock: { now: () => 0 } }, /clock/],
  ['a clock without now', { clock: { setTimeout: () => () => undefined } }, /clock/],
  ['a clock with a number for setTimeout', { clock: { now: () => 0, setTimeout: 5 } }, /clock/],
  ['Date for a clock', { clock: Date }, /clock/],
  ['no AbortSignal', { signal: { aborted: false } }, /signal/],
  ['an AbortController for its signal', { signal: new AbortController() }, /signal/],
  ['a text for onEvent', { onEvent: 'log' }, /onEvent/],
]

const control = ['web1\n', 'web\u0000one', '\u0007', 'web1\rset server', 'web\u007f', 'web\u0085']
const targets: readonly (readonly [string, unknown])[] = [
  ['null', null],
  ['undefined', undefined],
  ['a number', 5],
  ['a text', 'web/web1'],
  ['an empty list', []],
  ['a list of texts', ['web1']],
  ['an empty object', {}],
  ['an empty name', { pool: 'web', member: '' }],
  ['a number for a member', { pool: 'web', member: 1 }],
  ['a key that is none', { pool: 'web', member: 'web1', weight: 5 }],
  ['a port that is none', { address: '192.0.2.1', port: 70_000 }],
  ...control.flatMap((name): [string, unknown][] => [
    [`the member ${encodeURIComponent(name)}`, { pool: 'web', member: name }],
    [`the pool ${encodeURIComponent(name)}`, { pool: name, member: 'web1' }],
  ]),
  ['a whole pool of an unprintable name', { pool: 'web\n' }],
  ['a list with an unprintable name', [web1, { pool: 'web', member: 'web2\n' }]],
  ['an unprintable address', { address: '192.0.2.1\n' }],
  ['an unprintable balancer', { pool: 'web', member: 'web1', balancer: 'a\u0001' }],
]

// Fault 22: what is no provider, target or option is refused before anything is asked of a balancer.
describe.each(Object.entries(verbs))('%s refuses', (name, verb) => {
  test.each(providers)('%s for a provider', async (_, provider) => {
    const { ticket, clock } = await held()
    const error = await refusal(name, () => verb(provider, { ticket }, { clock }), clock)
    expectWords(error, /provider/)
  })

  test.each(options)('%s', async (_, given, words) => {
    const { ticket, clock, lb } = await held()
    const error = await refusal(name, () => verb(lb, { ticket }, given), clock)
    expectWords(error, words)
    expect(lb.requests).toEqual([])
  })
})

describe.each(withTarget)('%s refuses for a target', (name, verb) => {
  test.each(targets)('%s', async (_, target) => {
    const { ticket, clock, lb } = await held()
    const error = await refusal(name, () => verb(lb, { ticket, target }, { clock }), clock)
    expectWords(error, /target/)
    expect(lb.requests).toEqual([])
  })
})

const YEAR = 365 * 86_400_000

/** A policy's fields that are wrong, with what the refusal must name. */
const policies: readonly (readonly [string, object, RegExp])[] = [
  ['seconds for a timeout', { timeout: 30 }, /timeout.*30s/],
  ['seconds for settle', { settle: 5 }, /settle.*5s/],
  ['the smallest bare settle', { settle: 1 }, /settle.*1s/],
  ['the largest bare settle', { settle: 999 }, /settle.*999s/],
  ['seconds for escalateAfter', { escalateAfter: 30 }, /escalateAfter.*30s/],
  ['a timeout of eleven years', { timeout: 11 * YEAR }, /timeout/],
  ['a timeout of eleven years in hours', { timeout: '100000h' }, /timeout/],
  ['a timeout beyond any date', { timeout: 1e300 }, /timeout/],
  ['a settle of eleven years', { settle: '100000h', timeout: Infinity }, /settle/],
  ['an endless settle', { settle: Infinity, timeout: Infinity }, /settle/],
  ['an escalation in eleven years', { escalateAfter: '100000h' }, /escalateAfter/],
  ['NaN for a timeout', { timeout: NaN }, /timeout/],
  ['null for a timeout', { timeout: null }, /timeout/],
  ['an id with a control character', { id: 'deploy\n1' }, /id/],
  ['an empty id', { id: '' }, /id/],
  ['an owner with a control character', { owner: 'deploy\u001b[2J' }, /owner/],
  ['an empty owner', { owner: '' }, /owner/],
  ['half a member to keep', { keepReady: 0.5 }, /keepReady/],
]

// Fault 22: the numbers of a policy.
describe('a policy is refused for', () => {
  test.each(policies)('%s', async (_, policy, words) => {
    const { clock, lb } = balancer()
    const error = await clock.runUntil(thrown(drain(lb, web1, { clock, ...policy })))
    expectWords(error, words)
    expect(lb.requests).toEqual([])
  })

  test.each(policies)('%s, at once by startDrain', async (_, policy, words) => {
    const { clock, lb } = balancer()
    const start = (): unknown => startDrain(lb, web1, { clock, ...policy })
    expectWords(await refusal('startDrain', start, clock), words)
    expect(lb.requests).toEqual([])
  })

  test.each(policies)('%s, by stepDrain', async (_, policy, words) => {
    const { clock, lb } = balancer()
    const start = { target: web1, policy } as Parameters<typeof stepDrain>[1]
    const error = await clock.runUntil(thrown(stepDrain(lb, start, { clock })))
    expectWords(error, words)
    expect(lb.requests).toEqual([])
  })

  // What must stay true.
  test.each<Policy>([
    { settle: 0 },
    { settle: '500ms' },
    { settle: 1_000 },
    { settle: 0.5 },
    { escalateAfter: 0 },
    { escalateAfter: '500ms' },
    { timeout: Infinity },
    { timeout: '80000h' },
    { timeout: 5_000 },
  ])('nothing if it is %j', async (policy) => {
    const { clock, lb } = balancer()
    const report = await clock.runUntil(drain(lb, web1, { clock, ...policy }))
    expect(report.outcome).toBe('idle')
  })
})

// Fault 22: an invalid action is refused before the member is drained.
describe('drain() with an action', () => {
  test.each([
    ['a text', 'install'],
    ['a number', 42],
    ['null', null],
    ['an object', { run: () => undefined }],
    ['a promise', Promise.resolve()],
  ])('that is %s is refused', async (_, action) => {
    const { clock, lb } = balancer()
    const error = await clock.runUntil(
      thrown(drain(lb, web1, { clock }, action as unknown as () => Promise<void>)),
    )
    expectWords(error, /action/)
    expect(lb.requests).toEqual([])
    expect(lb.state(web1)).toBe('ready')
  })

  // What must stay true.
  test('that is undefined gives the report', async () => {
    const { clock, lb } = balancer()
    const none = undefined as unknown as () => Promise<string>
    const report: unknown = await clock.runUntil(drain(lb, web1, { clock }, none))
    expect(report).toMatchObject({ outcome: 'idle' })
  })
})

// Fault 22: what a step begins from.
describe('stepDrain refuses to begin from', () => {
  test.each<[string, unknown, RegExp]>([
    ['null', null, /ticket|target/],
    ['undefined', undefined, /ticket|target/],
    ['a number', 5, /ticket|target/],
    ['a text', 'ticket', /ticket|target/],
    ['a list', [], /ticket|target/],
    ['a key beside target', { target: web1, polcy: { timeout: '5m' } }, /polcy/],
    ['an option beside target', { target: web1, timeout: '5m' }, /timeout/],
    ['null for a policy', { target: web1, policy: null }, /policy|options/],
    ['a text for a policy', { target: web1, policy: '5m' }, /policy|options/],
    ['an unknown key of the policy', { target: web1, policy: { timeuot: '5m' } }, /timeuot/],
    ['a target and a ticket', { target: web1, v: 1, members: [] }, /v|members/],
  ])('%s', async (_, from, words) => {
    const { clock, lb } = balancer()
    const error = await clock.runUntil(
      thrown(stepDrain(lb, from as Parameters<typeof stepDrain>[1], { clock })),
    )
    expectWords(error, words)
    expect(lb.requests).toEqual([])
  })
})

test.each(['50%', 1.5, -1])(
  'keepReady: %j is refused with what was expected',
  async (keepReady) => {
    const options = { keepReady } as Policy
    await expect(drain(balancer().lb, web1, options)).rejects.toThrow(
      /keepReady: expected a whole number of members from 0, such as 2$/,
    )
  },
)

// Fault 22: the options of the other verbs.
describe('a refusal by name', () => {
  test.each<[string, unknown]>([
    ['a word', 'soon'],
    ['a negative duration', -1],
    ['null', null],
    ['an object', {}],
    ['seconds', 30],
    ['eleven years', '100000h'],
    ['no time', 0],
    ['no time as a text', '0s'],
  ])('names %s for waitHealthy', async (_, waitHealthy) => {
    const { clock, lb } = balancer()
    lb.setBehind(web1, 'drain')
    const o = { clock, waitHealthy } as Parameters<typeof ready>[2]
    expectWords(await clock.runUntil(thrown(ready(lb, web1, o))), /waitHealthy/)
    expect(lb.requests).toEqual([])
  })

  test('names a timeout of ready() that leaves no time', async () => {
    const { clock, lb } = balancer()
    lb.setBehind(web1, 'drain')
    const error = await clock.runUntil(thrown(ready(lb, web1, { clock, timeout: 0 })))
    expectWords(error, /ready\(\): timeout is 0, .* give a time such as '30s'/)
    expect(lb.requests).toEqual([])
  })

  test.each<[string, unknown]>([
    ['seconds', 5],
    ['eleven years', '100000h'],
    ['an endless time', Infinity],
  ])('names %s for settle of watch()', async (_, settle) => {
    const { clock, lb } = balancer()
    const look = (): unknown => watch(lb, web1, { clock, settle } as Parameters<typeof watch>[2])
    expectWords(await refusal('watch', look, clock), /settle/)
    expect(lb.requests).toEqual([])
  })
})

// What must stay true.
describe('unusual but valid input', () => {
  test.each(['web 1', 'wéb-ñ', '/Common/10.0.0.1:80', '[2001:db8::1]:80', '日本', "o'neill"])(
    'the name %s',
    async (name) => {
      const { clock, lb } = balancer({ pools: { [name]: [name, 'other'] } })
      const report = await clock.runUntil(drain(lb, { pool: name, member: name }, { clock }))
      expect(report.outcome).toBe('idle')
    },
  )

  test('a clock that is an object of some class', async () => {
    const { clock, lb } = balancer()
    class Own {
      now(): number {
        return clock.now()
      }
      setTimeout(fn: () => void, ms: number): () => void {
        return clock.setTimeout(fn, ms)
      }
    }
    const report = await clock.runUntil(drain(lb, web1, { clock: new Own() }))
    expect(report.outcome).toBe('idle')
  })

  test('a provider that is an object of some class', async () => {
    const { clock, lb } = balancer()
    class Own implements DrainableProvider {
      readonly specVersion = 1
      readonly name = 'own'
      readonly instance = `${lb.instance}-own`
      describe(...args: Parameters<DrainableProvider['describe']>) {
        return lb.describe(...args)
      }
      observe(...args: Parameters<DrainableProvider['observe']>) {
        return lb.observe(...args)
      }
      apply(...args: Parameters<DrainableProvider['apply']>) {
        return lb.apply(...args)
      }
      close(): Promise<void> {
        return lb.close()
      }
      [Symbol.asyncDispose](): Promise<void> {
        return lb.close()
      }
    }
    const report = await clock.runUntil(drain(new Own(), web1, { clock }))
    expect(report.outcome).toBe('idle')
  })
})
