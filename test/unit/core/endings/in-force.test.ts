import { describe, expect, test } from 'vitest'
import { startDrain } from 'drainable'
import { recorder, web1, web2 } from '../set-up.js'
import { balancer } from '../balancer.js'

// Beside fault 16: a handle says when its hold is in force in every known process.
describe('in-force', () => {
  test('is said once for each member, before it is idle', async () => {
    const { clock, lb } = balancer()
    const seen = recorder()
    const run = startDrain(lb, web1, { clock, onEvent: seen.onEvent })
    await clock.runUntil(run.done)
    await run.release()
    const types = seen.types().filter((type) => type === 'in-force' || type === 'idle')
    expect(types[0]).toBe('in-force')
    expect(types).toContain('idle')
    expect(seen.of('in-force')[0]?.ref).toEqual(web1)
  })

  test('waits for every process', async () => {
    const { clock, lb } = balancer({ scopes: ['a', 'b'] })
    lb.setScopes(['a', { scope: 'b', inForce: false }])
    lb.occupy(web1)
    const seen = recorder()
    const run = startDrain(lb, web1, { clock, timeout: '1m', onEvent: seen.onEvent })
    await clock.advance(2_000)
    const early = seen.of('in-force').length
    lb.setScopes(['a', { scope: 'b', inForce: true }])
    await clock.advance(2_000)
    const late = seen.of('in-force').length
    await run.release()
    expect([early, late]).toEqual([0, 1])
  })

  test('waits for a process that can not be read', async () => {
    const { clock, lb } = balancer({ scopes: ['a', 'b'] })
    lb.setScopes(['a', { scope: 'b', state: 'unread' }])
    const run = startDrain(lb, web1, { clock, timeout: '1m' })
    let settled = false
    void run.inForce.then(() => (settled = true))
    await clock.advance(5_000)
    const early = settled
    lb.setScopes(['a', { scope: 'b', state: 'read' }])
    const inForce = await clock.runUntil(run.inForce)
    await run.release()
    expect(early).toBe(false)
    expect(inForce).toBe(true)
  })
})

describe('the promise inForce', () => {
  test('is true while work is still in flight', async () => {
    const { clock, lb } = balancer()
    lb.occupy(web1)
    const run = startDrain(lb, web1, { clock, timeout: '1m' })
    const inForce = await clock.runUntil(run.inForce, 2_000)
    const phase = run.report().members[0]?.phase
    await run.release()
    expect(inForce).toBe(true)
    expect(phase).toBe('draining')
  })

  test('waits for every member', async () => {
    const { clock, lb } = balancer({ pools: { web: ['web1', 'web2', 'web3', 'web4'] } })
    lb.occupy(web1)
    const observe = lb.observe.bind(lb)
    let held = true
    lb.observe = async (refs, ctx) => {
      const seen = await observe(refs, ctx)
      const readings = seen.readings.map((reading) => ({
        ...reading,
        scopes: reading.scopes.map((scope) =>
          held && reading.ref.member === 'web2' ? { ...scope, inForce: false } : scope,
        ),
      }))
      return { ...seen, readings }
    }
    const run = startDrain(lb, [web1, web2], { clock, timeout: '1m' })
    let settled = false
    void run.inForce.then(() => (settled = true))
    await clock.advance(3_000)
    const early = settled
    held = false
    const inForce = await clock.runUntil(run.inForce)
    await run.release()
    expect([early, inForce]).toEqual([false, true])
  })

  test.each<[string, (lb: ReturnType<typeof balancer>['lb']) => void]>([
    ['a refusal', (lb) => lb.failNext('reject', { verb: 'apply' })],
    ['a balancer that is not there', (lb) => lb.disconnect()],
    ['a member that is not there', (lb) => lb.setBehind(web1, 'gone')],
  ])('is false after %s', async (_, meddle) => {
    const { clock, lb } = balancer()
    meddle(lb)
    const run = startDrain(lb, web1, { clock, timeout: '20s' })
    const inForce = await clock.runUntil(run.inForce)
    await run.release()
    expect(inForce).toBe(false)
  })

  test('is false after an abort', async () => {
    const { clock, lb } = balancer()
    const run = startDrain(lb, web1, { clock, signal: AbortSignal.abort('no') })
    const inForce = await clock.runUntil(run.inForce)
    await run.release()
    expect(inForce).toBe(false)
  })

  test('stays true after a reload', async () => {
    const { clock, lb } = balancer()
    lb.occupy(web1)
    const run = startDrain(lb, web1, { clock, timeout: '1m' })
    await clock.advance(1_000)
    lb.reload()
    const inForce = await clock.runUntil(run.inForce)
    await run.release()
    expect(inForce).toBe(true)
  })
})
