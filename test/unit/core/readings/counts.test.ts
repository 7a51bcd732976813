import { afterEach, describe, expect, test } from 'vitest'
import { drain, ready, startDrain, watch, type Why } from 'drainable'
import type { AdminState, LoadScope, PresentReading } from 'drainable/provider'
import type { FakeProvider } from 'drainable/testing'
import { only, recorder, thrown, web1 } from '../set-up.js'
import {
  applies,
  balancer,
  json,
  restoreWall,
  seeThrough,
  sent,
  steps,
  wallFollows,
  withPresent,
} from '../balancer.js'
import { stepped } from '../stepped.js'

afterEach(restoreWall)

/** Everything that JavaScript may hand over for a number, and that counts nothing. */
const VALUES: readonly (readonly [string, unknown])[] = [
  ['NaN', NaN],
  ['null', null],
  ['undefined', undefined],
  ['-1', -1],
  ['-0.5', -0.5],
  ['0.5', 0.5],
  ['Infinity', Infinity],
  ['-Infinity', -Infinity],
  ['an empty text', ''],
  ['a zero as text', '0'],
  ['a word', 'none'],
  ['false', false],
  ['an object', {}],
  ['a list', []],
  ['a list of one zero', [0]],
  ['a bigint', 0n],
]

const FIELDS = ['active', 'queued', 'arrivals'] as const

/** Changes every process that a look lists, while `on()` says so. */
function scopesThrough(
  lb: FakeProvider,
  edit: (scope: LoadScope) => object,
  on: () => boolean = () => true,
): void {
  seeThrough(lb, (snapshot) => {
    if (!on()) return snapshot
    return withPresent(snapshot, (reading) => ({
      ...reading,
      scopes: reading.scopes.map((scope) => edit(scope) as LoadScope),
    }))
  })
}

function about(why: readonly Why[], scope: string): Why | undefined {
  return why.find((one) => one.code === 'unreadable' && one.scope === scope)
}

// Fault 23: a count that is no count is not zero; its process is unread, and why() says what was found.
describe.each(FIELDS)('an invalid count %s', (field) => {
  // No arrivals at all are right: a product may not count them.
  const values = VALUES.filter(([name]) => field !== 'arrivals' || name !== 'undefined')

  test.each(values)('leaves its process unread: %s', async (_, value) => {
    const { clock, lb } = balancer()
    if (field !== 'arrivals') lb.occupy(web1, 2)
    scopesThrough(lb, (scope) => ({ ...scope, [field]: value }))
    const seen = recorder()
    const run = startDrain(lb, web1, { clock, timeout: '10s', onEvent: seen.onEvent })
    await clock.advance(5_000)
    const why = run.why()
    const report = await clock.runUntil(run.done)
    await run.release()
    expect(only(report)).toMatchObject({ outcome: 'timeout', verifiedIdle: false, sealed: false })
    expect(seen.of('idle')).toEqual([])
    const said = about(why, 'worker')
    expect(said?.text).toContain(field)
    expect(only(report).why.map(({ code }) => code)).toContain('unreadable')
  })

  test('is shown in why() as it was found', async () => {
    const shown: string[] = []
    for (const value of [-1, NaN, 'many']) {
      const { clock, lb } = balancer()
      scopesThrough(lb, (scope) => ({ ...scope, [field]: value }))
      const run = startDrain(lb, web1, { clock, timeout: '10s' })
      await clock.advance(2_000)
      shown.push(about(run.why(), 'worker')?.text ?? '')
      await run.release()
    }
    expect(shown[0]).toContain('-1')
    expect(shown[1]).toContain('NaN')
    expect(shown[2]).toContain('many')
  })
})

