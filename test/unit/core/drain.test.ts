import { describe, expect, test } from 'vitest'
import { drain, isDrainableError, ready, startDrain, type DrainEvent } from 'drainable'
import { fakeClock, fakeProvider } from 'drainable/testing'

const web1 = { pool: 'web', member: 'web1' }

function setUp(options: Partial<Parameters<typeof fakeProvider>[0]> = {}) {
  const clock = fakeClock()
  const lb = fakeProvider({ pools: { web: ['web1', 'web2', 'web3'] }, clock, ...options })
  return { clock, lb }
}

describe('drain', () => {
  test('an idle member is idle after settle, sealed, with a proof', async () => {
    const { clock, lb } = setUp()
    const events: DrainEvent[] = []
    const report = await clock.runUntil(
      drain(lb, web1, { clock, settle: '1s', onEvent: (event) => events.push(event) }),
    )
    const [member] = report.members
    expect(report.outcome).toBe('idle')
    expect(member).toMatchObject({
      verifiedIdle: true,
      sealed: true,
      wasAdmin: 'ready',
      phase: 'idle',
      lost: [],
    })
    expect(member?.proof?.arrivals).toBe('unchanged')
    expect(report.elapsed).toBeGreaterThanOrEqual(1_000)
    expect(report.elapsed).toBeLessThan(1_300)
    expect(events.map((event) => event.type)).toContain('idle')
    expect(events.at(-1)?.type).toBe('end')
    expect(lb.state(web1)).toBe('maint')
  })

  test('work in flight is waited for, and a long request adds no extra wait', async () => {
    const { clock, lb } = setUp()
    const end = lb.occupy(web1)
    const run = startDrain(lb, web1, { clock, timeout: '10m' })
    await clock.advance(60_000)
    expect(run.report().members[0]).toMatchObject({ phase: 'draining' })
    expect(run.why()[0]).toMatchObject({ code: 'in-flight', count: 1 })
    end()
    const report = await clock.runUntil(run.done)
    expect(report.outcome).toBe('idle')
    expect(report.elapsed).toBeLessThan(61_500)
    await run.release()
  })

  test('a drain gives up at the deadline and says why', async () => {
    const { clock, lb } = setUp()
    lb.occupy(web1, 2)
    const error = await clock.runUntil(
      drain(lb, web1, { clock, timeout: '1m', settle: '0ms' }).catch((e: unknown) => e),
    )
    expect(isDrainableError(error, 'DRAIN_TIMEOUT')).toBe(true)
    if (!isDrainableError(error, 'DRAIN_TIMEOUT')) return
    expect(error.report.members[0]?.why[0]).toMatchObject({ code: 'in-flight', count: 2 })
    expect(lb.state(web1)).toBe('drain')
  })

  test('ready opens a sealed member', async () => {
    const { clock, lb } = setUp()
    await clock.runUntil(drain(lb, web1, { clock }))
    const report = await clock.runUntil(ready(lb, web1, { clock, waitHealthy: '10s' }))
    expect(report.members[0]?.wasAdmin).toBe('maint')
    expect(lb.state(web1)).toBe('ready')
  })
})
