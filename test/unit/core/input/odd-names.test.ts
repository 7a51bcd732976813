import { afterEach, describe, expect, test } from 'vitest'
import { drain, ready, restore, resumeDrain, select, startDrain } from 'drainable'
import type { MemberRef } from 'drainable/provider'
import { only, thrown } from '../set-up.js'
import { balancer, json, restoreWall, sent, steps, wallFollows } from '../balancer.js'

afterEach(restoreWall)

const NAMES = ['constructor', 'toString', '__proto__', 'hasOwnProperty', 'valueOf'] as const
const SCOPES = ['worker', ...NAMES]

/** A pool, its members and its processes, all under names that every object has. */
function odd(name: string, options: Parameters<typeof balancer>[0] = {}) {
  const pools = { ['pool']: ['one', 'two', 'three'] }
  Object.defineProperty(pools, name, { value: [name, 'two', 'three'], enumerable: true })
  const ref: MemberRef = { pool: name, member: name }
  return { ...balancer({ pools, scopes: [name, 'worker'], ...options }), ref }
}

// Fault 21: names are names, whatever an object calls its own.
describe.each(NAMES)('a pool, member and process called %s', (name) => {
  test('is drained, sealed and opened', async () => {
    const { clock, lb, ref } = odd(name)
    const report = await clock.runUntil(drain(lb, ref, { clock }))
    expect(only(report)).toMatchObject({ outcome: 'idle', verifiedIdle: true, sealed: true })
    expect(lb.state(ref)).toBe('maint')
    await clock.runUntil(ready(lb, ref, { clock }))
    expect(lb.state(ref)).toBe('ready')
  })

  test('is not idle while its process holds work', async () => {
    const { clock, lb, ref } = odd(name)
    lb.occupy(ref, 2, name)
    const run = startDrain(lb, ref, { clock, timeout: '5s' })
    await clock.advance(3_000)
    const why = run.why()
    const report = only(await clock.runUntil(run.done))
    await run.release()
    expect(report).toMatchObject({ outcome: 'timeout', verifiedIdle: false })
    expect(why[0]).toMatchObject({ code: 'in-flight', scope: name, count: 2 })
  })

  test('is not idle while its process is unlisted', async () => {
    const { clock, lb, ref } = odd(name)
    lb.occupy(ref, 2, name)
    const run = startDrain(lb, ref, { clock, timeout: '5s' })
    await clock.advance(1_000)
    const observe = lb.observe.bind(lb)
    lb.observe = async (refs, ctx) => {
      const seen = await observe(refs, ctx)
      const readings = seen.readings.map((reading) => ({
        ...reading,
        scopes: reading.scopes.filter(({ scope }) => scope !== name),
      }))
      return { ...seen, readings }
    }
    const report = only(await clock.runUntil(run.done))
    await run.release()
    expect(report.verifiedIdle).toBe(false)
    expect(report.outcome).not.toBe('idle')
  })

  test('is put back after a reload', async () => {
    const { clock, lb, ref } = odd(name)
    const run = startDrain(lb, ref, { clock })
    const report = only(await clock.runUntil(run.done))
    lb.reload()
    await clock.advance(2_000)
    const found = lb.state(ref)
    await run.release()
    expect(report.outcome).toBe('idle')
    expect(found).toBe('maint')
  })

  test('is drained step by step, its ticket as JSON', async () => {
    const { clock, lb, ref } = odd(name)
    wallFollows(clock)
    const end = lb.occupy(ref, 1, name)
    clock.setTimeout(end, 3_000)
    const done = await steps(lb, clock, { target: ref, policy: { timeout: '1m' } })
    expect(done.at(-1)?.outcome).toBe('idle')
    expect(clock.now()).toBeGreaterThanOrEqual(4_000)
    expect(lb.state(ref)).toBe('maint')
  })

  test('stays not idle step by step while its process holds work', async () => {
    const { clock, lb, ref } = odd(name)
    wallFollows(clock)
    lb.occupy(ref, 1, name)
    const done = await steps(lb, clock, { target: ref, policy: { timeout: '5s' } })
    expect(done.at(-1)?.outcome).toBe('timeout')
  })

  test('is resumed from its ticket as JSON', async () => {
    const { clock, lb, ref } = odd(name)
    wallFollows(clock)
    const end = lb.occupy(ref, 1, name)
    const first = startDrain(lb, ref, { clock, timeout: '1m' })
    await clock.advance(2_000)
    const ticket = json(await first.ticket)
    await first.release()
    const run = resumeDrain(lb, ticket, { clock })
    await clock.advance(3_000)
    const early = only(run.report()).phase
    end()
    const report = only(await clock.runUntil(run.done))
    await run.release()
    expect(early).toBe('draining')
    expect(report).toMatchObject({ outcome: 'idle', verifiedIdle: true, wasAdmin: 'ready' })
  })

  test('is restored from its ticket as JSON', async () => {
    const { clock, lb, ref } = odd(name)
    const run = startDrain(lb, ref, { clock })
    await clock.runUntil(run.done)
    const ticket = json(await run.ticket)
    await run.release()
    await clock.runUntil(restore(lb, ticket, { clock }))
    expect(lb.state(ref)).toBe('ready')
  })

  test('keeps the floor of its pool', async () => {
    const { clock, lb, ref } = odd(name)
    for (const member of ['two', 'three']) lb.setBehind({ pool: name, member }, 'maint')
    expect(await clock.runUntil(thrown(drain(lb, ref, { clock })))).toMatchObject({
      code: 'POOL_AT_MINIMUM',
    })
    expect(sent(lb, 'hold')).toEqual([])
  })

  test('is not found if it does not exist', async () => {
    const { clock, lb } = balancer()
    const ref = { pool: name, member: name }
    expect(await clock.runUntil(thrown(drain(lb, ref, { clock })))).toMatchObject({
      code: 'NOT_FOUND',
    })
    expect(await clock.runUntil(thrown(select(lb, { pool: name }, { clock })))).toMatchObject({
      code: 'NOT_FOUND',
    })
  })
})

// Fault 21: the same with all of them at once.
test('a member of processes with odd names drains once all are empty', async () => {
  const { clock, lb, ref } = odd('constructor', { scopes: SCOPES })
  SCOPES.forEach((scope, i) => clock.setTimeout(lb.occupy(ref, 1, scope), 1_000 * (i + 1)))
  const run = startDrain(lb, ref, { clock, timeout: '1m' })
  const report = await clock.runUntil(run.done)
  await run.release()
  expect(only(report)).toMatchObject({ outcome: 'idle', verifiedIdle: true })
  expect(report.elapsed).toBeGreaterThanOrEqual(6_000)
  expect(
    only(report)
      .proof?.samples[0]?.scopes.map(({ scope }) => scope)
      .sort(),
  ).toEqual([...SCOPES].sort())
})
