import { expect, test } from 'vitest'
import { DrainableError, ready, startDrain } from 'drainable'
import { only, web1, web2, web3 } from '../set-up.js'
import { after, anotherObject, isHold, loseAnswer, recordChanges, rig, type Rig } from '../rig.js'

const WAIT = { timeout: '10m', onMinimum: 'wait' } as const

function two(): Rig {
  const both = rig({ pools: { web: ['web1', 'web2'] }, capabilities: { lateBound: 10_000 } })
  both.lb.occupy(web1)
  return both
}

/** Watches for a moment at which no member of the pool serves. */
function everNone(lb: Rig['lb']): () => boolean {
  let none = false
  const apply = lb.apply.bind(lb)
  lb.apply = async (changes, ctx) => {
    const results = await apply(changes, ctx)
    none ||= [web1, web2].every((ref) => lb.state(ref) !== 'ready')
    return results
  }
  return () => none
}

test('a member that a late hold may take keeps its place under ready()', async () => {
  const { clock, lb } = two()
  const none = everNone(lb)
  loseAnswer(lb, clock, isHold, 5_000)
  const held = startDrain(lb, web1, { clock, ...WAIT })
  await clock.advance(5)
  const opened = ready(lb, web1, { clock })
  await clock.advance(100)
  await using other = startDrain(anotherObject(lb), web2, { clock, ...WAIT })
  await clock.advance(1_000)
  expect(other.why()[0]?.code).toBe('pool-at-minimum')
  await clock.runUntil(opened, 120_000)
  expect(lb.state(web1)).toBe('ready')
  expect(only(await clock.runUntil(other.done, 60_000)).outcome).toBe('idle')
  expect(none()).toBe(false)
  await clock.runUntil(held.done)
})

test('a member whose hold is under way keeps its place under an abort', async () => {
  const { clock, lb } = two()
  const none = everNone(lb)
  const apply = lb.apply.bind(lb)
  let hung = false
  lb.apply = (changes, ctx) => {
    if (hung || !changes.some(isHold)) return apply(changes, ctx)
    hung = true
    const free = { signal: new AbortController().signal, clock }
    clock.setTimeout(() => void apply(changes, free), 4_000)
    return new Promise((_, reject) => {
      const error = new DrainableError('CONNECTION_LOST', 'the answer was lost')
      ctx.signal.addEventListener('abort', () => reject(error))
      clock.setTimeout(() => reject(error), 3_000)
    })
  }
  const held = startDrain(lb, [web1, web2], { clock, ...WAIT })
  await clock.advance(100)
  const aborted = new AbortController()
  const policy = { clock, ...WAIT, signal: aborted.signal, onAbort: 'restore' } as const
  const second = startDrain(lb, web1, policy)
  await clock.advance(1_000)
  aborted.abort(new Error('enough'))
  await clock.runUntil(second.done, 60_000)
  await clock.advance(60_000)
  expect(none()).toBe(false)
  await held.release()
})

test('ready() ends a drain that gave its place back and waits for another', async () => {
  const { clock, lb } = rig({ capabilities: { minInterval: 1_000 } })
  lb.occupy(web1)
  after(lb, isHold, () => lb.setBehind(web2, 'drain'))
  let opened: Promise<unknown> | undefined
  const run = startDrain(lb, web1, {
    clock,
    ...WAIT,
    keepReady: 2,
    onEvent: (event) => {
      if (event.type === 'fault') opened ??= ready(lb, web1, { clock })
    },
  })
  await clock.advance(10_000)
  expect(opened).toBeDefined()
  await clock.runUntil(opened!)
  lb.setBehind(web2, 'ready')
  await clock.advance(60_000)
  expect([only(run.report()).outcome, lb.state(web1)]).toEqual(['overruled', 'ready'])
})

test('a drain that has a place keeps it until its first hold', async () => {
  const { clock, lb } = rig()
  const wait = (ms: number): Promise<void> =>
    new Promise((resolve) => void clock.setTimeout(resolve, ms))
  const apply = lb.apply.bind(lb)
  lb.apply = async (changes, ctx) => {
    await wait(500)
    return apply(changes, ctx)
  }
  // While the call of this drain is under way, no other drain trusts its first look.
  await using busy = startDrain(lb, web3, { clock, timeout: '10m' })
  await clock.advance(100)
  const observe = lb.observe.bind(lb)
  let looks = 0
  lb.observe = async (refs, ctx) => {
    const isFirst = refs !== 'all' && refs[0]?.member === 'web1'
    if (isFirst && ++looks > 2) await wait(300)
    return observe(refs, ctx)
  }
  await using first = startDrain(anotherObject(lb), web1, { clock, timeout: '10m' })
  await clock.advance(100)
  const sent = recordChanges(lb, clock)
  const second = startDrain(anotherObject(lb), web2, { clock, timeout: '10m' })
  expect((await clock.runUntil(second.done)).error).toMatchObject({ code: 'POOL_AT_MINIMUM' })
  expect(only(await clock.runUntil(first.done)).outcome).toBe('idle')
  expect(sent.map(({ change }) => change.ref.member)).not.toContain('web2')
  await clock.runUntil(busy.done)
})
