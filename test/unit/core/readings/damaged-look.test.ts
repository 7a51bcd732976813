import { afterEach, describe, expect, test } from 'vitest'
import { drain, ready, restore, startDrain, watch } from 'drainable'
import type { Snapshot } from 'drainable/provider'
import type { FakeProvider } from 'drainable/testing'
import { only, recorder, thrown, web1 } from '../set-up.js'
import {
  applies,
  balancer,
  json,
  restoreWall,
  seeThrough,
  steps,
  wallFollows,
  withPresent,
} from '../balancer.js'
import { stepped } from '../stepped.js'

afterEach(restoreWall)

/** What a damaged or cut reply may make of a member that is there. */
const damages: readonly (readonly [string, (snapshot: Snapshot) => Snapshot])[] = [
  ['no reading of it', (snapshot) => ({ ...snapshot, readings: [] })],
  [
    'absence, its processes listed',
    (snapshot) =>
      withPresent(snapshot, ({ ref, scopes }) => ({
        ref,
        present: false,
        scopes: scopes.map((scope) => ({ ...scope, state: 'ended', active: 0 })),
      })),
  ],
  [
    'absence, no process listed',
    (snapshot) => withPresent(snapshot, ({ ref }) => ({ ref, present: false, scopes: [] })),
  ],
  [
    'another identity',
    (snapshot) => withPresent(snapshot, (reading) => ({ ...reading, identity: 'other' })),
  ],
]

/** Damages the looks from the call of the returned function on, so many of them. */
function damageNext(
  lb: FakeProvider,
  damage: (snapshot: Snapshot) => Snapshot,
): (times?: number) => void {
  let left = 0
  seeThrough(lb, (snapshot) => {
    if (left <= 0) return snapshot
    left -= 1
    return damage(snapshot)
  })
  return (times = 1) => void (left = times)
}

// Fault 24: absence and another identity are believed at a second look.
describe.each(damages)('one damaged look, with %s', (_, damage) => {
  test('does not end the drain of a busy member', async () => {
    const { clock, lb } = balancer()
    const end = lb.occupy(web1, 3)
    const seen = recorder()
    const next = damageNext(lb, damage)
    const run = startDrain(lb, web1, { clock, timeout: '1m', onEvent: seen.onEvent })
    await clock.advance(2_000)
    next()
    await clock.advance(3_000)
    const phase = only(run.report()).phase
    end()
    const report = only(await clock.runUntil(run.done))
    await run.release()
    expect(phase).toBe('draining')
    expect(seen.of('removed')).toEqual([])
    expect(report.outcome).toBe('idle')
  })

  test('does not release a held member', async () => {
    const { clock, lb } = balancer()
    const next = damageNext(lb, damage)
    const run = startDrain(lb, web1, { clock })
    await clock.runUntil(run.done)
    next()
    await clock.advance(2_000)
    lb.reload()
    await clock.advance(2_000)
    const found = lb.state(web1)
    await run.release()
    expect(found).toBe('maint')
  })

  test('does not end a watch', async () => {
    const { clock, lb } = balancer()
    lb.setBehind(web1, 'drain')
    lb.occupy(web1)
    const seen = recorder()
    const next = damageNext(lb, damage)
    const look = watch(lb, web1, { clock, onEvent: seen.onEvent })
    await clock.advance(2_000)
    next()
    await clock.advance(5_000)
    await look.close()
    expect(seen.of('removed')).toEqual([])
    expect(seen.of('end').map(({ outcome }) => outcome)).not.toContain('gone')
  })

  test('does not end the steps of a drain', async () => {
    const { clock, lb } = balancer()
    wallFollows(clock)
    const end = lb.occupy(web1)
    const next = damageNext(lb, damage)
    const start = { target: web1, policy: { timeout: '1m' } } as const
    const begun = (await steps(lb, clock, start, 5)).at(-1)!
    await clock.advance(1_000)
    next()
    let step = await stepped(lb, json(begun.ticket), { clock })
    const damaged = step.outcome
    end()
    for (let i = 0; i < 200 && step.outcome === undefined; i += 1) {
      await clock.advance(Math.max(50, step.againIn))
      step = await stepped(lb, json(step.ticket), { clock })
    }
    expect(damaged).toBeUndefined()
    expect(step.outcome).toBe('idle')
  })

  test('does not end the undo of a ticket', async () => {
    const { clock, lb } = balancer()
    const run = startDrain(lb, web1, { clock })
    await clock.runUntil(run.done)
    const ticket = json(await run.ticket)
    await run.release()
    damageNext(lb, damage)()
    const report = await clock.runUntil(restore(lb, ticket, { clock }))
    expect(lb.state(web1)).toBe('ready')
    expect(only(report).outcome).toBe('restored')
  })

  // What must stay true.
  test('or several of the kind send nothing to the member', async () => {
    const { clock, lb } = balancer({ latency: 10 })
    lb.occupy(web1)
    const next = damageNext(lb, damage)
    const run = startDrain(lb, web1, {
      clock,
      timeout: '1m',
      escalateAfter: '5s',
    })
    await clock.advance(4_000)
    next(10_000) // from before the escalation is due until long after
    const before = applies(lb).length
    await clock.advance(10_000)
    const after = applies(lb).length
    await run.release()
    expect(after).toBe(before)
  })
})

