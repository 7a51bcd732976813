import { describe, expect, test } from 'vitest'
import { resumeDrain, startDrain, type Ticket } from 'drainable'
import type { FakeClock, FakeProvider } from 'drainable/testing'
import { only, recorder, web1 } from '../set-up.js'
import { json, recordChanges, rig } from '../rig.js'

/** The ticket of a drain that has ended idle, and is not held any more. */
async function idleTicket(lb: FakeProvider, clock: FakeClock): Promise<Ticket> {
  await using run = startDrain(lb, web1, { clock, timeout: '2m' })
  expect((await clock.runUntil(run.done)).outcome).toBe('idle')
  return json(await run.ticket)
}

// Fault 1
describe('a resume of a ticket that was idle', () => {
  test('does not end while its process is unread and busy', async () => {
    const { clock, lb } = rig()
    const ticket = await idleTicket(lb, clock)
    lb.occupy(web1, 7)
    lb.setScopes([{ scope: 'worker', state: 'unread' }])
    await using run = resumeDrain(lb, ticket, { clock })
    let ended = false
    void run.done.then(() => (ended = true))
    await clock.advance(20_000)
    expect(ended).toBe(false)
    expect(only(run.report())).toMatchObject({ phase: 'draining', verifiedIdle: false })
  })

  test('names the process that is unread in why()', async () => {
    const { clock, lb } = rig()
    const ticket = await idleTicket(lb, clock)
    lb.setScopes([{ scope: 'worker', state: 'unread' }])
    await using run = resumeDrain(lb, ticket, { clock })
    await clock.advance(20_000)
    expect(run.why()).toContainEqual(
      expect.objectContaining({ code: 'unreadable', scope: 'worker' }),
    )
  })

  test('does not end while one of two processes is unread', async () => {
    const { clock, lb } = rig({ scopes: ['a', 'b'] })
    const ticket = await idleTicket(lb, clock)
    lb.occupy(web1, 1, 'b')
    lb.setScopes(['a', { scope: 'b', state: 'unread' }])
    await using run = resumeDrain(lb, ticket, { clock })
    await clock.advance(20_000)
    expect(only(run.report())).toMatchObject({ phase: 'draining', verifiedIdle: false })
  })

  test('ends at its deadline without idle while its process is unread', async () => {
    const { clock, lb } = rig()
    const ticket = await idleTicket(lb, clock)
    lb.occupy(web1, 7)
    lb.setScopes([{ scope: 'worker', state: 'unread' }])
    await using run = resumeDrain(lb, ticket, { clock })
    const report = await clock.runUntil(run.done)
    expect(report.outcome).toBe('timeout')
    expect(only(report)).toMatchObject({ verifiedIdle: false, sealed: false })
  })

  test('starts from draining, without a proof', async () => {
    const { clock, lb } = rig({ latency: 5 })
    const ticket = await idleTicket(lb, clock)
    await using run = resumeDrain(lb, ticket, { clock })
    await clock.advance(1)
    const before = run.report().members
    expect(before.filter(({ phase, proof }) => phase === 'idle' || proof)).toEqual([])
    await clock.advance(100)
    expect(only(run.report())).toMatchObject({ phase: 'draining', verifiedIdle: false })
    expect(only(run.report()).proof).toBeUndefined()
  })

  test('does not say idle-lost for an idle that it never said', async () => {
    const { clock, lb } = rig()
    const ticket = await idleTicket(lb, clock)
    const seen = recorder()
    await using run = resumeDrain(lb, ticket, { clock, onEvent: seen.onEvent })
    await clock.runUntil(run.done)
    expect(seen.types()).not.toContain('idle-lost')
    expect(seen.of('phase').at(-1)).toMatchObject({ from: 'draining', to: 'idle' })
  })

  test('proves idle by its own samples', async () => {
    const { clock, lb } = rig()
    const ticket = await idleTicket(lb, clock)
    await clock.advance(60_000)
    const from = clock.now()
    await using run = resumeDrain(lb, ticket, { clock })
    const report = await clock.runUntil(run.done)
    expect(only(report)).toMatchObject({ outcome: 'idle', verifiedIdle: true, sealed: true })
    const sampled = only(report).proof!.samples.flatMap(({ scopes }) =>
      scopes.map((scope) => scope.sampledAt),
    )
    expect(Math.min(...sampled)).toBeGreaterThanOrEqual(from)
    expect(clock.now() - from).toBeGreaterThanOrEqual(1_000)
  })

  test('changes nothing if the member is still held', async () => {
    const { clock, lb } = rig()
    const ticket = await idleTicket(lb, clock)
    const sent = recordChanges(lb, clock)
    await using run = resumeDrain(lb, ticket, { clock })
    expect((await clock.runUntil(run.done)).outcome).toBe('idle')
    expect(sent).toEqual([])
    expect(lb.state(web1)).toBe('maint')
  })

  test('puts back a hold that a reload forgot meanwhile', async () => {
    const { clock, lb } = rig()
    const ticket = await idleTicket(lb, clock)
    lb.reload()
    const end = lb.occupy(web1, 2)
    await using run = resumeDrain(lb, ticket, { clock })
    await clock.advance(5_000)
    expect(lb.state(web1)).not.toBe('ready')
    expect(only(run.report()).phase).toBe('draining')
    end()
    expect(only(await clock.runUntil(run.done))).toMatchObject({
      outcome: 'idle',
      verifiedIdle: true,
    })
  })

  test('waits for work in flight until it ends', async () => {
    const { clock, lb } = rig()
    const ticket = await idleTicket(lb, clock)
    const end = lb.occupy(web1, 7)
    await using run = resumeDrain(lb, ticket, { clock })
    await clock.advance(20_000)
    expect(run.why()[0]).toMatchObject({ code: 'in-flight', count: 7 })
    end()
    expect(only(await clock.runUntil(run.done)).outcome).toBe('idle')
  })
})
