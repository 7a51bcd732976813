import { describe, expect, test } from 'vitest'
import { drain, ready, startDrain, watch, withEvents, type DrainEvent } from 'drainable'
import { fakeProvider } from 'drainable/testing'
import { only, recorder, setUp, thrown, web1 } from '../set-up.js'

describe('ready', () => {
  test('leaves maint by way of drain and waits there for the first check', async () => {
    const { clock, lb } = setUp()
    await clock.runUntil(drain(lb, web1, { clock }))
    lb.setHealth(web1, 'unknown')
    const opening = ready(lb, web1, { clock, waitHealthy: '1m' })
    await clock.advance(10_000)
    expect(lb.state(web1)).toBe('drain')
    lb.setHealth(web1, 'up')
    const report = await clock.runUntil(opening)
    expect(report.members).toEqual([{ ref: web1, wasAdmin: 'maint', health: 'up' }])
    expect(lb.state(web1)).toBe('ready')
    expect(clock.pending).toBe(0)
  })

  test('leaves a member drained that never gets healthy, and says so', async () => {
    const { clock, lb } = setUp()
    await clock.runUntil(drain(lb, web1, { clock }))
    lb.setHealth(web1, 'down')
    const error = await clock.runUntil(thrown(ready(lb, web1, { clock, waitHealthy: '5s' })))
    expect(error).toMatchObject({ code: 'HEALTH_TIMEOUT' })
    expect((error as Error).message).toContain("'drain'")
    expect(lb.state(web1)).toBe('drain')
  })

  test('leaves a failed check to the balancer without waitHealthy', async () => {
    const { clock, lb } = setUp()
    await clock.runUntil(drain(lb, web1, { clock }))
    lb.setHealth(web1, 'down')
    await clock.runUntil(ready(lb, web1, { clock }))
    expect(lb.state(web1)).toBe('ready')
  })

  test('opens an unchecked member at once and reports it as unchecked', async () => {
    const { clock, lb } = setUp()
    lb.setHealth(web1, 'unchecked')
    await clock.runUntil(drain(lb, web1, { clock }))
    const report = await clock.runUntil(ready(lb, web1, { clock, waitHealthy: '5s' }))
    expect(report.members[0]?.health).toBe('unchecked')
  })

  test("asks the caller's own check before it opens the member", async () => {
    const { clock, lb } = setUp()
    lb.setHealth(web1, 'unchecked')
    await clock.runUntil(drain(lb, web1, { clock }))
    let seen = ''
    await clock.runUntil(
      ready(lb, web1, {
        clock,
        waitHealthy: async () => {
          seen = lb.state(web1)
        },
      }),
    )
    expect(seen).toBe('drain')
    expect(lb.state(web1)).toBe('ready')
    const failing = ready(lb, web1, { clock, waitHealthy: () => Promise.reject(new Error('503')) })
    expect(await clock.runUntil(thrown(failing))).toMatchObject({ code: 'HEALTH_TIMEOUT' })
  })

  test('ends a drain of this process, whatever its policy', async () => {
    const { clock, lb } = setUp()
    const run = startDrain(lb, web1, { clock, onOverrule: 'reapply' })
    await clock.runUntil(run.done)
    await clock.runUntil(ready(lb, web1, { clock }))
    await clock.advance(20_000)
    expect(lb.state(web1)).toBe('ready')
    await run.release()
  })

  test('refuses bad options by name', async () => {
    const { clock, lb } = setUp()
    expect(await thrown(ready(lb, web1, { clock, waitHealthy: 30 }))).toMatchObject({
      code: 'INVALID_OPTIONS',
    })
    expect(await thrown(ready(lb, { pool: '' }, { clock }))).toMatchObject({
      code: 'INVALID_OPTIONS',
    })
  })
})

describe('watch', () => {
  test('follows a drain of another client without changing anything', async () => {
    const { clock, lb } = setUp()
    const end = lb.occupy(web1)
    const seen = recorder()
    const run = watch(lb, web1, { clock, onEvent: seen.onEvent })
    await clock.advance(3_000)
    lb.setBehind(web1, 'drain')
    await clock.advance(3_000)
    end()
    await clock.advance(3_000)
    lb.arrive(web1)
    await clock.advance(3_000)
    lb.setBehind(web1, 'ready')
    await clock.advance(3_000)
    const phases = seen.of('phase').map((event) => `${event.from}>${event.to}`)
    expect(phases).toEqual([
      'active>draining',
      'draining>idle',
      'idle>draining',
      'draining>idle',
      'idle>active',
    ])
    expect(seen.of('idle-lost')).toHaveLength(1)
    expect(lb.requests.filter((call) => call.verb === 'apply')).toEqual([])
    await run.release()
    expect((await run.done).outcome).toBe('aborted')
    expect(clock.pending).toBe(0)
  })

  test('ends when the member is gone', async () => {
    const { clock, lb } = setUp()
    const run = watch(lb, web1, { clock })
    await clock.advance(1_000)
    lb.setBehind(web1, 'gone')
    expect(only(await clock.runUntil(run.done)).outcome).toBe('gone')
  })
})

describe('withEvents', () => {
  test('emits load and idle on the provider for a drain begun outside', async () => {
    const lb = withEvents(fakeProvider({ pools: { web: ['web1', 'web2'] } }))
    const end = lb.occupy(web1)
    const idle = new Promise<DrainEvent>((resolve) => void lb.on('idle', resolve))
    const load = new Promise<DrainEvent>((resolve) => void lb.on('load', resolve))
    lb.setBehind(web1, 'drain')
    expect(await load).toMatchObject({ ref: web1, active: 1 })
    end()
    expect(await idle).toMatchObject({ ref: web1, type: 'idle' })
    await lb.close()
  })

  test('emits the events of our own drains once', async () => {
    const lb = withEvents(fakeProvider({ pools: { web: ['web1', 'web2'] } }))
    const seen: DrainEvent[] = []
    lb.on('idle', (event) => void seen.push(event))
    await drain(lb, web1, { settle: '0ms' })
    expect(seen).toHaveLength(1)
    const looks = (): number => lb.requests.filter((call) => call.refs === 'all').length
    const before = looks()
    await expect.poll(looks, { timeout: 10_000 }).toBeGreaterThan(before + 1) // looked at everything since
    expect(seen).toHaveLength(1)
    await lb.close()
  })
})