describe('invalid counts', () => {
  test('do not cancel each other out', async () => {
    const { clock, lb } = balancer({ scopes: ['a', 'b'] })
    lb.occupy(web1, 2, 'a')
    scopesThrough(lb, (scope) => ({ ...scope, active: scope.scope === 'a' ? 5 : -5 }))
    const run = startDrain(lb, web1, { clock, timeout: '10s' })
    await clock.advance(5_000)
    const why = run.why()
    const report = only(await clock.runUntil(run.done))
    await run.release()
    expect(report).toMatchObject({ outcome: 'timeout', verifiedIdle: false })
    expect(about(why, 'b')?.text).toContain('-5')
    expect(why).toContainEqual(expect.objectContaining({ code: 'in-flight', scope: 'a', count: 5 }))
  })

  test('make a load event incomplete, and do not stand for work', async () => {
    const { clock, lb } = balancer({ scopes: ['a', 'b'] })
    lb.occupy(web1, 2, 'b')
    scopesThrough(lb, (scope) => (scope.scope === 'a' ? { ...scope, active: NaN } : scope))
    const seen = recorder()
    const run = startDrain(lb, web1, { clock, timeout: '10s', onEvent: seen.onEvent })
    await clock.advance(5_000)
    await run.release()
    expect(seen.of('load').at(-1)).toMatchObject({ active: 2, queued: 0, complete: false })
  })

  test('do not end a step as idle', async () => {
    const { clock, lb } = balancer()
    wallFollows(clock)
    lb.occupy(web1, 2)
    scopesThrough(lb, (scope) => ({ ...scope, active: NaN }))
    const done = await steps(lb, clock, { target: web1, policy: { timeout: '5s' } }, 400)
    expect(done.at(-1)?.outcome).toBe('timeout')
    expect(about(done.at(-2)?.why ?? [], 'worker')?.text).toContain('NaN')
  })

  test('are never idle for a watch', async () => {
    const { clock, lb } = balancer()
    lb.setBehind(web1, 'drain')
    lb.occupy(web1, 2)
    scopesThrough(lb, (scope) => ({ ...scope, active: NaN }))
    const seen = recorder()
    const look = watch(lb, web1, { clock, onEvent: seen.onEvent })
    await clock.advance(10_000)
    await look.close()
    expect(seen.of('idle')).toEqual([])
    expect(seen.of('load').at(-1)?.complete).toBe(false)
  })

  test('after a seal do not confirm the verdict', async () => {
    const { clock, lb } = balancer()
    scopesThrough(
      lb,
      (scope) => ({ ...scope, active: NaN }),
      () => lb.state(web1) === 'maint',
    )
    const run = startDrain(lb, web1, { clock, timeout: '5s' })
    const report = only(await clock.runUntil(run.done))
    await run.release()
    expect(report.outcome).not.toBe('idle')
    expect(report.verifiedIdle).toBe(false)
  })

  // What must stay true.
  test('in one look only cost time', async () => {
    const { clock, lb } = balancer()
    let bad = true
    scopesThrough(
      lb,
      (scope) => ({ ...scope, active: NaN, queued: -1, arrivals: null }),
      () => bad,
    )
    const run = startDrain(lb, web1, { clock, timeout: '10s' })
    await clock.advance(2_000)
    bad = false
    const report = await clock.runUntil(run.done)
    await run.release()
    expect(only(report)).toMatchObject({ outcome: 'idle', verifiedIdle: true, why: [] })
    expect(report.elapsed).toBeLessThan(4_000)
  })

  test('do not take back an idle proved before', async () => {
    const { clock, lb } = balancer()
    const seen = recorder()
    const run = startDrain(lb, web1, { clock, onEvent: seen.onEvent })
    await clock.runUntil(run.done)
    scopesThrough(lb, (scope) => ({ ...scope, active: NaN }))
    await clock.advance(5_000)
    await run.release()
    expect(seen.of('idle-lost')).toEqual([])
    expect(applies(lb)).toHaveLength(2)
  })

  test('do not keep ready() from opening the member', async () => {
    const { clock, lb } = balancer()
    lb.setBehind(web1, 'drain')
    scopesThrough(lb, (scope) => ({ ...scope, active: NaN }))
    await clock.runUntil(ready(lb, web1, { clock }))
    expect(lb.state(web1)).toBe('ready')
  })

  test('of another member change nothing', async () => {
    const { clock, lb } = balancer()
    seeThrough(lb, (snapshot) =>
      withPresent(snapshot, (reading) =>
        reading.ref.member === 'web1'
          ? reading
          : {
              ...reading,
              scopes: reading.scopes.map((scope) => ({ ...scope, active: NaN })),
            },
      ),
    )
    const report = await clock.runUntil(drain(lb, web1, { clock }))
    expect(only(report)).toMatchObject({ outcome: 'idle', verifiedIdle: true })
  })

  test.each([0, 1, 12, Number.MAX_SAFE_INTEGER])('are not arrivals: %i', async (arrivals) => {
    const { clock, lb } = balancer()
    scopesThrough(lb, (scope) => ({ ...scope, arrivals }))
    const report = await clock.runUntil(drain(lb, web1, { clock }))
    expect(only(report)).toMatchObject({ outcome: 'idle', verifiedIdle: true })
    expect(only(report).proof?.arrivals).toBe('unchanged')
  })

  test('are not arrivals that the product does not count', async () => {
    const { clock, lb } = balancer()
    scopesThrough(lb, (scope) => {
      const copy = { ...scope }
      Reflect.deleteProperty(copy, 'arrivals')
      return copy
    })
    const report = await clock.runUntil(drain(lb, web1, { clock }))
    expect(only(report)).toMatchObject({ outcome: 'idle', verifiedIdle: true })
    expect(only(report).proof?.arrivals).toBe('unknown')
  })
})