// Fault 24: how far apart the two looks are.
describe('two looks that show a member as gone', () => {
  test('are as far apart as the counts can be stale', async () => {
    const { clock, lb } = balancer({ capabilities: { freshness: 4_000 } })
    lb.occupy(web1)
    const seen = recorder()
    const run = startDrain(lb, web1, { clock, timeout: '5m', onEvent: seen.onEvent })
    await clock.advance(10_000)
    lb.setIdentity(web1, 'other')
    const from = clock.now()
    const report = only(await clock.runUntil(run.done))
    const took = clock.now() - from
    await run.release()
    expect(report).toMatchObject({ outcome: 'gone', error: { code: 'MEMBER_GONE' } })
    expect(took).toBeGreaterThanOrEqual(4_000)
    expect(took).toBeLessThan(8_000)
  })

  test('are at least 20 ms apart', async () => {
    const { clock, lb } = balancer()
    lb.occupy(web1)
    const run = startDrain(lb, web1, { clock, timeout: '5m' })
    await clock.advance(2_000)
    lb.setIdentity(web1, 'other')
    const looks = (): number => lb.requests.filter(({ verb }) => verb === 'observe').length
    const before = looks()
    await clock.runUntil(run.done)
    const [first, ...more] = lb.requests.filter(({ verb }) => verb === 'observe').slice(before)
    await run.release()
    expect(more.length).toBeGreaterThan(0)
    expect(more.at(-1)!.at - first!.at).toBeGreaterThanOrEqual(20)
    expect(more.at(-1)!.at - first!.at).toBeLessThan(2_000)
  })

  test('start again when one between them shows the member', async () => {
    const { clock, lb } = balancer({ capabilities: { freshness: 1_000 } })
    const end = lb.occupy(web1)
    let n = 0
    seeThrough(lb, (snapshot) => {
      n += 1
      return n > 50 && n % 2 === 0
        ? withPresent(snapshot, (reading) => ({ ...reading, identity: 'other' }))
        : snapshot
    })
    const run = startDrain(lb, web1, { clock, timeout: '5m' })
    await clock.advance(30_000)
    const phase = only(run.report()).phase
    end()
    await run.release()
    expect(n).toBeGreaterThan(60)
    expect(phase).toBe('draining')
  })

  test('end the drain of a held member only together', async () => {
    const { clock, lb } = balancer({ capabilities: { freshness: 2_000 } })
    const seen = recorder()
    const run = startDrain(lb, web1, { clock, timeout: '1m', onEvent: seen.onEvent })
    await clock.runUntil(run.done)
    lb.setBehind(web1, 'gone')
    await clock.advance(1_500)
    const early = seen.of('removed').length
    await clock.advance(5_000)
    const late = seen.of('removed').length
    await run.release()
    expect([early, late]).toEqual([0, 1])
  })
})

// What must stay true.
describe('a member that is gone for good', () => {
  test('ends as gone soon, and nothing is sent to its successor', async () => {
    const { clock, lb } = balancer()
    lb.occupy(web1)
    const run = startDrain(lb, web1, { clock, timeout: '5m' })
    await clock.advance(2_000)
    lb.setIdentity(web1, 'other')
    lb.setBehind(web1, 'ready')
    const before = applies(lb).length
    const from = clock.now()
    const report = only(await clock.runUntil(run.done))
    const took = clock.now() - from
    await clock.advance(5_000)
    await run.release()
    expect(report).toMatchObject({ outcome: 'gone', verifiedIdle: false })
    expect(took).toBeLessThan(2_000)
    expect(applies(lb)).toHaveLength(before)
    expect(lb.state(web1)).toBe('ready')
  })

  test('ends as gone if no process holds it any more', async () => {
    const { clock, lb } = balancer()
    const end = lb.occupy(web1)
    const run = startDrain(lb, web1, { clock, timeout: '5m' })
    await clock.advance(2_000)
    lb.setBehind(web1, 'gone')
    end()
    const report = only(await clock.runUntil(run.done))
    await run.release()
    expect(report).toMatchObject({ outcome: 'gone', error: { code: 'MEMBER_GONE' } })
  })

  test('rejects drain() with MEMBER_GONE', async () => {
    const { clock, lb } = balancer()
    lb.occupy(web1)
    const caught = thrown(drain(lb, web1, { clock, timeout: '5m' }))
    await clock.advance(2_000)
    lb.setIdentity(web1, 'other')
    expect(await clock.runUntil(caught)).toMatchObject({ code: 'MEMBER_GONE' })
  })

  test('is not found by the first look of a drain or of ready()', async () => {
    const { clock, lb } = balancer()
    lb.setBehind(web1, 'gone')
    expect(await clock.runUntil(thrown(drain(lb, web1, { clock })))).toMatchObject({
      code: 'NOT_FOUND',
    })
    expect(await clock.runUntil(thrown(ready(lb, web1, { clock })))).toMatchObject({
      code: 'NOT_FOUND',
    })
  })
})