const WORDS: readonly (readonly [string, unknown])[] = [
  ['another spelling', 'READ'],
  ['a word that is none', 'finished'],
  ['an empty text', ''],
  ['undefined', undefined],
  ['null', null],
  ['a truth value', true],
]

// Fault 23: states are known words.
describe('a process in a state outside the contract', () => {
  test.each(WORDS)('is unread: %s', async (_, state) => {
    const { clock, lb } = balancer()
    lb.occupy(web1, 2)
    scopesThrough(lb, (scope) => ({ ...scope, active: 0, state }))
    const run = startDrain(lb, web1, { clock, timeout: '10s' })
    await clock.advance(5_000)
    const why = run.why()
    const report = only(await clock.runUntil(run.done))
    await run.release()
    expect(report).toMatchObject({ outcome: 'timeout', verifiedIdle: false })
    expect(about(why, 'worker')?.text).toContain(state === '' ? 'state' : String(state))
  })

  test('has not ended, whatever it held', async () => {
    const { clock, lb } = balancer({ scopes: ['a', 'b'] })
    lb.occupy(web1, 2, 'a')
    const run = startDrain(lb, web1, { clock, timeout: '10s' })
    await clock.advance(2_000)
    scopesThrough(lb, (scope) => (scope.scope === 'a' ? { ...scope, state: 'dead' } : scope))
    const report = only(await clock.runUntil(run.done))
    await run.release()
    expect(report).toMatchObject({ outcome: 'timeout', lost: [] })
    expect(about(report.why, 'a')?.text).toContain('dead')
  })
})

// Fault 23: the same for the member's own state.
describe('an own state outside the contract', () => {
  const odd = (reading: PresentReading): PresentReading => ({
    ...reading,
    own: 'DISABLED' as AdminState,
  })

  test('is unknown, and nothing is written over it', async () => {
    const { clock, lb } = balancer()
    seeThrough(lb, (snapshot) => withPresent(snapshot, odd))
    const run = startDrain(lb, web1, { clock, timeout: '5s' })
    await clock.advance(2_000)
    const why = run.why()
    const report = only(await clock.runUntil(run.done))
    await run.release()
    expect(sent(lb, 'hold')).toEqual([])
    expect(report.verifiedIdle).toBe(false)
    expect(why.find(({ code }) => code === 'unreadable')?.text).toContain('DISABLED')
  })

  test('in mid-drain is not an overrule', async () => {
    const { clock, lb } = balancer()
    lb.occupy(web1)
    const seen = recorder()
    const run = startDrain(lb, web1, { clock, timeout: '10s', onEvent: seen.onEvent })
    await clock.advance(2_000)
    seeThrough(lb, (snapshot) => withPresent(snapshot, odd))
    const report = only(await clock.runUntil(run.done))
    await run.release()
    expect(seen.of('overruled')).toEqual([])
    expect(report.outcome).toBe('timeout')
    expect(sent(lb, 'hold')).toHaveLength(1)
  })

  test('is left alone by ready()', async () => {
    const { clock, lb } = balancer()
    lb.setBehind(web1, 'drain')
    seeThrough(lb, (snapshot) => withPresent(snapshot, odd))
    const error = await clock.runUntil(thrown(ready(lb, web1, { clock })))
    expect(error).toMatchObject({ code: 'CONFLICT' })
    expect(applies(lb)).toEqual([])
  })

  test('is left alone by a step', async () => {
    const { clock, lb } = balancer()
    seeThrough(lb, (snapshot) => withPresent(snapshot, odd))
    const first = await stepped(lb, { target: web1 }, { clock })
    await clock.advance(1_000)
    const second = await stepped(lb, json(first.ticket), { clock })
    expect(second.ticket.members[0]).toMatchObject({ set: null, intended: null, late: [] })
    expect(applies(lb)).toEqual([])
  })
})
